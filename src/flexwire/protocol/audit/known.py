"""What is known of client software: what breaks, what is documented, and which settings pin.

`known.json` has the facts, each with its sources, and the date on which they were last looked at.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from flexwire.protocol.audit.releases import read_versions
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from flexwire.parties import AuditVerdict, Party
    from flexwire.protocol.audit.evidence import Conduct

_FACTS: dict[str, Any] = json.loads(
    (resources.files(__package__) / "known.json").read_text(encoding="utf-8")
)
CHECKED: str = _FACTS["checked"]
# Bindings name themselves and what they stand on: "confluent-kafka-python",
# "2.16.1-rdkafka-2.16.0".
_INSIDE = re.compile(r"rdkafka[-/ ]v?(\d[\d.]*)")
_RDKAFKA = "librdkafka"
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Pin:
    """A setting that keeps a client from asking the broker, or from heeding what it answers.

    ``software`` is the client's name in ApiVersions, where it asks for them at all.
    """

    client: str
    software: str
    setting: str
    effect: str
    remedy: str
    sources: tuple[str, ...]


PINS = tuple(Pin(**{**one, "sources": tuple(one["sources"])}) for one in _FACTS["pins"])


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a client on a release; without ``certain`` only if it uses a mechanism."""

    verdict: AuditVerdict
    id: str
    what: str
    remedy: str
    sources: tuple[str, ...]
    certain: bool = True


def known_of(party: Party, conduct: Conduct, release: str) -> list[Known]:
    """What the list has about a client's software on a release, never about brokers."""
    return [
        Known(
            one["verdict"],
            one["id"],
            one["what"],
            one["remedy"],
            tuple(one["sources"]),
            certain=_uses_mechanism(one, conduct) is True,
        )
        for one in _FACTS["breaks"]
        if _is_of(one, party, conduct)
        and _concerns(one, release)
        and _uses_mechanism(one, conduct) is not False
    ]


def pinning_settings(party: Party) -> list[Pin]:
    """The settings that may pin this client: its software's own, or all where it has no name.

    >>> from flexwire.protocol.audit import Party
    >>> [pin.setting for pin in pinning_settings(Party("a", None, None, "sarama", "1.40.0"))]
    ['Config.Version, Config.ApiVersionsRequest']
    """
    if party.software_name is None:
        return list(PINS)
    name, _ = software_of(party)
    return [pin for pin in PINS if pin.software == name]


@cache
def software_of(party: Party) -> tuple[str | None, tuple[int, ...]]:
    """The software's name and version, or those of the librdkafka inside.

    >>> from flexwire.protocol.audit import Party
    >>> software_of(Party("a", None, None, "confluent-kafka-go", "v2.6.1-librdkafka-2.6.1"))
    ('librdkafka', (2, 6, 1))
    """
    version = party.software_version or ""
    inside = _INSIDE.search(version)
    if inside:
        return _RDKAFKA, _numbers(inside[1])
    return party.software_name, _numbers(version)


def _numbers(version: str) -> tuple[int, ...]:
    # "2.11.0-RC1" is 2.11.0 to us: what a candidate breaks is the release's to mend.
    return tuple(map(int, _NUMBERS.findall(version.partition("-")[0])))


def _is_of(one: dict[str, Any], party: Party, conduct: Conduct) -> bool:
    name, version = software_of(party)
    if one["software"] is None:
        return name is None and _looks_like(one, party, conduct)
    return name == one["software"] and bool(version) and version < _numbers(one["before"])


def _looks_like(one: dict[str, Any], party: Party, conduct: Conduct) -> bool:
    """Whether a nameless client has such a client id, and keeps to versions that old ones speak."""
    limits = {int(key): highest for key, highest in one["speaks_at_most"].items()}
    limited = [use for use in conduct.uses if use.api_key in limits]
    return (
        re.fullmatch(one["client_id"], party.client_id or "") is not None
        and all(use.version <= limits[use.api_key] for use in limited)
        # Its own limit, and not the broker's.
        and any(use.offered and use.offered.highest > limits[use.api_key] for use in limited)
    )


def _concerns(one: dict[str, Any], release: str) -> bool:
    refused = one.get("where_refused")
    if refused and refused["version"] in read_versions(refused["api_key"], release):
        return False
    if refused:
        # It has to have been there once: an old release that never had it is another matter.
        older = catalog().releases[: catalog().releases.index(release)]
        return any(refused["version"] in read_versions(refused["api_key"], old) for old in older)
    return _numbers(release) >= _numbers(one["from_release"])


def _uses_mechanism(one: dict[str, Any], conduct: Conduct) -> bool | None:
    """Whether the client uses the mechanism that it takes; None where no capture shows it."""
    mechanism = one.get("mechanism")
    if mechanism is None or mechanism in conduct.mechanisms:
        return True
    return False if conduct.mechanisms or conduct.whole else None
