"""What the catalog's releases read, and whose ApiVersions response it was."""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from flexwire.protocol.apis import request_entries
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Advertised from 0 whatever is read, for clients that take its absence for a very old broker
# (KAFKA-18659).
_PRODUCE = 0
# Without a known release of the brokers: an upgrade seldom skips more.
_MAJORS = 2
_NUMBER, _UNNUMBERED = re.compile(r"\d+"), 1_000_000


@per_catalog
@cache
def read_versions(api_key: int, release: str) -> Versions:
    """The request versions that a broker of exactly that release reads; "none" without the API.

    What it advertises may be more: 4.x advertises Produce from 0, and reads it from 3.

    >>> read_versions(1, "3.9.2")
    Versions('0-17')
    """
    found = Versions.NONE
    for entry in request_entries(api_key):
        found |= entry.releases.get(release, Versions.NONE)
    return found


@per_catalog
@cache
def stable_versions(api_key: int, release: str) -> Versions:
    """The versions that a broker offers unless its configuration enables unstable ones as well."""
    versions = read_versions(api_key, release)
    if not versions:
        return versions
    for entry in request_entries(api_key):
        if versions.highest in entry.releases.get(release, Versions.NONE):
            spec = entry.spec(versions.highest, release)
            last = spec.latest_version_unstable and versions.highest == spec.valid_versions.highest
            return Versions(versions.lowest, versions.highest - last)
    return versions


def newest_version(api_key: int, release: str) -> int | None:
    """The newest version of an API in a release, unstable ones apart; None without the API."""
    versions = stable_versions(api_key, release)
    return versions.highest if versions else None


def refusal(api_key: int, version: int, release: str) -> tuple[str | None, str | None]:
    """The last release up to this one that reads the version, and the first after that.

    Both are None for a version that no release up to this one reads.

    >>> refusal(1, 3, catalog().newest_release)[0] in catalog().releases
    True
    """
    releases = catalog().releases
    upto = releases[: releases.index(release) + 1]
    reading = [place for place, one in enumerate(upto) if version in read_versions(api_key, one)]
    if not reading or reading[-1] + 1 == len(upto):
        return None, None
    return upto[reading[-1]], upto[reading[-1] + 1]


def returned_in(api_key: int, version: int, release: str) -> str | None:
    """The first later release that reads the version again, as 4.0.1 does JoinGroup 0 and 1."""
    releases = catalog().releases
    later = releases[releases.index(release) + 1 :]
    return next((one for one in later if version in read_versions(api_key, one)), None)


def fitting_releases(offered: Mapping[int, Versions]) -> tuple[str, ...]:
    """The releases whose brokers answer ApiVersions with these ranges, oldest first.

    The range of each API has to be the release's own, with its unstable version or without. An API
    may be absent, as listeners and ZooKeeper mode leave some out, and api keys of no release at
    all are a vendor's own. Nothing fits brokers that are not Apache Kafka's.
    """
    known = {key: versions for key, versions in offered.items() if request_entries(key)}
    if not known:
        return ()
    return tuple(release for release in catalog().releases if _fits(known, release))


def _fits(offered: Mapping[int, Versions], release: str) -> bool:
    return all(
        versions in _advertised(key, release) for key, versions in offered.items() if versions
    )


def _advertised(api_key: int, release: str) -> set[Versions]:
    read = {read_versions(api_key, release), stable_versions(api_key, release)} - {Versions.NONE}
    if api_key == _PRODUCE:
        return read | {Versions(0, versions.highest) for versions in read}
    return read


def audited_releases(brokers: Iterable[str] = ()) -> tuple[str, ...]:
    """The releases to judge by where none was named: of every major from the brokers' on.

    ``brokers`` are the releases that the captured brokers may be, of which the oldest counts.
    Where that is not known, the catalog's newest two majors are judged by. The newest release of a
    major stands for it, as an upgrade leads there; each finding says where the refusal began.
    """
    releases = catalog().releases
    majors = [list(group) for _, group in groupby(releases, key=_major)]
    known = [releases.index(one) for one in brokers if one in releases]
    if not known:
        return tuple(group[-1] for group in majors[-_MAJORS:])
    oldest = _major(releases[min(known)])
    return tuple(group[-1] for group in majors if _major(group[0]) >= oldest)


def _major(release: str) -> int:
    number = _NUMBER.match(release)
    # A release with another kind of name is in a catalog of one's own, and newer than any.
    return int(number[0]) if number else _UNNUMBERED
