"""Which version of a request to send: what a broker offers, and what the catalog knows of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.errors import CallError
from flexwire.protocol import api_name
from flexwire.protocol.apis import request_entries
from flexwire.protocol.audit.evidence import fitting_releases, read_versions
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Mapping


def usable_versions(api_key: int, offered: Mapping[int, Versions]) -> Versions:
    """The versions that a broker with these ranges reads, and flexwire can write.

    Where the ranges are those of a release, what it advertises and does not read is left out: 4.x
    advertises Produce from 0 and reads it from 3.

    >>> usable_versions(3, {3: Versions(0, 99)})
    Versions('0-13')
    """
    known = Versions.NONE
    for entry in request_entries(api_key):
        known |= entry.versions
    read = Versions.NONE
    for release in fitting_releases(offered):
        read |= read_versions(api_key, release)
    return offered.get(api_key, Versions.NONE) & known & (read or known)


def latest_version(api_key: int, offered: Mapping[int, Versions], broker: str) -> int:
    """The newest of `usable_versions`; `CallError` where there is none."""
    usable = usable_versions(api_key, offered)
    if usable:
        return usable.highest
    name = api_name(api_key)
    if api_key not in offered:
        raise CallError(f"{broker} does not offer {name}: it is not among its ApiVersions")
    raise CallError(f"{broker} offers {name} {offered[api_key]}, of which flexwire knows none")
