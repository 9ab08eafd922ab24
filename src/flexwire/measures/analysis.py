"""All sums over tables that the report needs, and the facts that are built from these sums."""

from __future__ import annotations

from dataclasses import dataclass, fields
from heapq import nsmallest
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flexwire.facts.facts import (
    SOURCES_SHOWN,
    ApiFacts,
    CaptureFileFacts,
    ClientFacts,
    ConnectionFacts,
    DecodeFailure,
    Facts,
    FailureCount,
    LenientUse,
    RecordHeaderFacts,
    TaggedFieldUse,
    Timeline,
    TopicFacts,
    Totals,
    VersionUse,
    marked,
)
from flexwire.measures.audit import AuditSums
from flexwire.measures.audit_rows import CONNECTIONS
from flexwire.measures.connections import ConnectionSums
from flexwire.measures.failures import record_failures
from flexwire.measures.frames import FrameSums
from flexwire.measures.headers import RecordHeaderSums
from flexwire.measures.records import TopicSums
from flexwire.measures.tagged_fields import TaggedFieldSums
from flexwire.schema.catalog import catalog
from flexwire.survey.ranges import FRAMES, RECORDS
from flexwire.tables.request_logs import FORWARDED
from flexwire.tables.schema import GROWN_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from flexwire.capture.reassembly.connections import BrokerEnds
    from flexwire.facts.audit import Audit
    from flexwire.tables.records import Rows


_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The parts of `Facts` that come from tables, except the audit, in any order."""

    totals: Totals
    withheld_credentials: int
    timeline: Timeline
    sources: tuple[CaptureFileFacts, ...]
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
    """Return the first capture files by name, up to the facts' limit, with their packets."""
    return {path: packets[path] for path in nsmallest(SOURCES_SHOWN, packets)}


# The files are sorted because the same captures must always result in the same facts.
_UNORDERED = (
    *("sources", "apis", "clients", "version_uses", "topics", "record_headers"),
    *("tagged_fields", "lenient_uses"),
)


def facts_of(parts: TableFacts, audit: Audit, *, title: str, made_at_us: int) -> Facts:
    """Build the facts. The order in the lists does not depend on the order of the rows."""
    facts_by_name: dict[str, Any] = {
        field.name: getattr(parts, field.name) for field in fields(parts)
    }
    facts_by_name["version_uses"] = marked(parts.version_uses, audit)
    facts_by_name |= {name: _ordered(facts_by_name[name]) for name in _UNORDERED}
    return Facts(
        title=title,
        made_at_us=made_at_us,
        flexwire_version=installed_version("flexwire"),
        newest_release=catalog().newest_release,
        releases=catalog().releases,
        audit=audit,
        **facts_by_name,
    )


def _ordered(items: tuple[_Fact, ...]) -> tuple[_Fact, ...]:
    return tuple(sorted(items, key=repr))


_SLICES = 120
# Time slices that people are used to, from a millisecond to a day.
_WIDTHS_US = [
    step * unit
    for unit, steps in (
        (1_000, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000_000, (1, 2, 5, 10, 15, 30)),
        (60_000_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000_000, (1, 2, 3, 6, 12, 24)),
    )
    for step in steps
]


def bucket_us(span_us: int) -> int:
    """Return the width of a timeline slice for a capture that lasts ``span_us``.

    A capture is divided into about 120 slices. A capture of several months has one slice per day.

    >>> bucket_us(0), bucket_us(3_600_000_000)
    (1000, 60000000)
    """
    return next((width for width in _WIDTHS_US if width * _SLICES > span_us), _WIDTHS_US[-1])


PACKETS: Final = "packets"
"""The path of the table of packets."""
# Brokers forwarded these requests. The clients' own requests are in other tables.
_UNSUMMED: Final = {FORWARDED, *(table.place for table in GROWN_TABLES)}


class AnalysisSums:
    """The sums over the rows of one task and of all tasks merged into it.

    ``span_us`` is the time from the first to the last frame of the whole capture. With ``spills``,
    the sums of all tasks are merged here, and rows that do not fit into memory are written to disk.
    """

    def __init__(self, span_us: int, *, spills: bool = False) -> None:
        self._frames = FrameSums(bucket_us(span_us))
        self._records = TopicSums()
        self._headers = RecordHeaderSums()
        self._tagged = TaggedFieldSums()
        self._connections = ConnectionSums()
        self._packets: dict[str, int] = {}
        self._skipped = 0
        self.audit = AuditSums(spills=spills)
        """The sums on which the audit is based."""

    def add(self, table: str, rows: Rows) -> None:
        """Add rows of a table, in the order in which they are written."""
        if table == RECORDS:
            self._records.add(rows)
            self._headers.add(rows)
            self._frames.failures.add(record_failures(rows))
        elif table == CONNECTIONS:
            self._connections.add(rows)
            self.audit.add(table, rows)
        elif table == PACKETS:
            self._add_packets(rows)
        elif table not in _UNSUMMED:
            self._tagged.add(rows)
            self.audit.add(table, rows)
            if table == FRAMES:
                self._frames.add(rows)

    def _add_packets(self, rows: pa.RecordBatch) -> None:
        for row in rows.to_pylist():
            if row["reason"] is None:
                self._packets[row["source"]] = row["packets"]
            else:
                self._skipped += row["packets"]

    def merge(self, other: AnalysisSums) -> None:
        """Add the sums of the next range."""
        self._frames.merge(other._frames)
        self._records.merge(other._records)
        self._headers.merge(other._headers)
        self._tagged.merge(other._tagged)
        self._connections.merge(other._connections)
        self._packets |= other._packets
        self._skipped += other._skipped
        self.audit.merge(other.audit)

    def parts(self, given_brokers: BrokerEnds) -> TableFacts:
        """Return the facts of all tables.

        ``given_brokers`` are the endpoints that the user specified as brokers.
        """
        frames = self._frames
        undecodable = self._records.undecodable
        return TableFacts(
            totals=frames.totals(
                undecodable_records=undecodable,
                skipped_packets=self._skipped,
                beyond_bounds=self._records.beyond,
            ),
            withheld_credentials=frames.withheld_credentials(),
            timeline=frames.timeline(),
            sources=frames.sources(first_sources(self._packets)),
            source_files=len(self._packets),
            apis=frames.apis(),
            clients=frames.clients(),
            version_uses=frames.version_uses(),
            topics=self._records.facts(),
            record_headers=self._headers.facts(),
            tagged_fields=self._tagged.facts(),
            failures=frames.failures.earliest(),
            failure_counts=frames.failures.counts(),
            lenient_uses=frames.lenient_uses(),
            connections=self._connections.facts(given_brokers.named()),
        )
