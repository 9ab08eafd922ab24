"""All that the report says of the tables, summed up by the tasks that write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.measures.audit import AuditSums
from flexwire.measures.connections import ConnectionSums
from flexwire.measures.frames import FrameSums
from flexwire.measures.headers import RecordHeaderSums
from flexwire.measures.parts import Parts, first_sources
from flexwire.measures.records import RecordSums
from flexwire.measures.tagged import TaggedFieldSums
from flexwire.measures.timeline import bucket_us
from flexwire.measures.undecodable import record_failures
from flexwire.survey.ranges import FRAMES, MESSAGES, RECORDS
from flexwire.tables.request_logs import FORWARDED

if TYPE_CHECKING:
    import pyarrow as pa

    from flexwire.capture.reassembly.connections import Brokers
    from flexwire.tables.records import Rows

CONNECTIONS, PACKETS = "connections", "packets"


class AnalysisSums:
    """Sums of what one task wrote, or of all that were merged into it.

    ``span_us`` is the time from the first frame of the whole capture to the last. ``spills``: the
    sums of all tasks are merged into it, and what does not fit in memory goes to disk.
    """

    def __init__(self, span_us: int, *, spills: bool = False) -> None:
        self._frames = FrameSums(bucket_us(span_us))
        self._records = RecordSums()
        self._headers = RecordHeaderSums()
        self._tagged = TaggedFieldSums()
        self._connections = ConnectionSums()
        self._packets: dict[str, int] = {}
        self._skipped = 0
        self.audit = AuditSums(spills=spills)
        """What the audit is made from."""

    def add(self, table: str, rows: Rows) -> None:
        """Take in rows of a table, in the order in which they are written."""
        if table == RECORDS:
            self._records.add(rows)
            self._headers.add(rows)
            self._frames.failures.add(record_failures(rows))
        elif table == CONNECTIONS:
            self._connections.add(rows)
            self.audit.add_connections(rows)
        elif table == PACKETS:
            self._add_packets(rows)
        elif table != FORWARDED:
            # What brokers forward they were sent, and that is in the other tables.
            self._tagged.add(rows)
            if table == FRAMES:
                self._frames.add(rows)
                self.audit.add_frames(rows)
            else:
                self.audit.add_messages(table.removeprefix(f"{MESSAGES}/"), rows)

    def _add_packets(self, rows: pa.RecordBatch) -> None:
        for row in rows.to_pylist():
            if row["reason"] is None:
                self._packets[row["source"]] = row["packets"]
            else:
                self._skipped += row["packets"]

    def merge(self, other: AnalysisSums) -> None:
        """Take in the sums of the range that follows."""
        self._frames.merge(other._frames)
        self._records.merge(other._records)
        self._headers.merge(other._headers)
        self._tagged.merge(other._tagged)
        self._connections.merge(other._connections)
        self._packets |= other._packets
        self._skipped += other._skipped
        self.audit.merge(other.audit)

    def parts(self, given: Brokers) -> Parts:
        """What the facts have of all tables; ``given`` are the ends that were given as brokers."""
        frames = self._frames
        undecodable = self._records.undecodable
        return Parts(
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
            connections=self._connections.facts(given.named()),
        )
