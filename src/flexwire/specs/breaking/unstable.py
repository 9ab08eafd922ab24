"""Which old versions were a preview, so that a change of them breaks nothing.

A request says `latestVersionUnstable`: brokers offer its highest version only where
`unstable.api.versions.enable` is set, and Kafka may still change that version. The response has the
same version, and only the request has the word. Source: KAFKA-14391, Kafka 3.5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType, narrowed
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.schema.editions import Edition


def stable(editions: Mapping[str, Edition]) -> dict[str, Edition]:
    """Return the messages by name, without the versions that their requests call unstable.

    A response without its request is left as it is, because nothing says what was unstable.
    """
    unstable = {
        one.spec.api_key: one.spec.valid_versions.highest
        for one in editions.values()
        if one.spec.type is MessageType.REQUEST
        and one.spec.latest_version_unstable
        and one.spec.valid_versions
    }
    return {
        name: _without(one, unstable[one.spec.api_key])
        if one.spec.type.is_api and one.spec.api_key in unstable
        else one
        for name, one in editions.items()
    }


def _without(edition: Edition, version: int) -> Edition:
    left = Versions.of(one for one in edition.spec.valid_versions if one != version)
    return replace(edition, spec=narrowed(edition.spec, left))
