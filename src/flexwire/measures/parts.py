"""The parts that the facts of a report are put together from, whoever gathered them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from heapq import nsmallest
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Any, TypeVar

from flexwire.facts.facts import (
    SOURCES_SHOWN,
    ApiFacts,
    ClientFacts,
    ConnectionFacts,
    DecodeFailure,
    Facts,
    FailureCount,
    LenientUse,
    RecordHeaderFacts,
    Source,
    TaggedFieldUse,
    Timeline,
    TopicFacts,
    Totals,
    VersionUse,
    marked,
)
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.facts.audit import Audit

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class Parts:
    """What `Facts` has of the tables, but for the audit; groups are in any order."""

    totals: Totals
    withheld_credentials: int
    timeline: Timeline
    sources: tuple[Source, ...]
    source_files: int
    apis: tuple[ApiFacts, ...]
    clients: tuple[ClientFacts, ...]
    version_uses: tuple[VersionUse, ...]
    topics: tuple[TopicFacts, ...]
    record_headers: tuple[RecordHeaderFacts, ...]
    tagged_fields: tuple[TaggedFieldUse, ...]
    failures: tuple[DecodeFailure, ...]
    failure_counts: tuple[FailureCount, ...]
    lenient_uses: tuple[LenientUse, ...]
    connections: ConnectionFacts


def first_sources(packets: Mapping[str, int]) -> dict[str, int]:
    """Of capture files and their packets those that the facts name, in order."""
    return {path: packets[path] for path in nsmallest(SOURCES_SHOWN, packets)}


# The same captures should give the same file.
_UNORDERED = (
    *("sources", "apis", "clients", "version_uses", "topics", "record_headers"),
    *("tagged_fields", "lenient_uses"),
)


def facts_of(parts: Parts, audit: Audit, *, title: str, made_at_us: int) -> Facts:
    """Put the facts together, in an order that does not depend on how they were gathered."""
    told: dict[str, Any] = {one.name: getattr(parts, one.name) for one in fields(parts)}
    told["version_uses"] = marked(parts.version_uses, audit)
    told |= {name: _ordered(told[name]) for name in _UNORDERED}
    return Facts(
        title=title,
        made_at_us=made_at_us,
        flexwire_version=installed_version("flexwire"),
        newest_release=catalog().newest_release,
        releases=catalog().releases,
        audit=audit,
        **told,
    )


def _ordered(told: tuple[_Told, ...]) -> tuple[_Told, ...]:
    return tuple(sorted(told, key=repr))
