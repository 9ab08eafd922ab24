"""The known facts about client software: incompatibilities, documented behavior, and remedies.

The facts are in `software.json`. Each fact includes its sources and the date on which they were
checked.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from flexwire.protocol.audit.evidence import read_versions
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from flexwire.parties import AuditVerdict, Party
    from flexwire.protocol.audit.evidence import Conduct

_FACTS: dict[str, Any] = json.loads(
    (resources.files(__package__) / "software.json").read_text(encoding="utf-8")
)
CHECKED: str = _FACTS["checked"]
# Bindings report their own version and the version of their base library: "confluent-kafka-python",
# "2.16.1-rdkafka-2.16.0".
_INSIDE = re.compile(r"rdkafka[-/ ]v?(\d[\d.]*)")
_RDKAFKA = "librdkafka"
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Pin:
    """A setting that prevents a client from requesting or using the broker's versions.

    ``software`` is the client's name in ApiVersions, if the client sends this request at all.
    """

    client: str
    software: str
    setting: str
    effect: str
    remedy: str
    sources: tuple[str, ...]


PINS = tuple(Pin(**{**pin, "sources": tuple(pin["sources"])}) for pin in _FACTS["pins"])


@dataclass(frozen=True, slots=True)
class Library:
    """A client library, or software that contains a client library.

    ``works_from`` is the first release that works with Kafka 4, or None if this release is unknown;
    in that case, ``remedy`` contains the advice. ``client_id`` is a pattern that matches the
    library's default client ids. ``software`` is the library's name in ApiVersions. ``client_id``
    and ``software`` are None if unknown. Releases before ``negotiates_from`` send ApiVersions but
    then ignore the response and use their configured versions.
    """

    library: str
    software: str | None
    checked: str
    sources: tuple[str, ...]
    client_id: str | None = None
    works_from: str | None = None
    negotiates_from: str | None = None
    note: str = ""
    remedy: str = ""

    @property
    def citation(self) -> str:
        """The sources and the day on which they were checked, in one line."""
        return cite_sources(self.sources, self.checked)


LIBRARIES = tuple(
    Library(**{**row, "sources": tuple(row["sources"])}) for row in _FACTS["libraries"]["rows"]
)


@dataclass(frozen=True, slots=True)
class MissingApi:
    """The behavior of a client if the broker lacks an API or shares no version of it.

    "goes on" means that there is a documented fallback, and "fails" means that the client is known
    to have no fallback. ``software`` contains names in ApiVersions; if the list is empty, the
    behavior applies to every client. If ``speaks`` is set, the software uses only the version that
    was captured.
    """

    api_keys: tuple[int, ...]
    software: tuple[str, ...]
    outcome: Literal["goes on", "fails"]
    what: str
    checked: str
    sources: tuple[str, ...]
    remedy: str = ""
    speaks: str = ""

    @property
    def citation(self) -> str:
        """The sources and the day on which they were checked, in one line."""
        return cite_sources(self.sources, self.checked)


ABSENT = tuple(
    MissingApi(
        **{**client, **{name: tuple(client[name]) for name in ("api_keys", "software", "sources")}}
    )
    for client in _FACTS["absent"]
)


@dataclass(frozen=True, slots=True)
class SoftwareFact:
    """A fact about how a client works with a Kafka release.

    If ``certain`` is false, only users of a mechanism are affected.
    """

    verdict: AuditVerdict
    id: str
    what: str
    remedy: str
    sources: tuple[str, ...]
    certain: bool = True


def facts_about(party: Party, conduct: Conduct, release: str) -> list[SoftwareFact]:
    """Return the known facts about how a client's software works with a Kafka release.

    There are no such facts about brokers.
    """
    return [
        SoftwareFact(
            row["verdict"],
            row["id"],
            row["what"],
            row["remedy"],
            tuple(row["sources"]),
            certain=_uses_mechanism(row, conduct) is True,
        )
        for row in _FACTS["breaks"]
        if _is_of(row, party, conduct)
        and _concerns(row, release)
        and _uses_mechanism(row, conduct) is not False
    ]


def cite_sources(sources: tuple[str, ...], checked: str) -> str:
    """Return sources, and the day on which they were checked, in one line."""
    return f"{', '.join(sources)}; looked at on {checked}"


def pinning_settings(party: Party) -> list[Pin]:
    """Return the settings that may affect this client.

    If the client's library is unknown, return all settings.

    >>> from flexwire.protocol.audit import Party
    >>> [pin.setting for pin in pinning_settings(Party("a", None, None, "sarama", "1.40.0"))]
    ['Config.Version, Config.ApiVersionsRequest']
    """
    library = find_library(party)
    if library is not None:
        return [pin for pin in PINS if pin.client == library.library]
    return list(PINS) if party.software_name is None else []


def find_library(party: Party) -> Library | None:
    """Return a client's library, identified by its default client id or else by its software.

    >>> from flexwire.protocol.audit import Party
    >>> find_library(Party("Telegraf", None, None, "sarama", "v1.46.1")).library
    'Telegraf'
    >>> find_library(Party("billing", None)) is None
    True
    """
    name, _ = find_software(party)
    for library in LIBRARIES:
        is_default = library.client_id and re.fullmatch(library.client_id, party.client_id or "")
        if is_default and name in {None, library.software}:
            return library
    return next(
        (library for library in LIBRARIES if name is not None and library.software == name), None
    )


def is_new_enough(party: Party, library: Library) -> bool:
    """Return whether a client is known to run the first release that works or a newer one."""
    name, version = find_software(party)
    if library.works_from is None or name is None or not version:
        return False
    # Telegraf's version is not Sarama's version, but ApiVersions contains the version of Sarama.
    is_own = (
        next(known_library for known_library in LIBRARIES if known_library.software == name)
        is library
    )
    return is_own and version >= version_numbers(library.works_from)


def heeds_offers_from(party: Party) -> str:
    """Return the first release that heeds the brokers' offer, or "" if this client is not older.

    >>> from flexwire.protocol.audit import Party
    >>> heeds_offers_from(Party("a", None, None, "sarama", "v1.45.2"))
    'Sarama 1.46.0'
    >>> heeds_offers_from(Party("a", None, None, "sarama", "v1.46.0"))
    ''
    """
    name, version = find_software(party)
    for library in LIBRARIES:
        first = library.negotiates_from
        if first and name == library.software and version and version < version_numbers(first):
            return f"{library.library} {first}"
    return ""


def libraries_are_about(release: str) -> bool:
    """Return whether the first working releases of libraries also apply to this release."""
    releases, rows = catalog().final_releases, _FACTS["libraries"]
    bounds = [rows["from"], rows["to"], release]
    if not {*bounds} <= {*releases}:
        return False
    first, last, asked = map(releases.index, bounds)
    return first <= asked <= last


def find_missing_api(api_key: int, party: Party) -> MissingApi | None:
    """Return the known behavior of this client if an API is missing, or None if unknown."""
    name, _ = find_software(party)
    of_api = [row for row in ABSENT if api_key in row.api_keys]
    return next((row for row in of_api if not row.software or name in row.software), None)


@cache
def find_software(party: Party) -> tuple[str | None, tuple[int, ...]]:
    """Return the name and version of the software, or of the librdkafka that it contains.

    >>> from flexwire.protocol.audit import Party
    >>> find_software(Party("a", None, None, "confluent-kafka-go", "v2.6.1-librdkafka-2.6.1"))
    ('librdkafka', (2, 6, 1))
    """
    version = party.software_version or ""
    inside = _INSIDE.search(version)
    if inside:
        return _RDKAFKA, version_numbers(inside[1])
    return party.software_name, version_numbers(version)


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without the part after a hyphen.

    >>> version_numbers("v2.11.0-RC1")
    (2, 11, 0)
    """
    # "2.11.0-RC1" counts as 2.11.0, because the final release fixes the problems of the candidate.
    return tuple(map(int, _NUMBERS.findall(version.partition("-")[0])))


