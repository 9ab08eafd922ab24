"""Select rows by their tables and frames.

If a frame's header is enough to decide, rows that are not selected are left out before they are
decoded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.tables.records import RunRows
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from collections.abc import Collection

    from flexwire.tables.records import Rows

FRAMES, RECORDS, MESSAGES = "frames", "records", "messages"
_CARRY_RECORDS: Final = frozenset(field.message for field in RECORDS_FIELDS)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter for rows that come from frames.

    Attributes:
        table: `FRAMES`, `MESSAGES` or `RECORDS`, or None for all three.
        messages: only frames with one of these messages.
        client_ids: only frames with these client ids.
        topics: only records of these topics, by their names.
        from_us: only frames whose last byte was captured at or after this time.
        before_us: only frames whose last byte was captured before this time.
    """

    table: str | None = None
    messages: Collection[str] | None = None
    client_ids: Collection[str] | None = None
    topics: Collection[str] | None = None
    from_us: int | None = None
    before_us: int | None = None

    def gives(self, table: str) -> bool:
        """Return whether rows of a table (`FRAMES`, `MESSAGES` or `RECORDS`) are wanted."""
        return self.table is None or self.table == table

    def reads(self, message: str) -> bool:
        """Return whether bodies of a message must be decoded.

        Frame rows contain the outcomes of the frames' bodies.
        """
        return self.table != RECORDS or message in _CARRY_RECORDS

    def frames(self, paired: pa.RecordBatch) -> pa.RecordBatch:
        """Return the paired frames that are wanted."""
        masks = []
        for name, values in (("message", self.messages), ("client_id", self.client_ids)):
            if values is not None:
                masks.append(pc.is_in(paired[name], pa.array(sorted(values), pa.string())))
        times = paired["time"].cast(pa.int64())
        if self.from_us is not None:
            masks.append(pc.greater_equal(times, self.from_us))
        if self.before_us is not None:
            masks.append(pc.less(times, self.before_us))
        for mask in masks[1:]:
            masks[0] = pc.and_(masks[0], mask)
        if not masks or masks[0].true_count == len(paired):
            return paired
        return paired.filter(masks[0])

    def records(self, rows: Rows) -> Rows:
        """Return the record rows that are wanted."""
        if self.topics is None:
            return rows
        topics = pa.array(sorted(self.topics), pa.string())
        if not isinstance(rows, RunRows):
            return rows.filter(pc.is_in(rows["topic"], topics))
        is_chosen = pc.is_in(rows.facts["topic"], topics).to_numpy(zero_copy_only=False)
        if is_chosen.all():
            return rows
        own = rows.own.filter(pa.array(is_chosen.repeat(rows.counts)))
        facts = rows.facts.filter(pa.array(is_chosen))
        return replace(rows, own=own, facts=facts, counts=rows.counts[is_chosen])


EVERYTHING: Final = RowFilter()
"""The filter that keeps all rows of all tables."""
