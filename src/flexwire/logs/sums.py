"""Records counted where they are read: rows of sums instead of rows of records.

A record on its way through Spark costs many times what its decoding does, so a question that only
counts and adds is answered before. The rows are those of one piece: a caller that reads several
adds them up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.columnar.record_sums import (
    KEY_BYTES,
    KEY_SIZE,
    RECORDS,
    VALUE_BYTES,
    VALUE_SIZE,
    RecordSums,
    is_sums,
)
from flexwire.logs.columns import CORRUPT, FILE, LOG_COLUMNS, REPLICA, place_of

if TYPE_CHECKING:
    from flexwire.logs.reading import LogPiece

_SIZES: Final = {KEY_SIZE: "key", VALUE_SIZE: "value"}
_SUMS: Final = {KEY_BYTES: KEY_SIZE, VALUE_BYTES: VALUE_SIZE}
_OF_PLACE: Final = ("topic", "partition", FILE, REPLICA)
_OF_BATCH: Final = (
    "magic",
    "compression",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
)
GROUPS: Final = (*_OF_PLACE, *_SIZES, *_OF_BATCH)
"""The columns by which records can be counted; a size is that of a key or value in bytes."""
SUM_COLUMNS: Final = {
    **{name: LOG_COLUMNS.get(name, pa.int32()) for name in GROUPS},
    RECORDS: pa.int64(),
    **dict.fromkeys(_SUMS, pa.int64()),
    CORRUPT: pa.string(),
}
"""All columns of sums."""


# So many rows of sums are held, and then given.
_MOST: Final = 1 << 16


class LogSums:
    """Counts records by some `GROUPS`, and gives the sums as rows of a schema."""

    def __init__(self, schema: pa.Schema, groups: tuple[str, ...]) -> None:
        self.schema = schema
        # What a place says is the same for all of a piece. There must be something to group by.
        self._keys = [one for one in groups if one not in _OF_PLACE] or ["magic"]
        self._sums = {name: size for name, size in _SUMS.items() if name in schema.names}
        self._sizes = {
            one: _SIZES[one] for one in (*self._keys, *self._sums.values()) if one in _SIZES
        }
        self._facts = [one for one in self._keys if one in _OF_BATCH]
        self.read = (*self._sizes.values(), *self._facts)
        """The columns to read."""
        self.counted = RecordSums(self._keys)
        """What kernels count, for `read_piece`."""
        self._counted: list[pa.Table] = []
        self._rows = 0

    @property
    def is_full(self) -> bool:
        """Whether the sums are to be taken before more are added: a piece may have any number."""
        return self._rows > _MOST

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the records of a batch, or add sums, whichever a reader gave."""
        if is_sums(batch):
            counted = pa.Table.from_batches([batch]).select([*self._keys, *self._sums, RECORDS])
        else:
            counted = self._count(batch)
        self._counted.append(counted)
        self._rows += len(counted)

    def _count(self, batch: pa.RecordBatch) -> pa.Table:
        columns = {name: pc.binary_length(batch.column(of)) for name, of in self._sizes.items()}
        columns |= {name: batch.column(name) for name in self._facts}
        sums = [(size, "sum") for size in self._sums.values()]
        grouped = pa.table(columns).group_by(self._keys, use_threads=False)
        counted = grouped.aggregate([*sums, ([], "count_all")])
        names = {f"{size}_sum": name for name, size in self._sums.items()}
        names["count_all"] = RECORDS
        return _renamed(counted, names)

    def take(self, piece: LogPiece) -> pa.RecordBatch:
        """Give the sums of what was added since the last time, all of one piece."""
        counted = self.counted.take()
        if counted.num_rows:
            self.add(counted)
        made: dict[str, pa.Array] = {}
        if self._counted:
            sums = (*self._sums, RECORDS)
            grouped = pa.concat_tables(self._counted).group_by(self._keys, use_threads=False)
            table = grouped.aggregate([(one, "sum") for one in sums])
            table = _renamed(table, {f"{one}_sum": one for one in sums}).combine_chunks()
            made = {name: table[name].combine_chunks() for name in table.column_names}
            # Of nulls alone there is no sum.
            made |= {one: pc.fill_null(made[one], 0) for one in sums}
        self._counted.clear()
        self._rows = 0
        count = len(made[RECORDS]) if made else 0
        place = place_of(piece)
        arrays = [
            made.get(one.name, pa.repeat(pa.scalar(place.get(one.name), one.type), count))
            for one in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _renamed(table: pa.Table, names: dict[str, str]) -> pa.Table:
    return table.rename_columns([names.get(one, one) for one in table.column_names])