def _is_of(row: dict[str, Any], party: Party, conduct: Conduct) -> bool:
    name, version = find_software(party)
    if row["software"] is None:
        return name is None and _looks_like(row, party, conduct)
    return name == row["software"] and bool(version) and version < version_numbers(row["before"])


def _looks_like(row: dict[str, Any], party: Party, conduct: Conduct) -> bool:
    """Return whether a client without a software name has a matching id and only old versions."""
    limits = {int(key): highest for key, highest in row["speaks_at_most"].items()}
    limited = [use for use in conduct.uses if use.api_key in limits]
    return (
        re.fullmatch(row["client_id"], party.client_id or "") is not None
        and all(use.version <= limits[use.api_key] for use in limited)
        # This is a limit of the client, not of the broker.
        and any(use.offered and use.offered.highest > limits[use.api_key] for use in limited)
    )


def _concerns(row: dict[str, Any], release: str) -> bool:
    refused = row.get("where_refused")
    if refused and refused["version"] in read_versions(refused["api_key"], release):
        return False
    if refused:
        # An older release must have supported the version. If none ever did, another rule applies.
        older = catalog().final_releases[: catalog().final_releases.index(release)]
        return any(refused["version"] in read_versions(refused["api_key"], old) for old in older)
    return version_numbers(release) >= version_numbers(row["from_release"])


def _uses_mechanism(row: dict[str, Any], conduct: Conduct) -> bool | None:
    """Return whether the client uses the mechanism, or None if no capture shows it."""
    mechanism = row.get("mechanism")
    if mechanism is None or mechanism in conduct.mechanisms:
        return True
    return False if conduct.mechanisms or conduct.whole else None
