"""One file of a table, written as Parquet that Spark reads as its own.

Row groups are bounded by rows and by bytes, because a frame may have 100 MiB and a row beside it a
hundred bytes. The same batches give the same bytes. What repeats is in dictionaries: facts of a
connection, a frame or a record batch, and what stands in record headers; what never does is not
looked up. There are no statistics of bytes and of what stands in lists, which nobody filters by.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexwire.storage.local import create_private_file
from flexwire.tables.records import RunRows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.tables.records import Rows


ROW_GROUP_BYTES = 64 * 1024 * 1024
"""So many bytes of a row group are held in memory; compressed they are about a tenth of it."""
ROW_GROUP_ROWS = 1 << 20
# Columns in which hardly a value stands twice.
_DIFFERENT = {"offset", "timestamp", "correlation_id", "latency_us"}
# Of these mostly one more than in the row before.
_GROWING = "DELTA_BINARY_PACKED"
_GROWN = frozenset({"offset", "timestamp"})
# Likewise where each row is a frame. The records of a frame share them.
_GROWN_BY_FRAME = frozenset({"time", "frame_index"})
_HEADERS = "headers"
_ELEMENT = ".list.element"
_TOPIC_ID = ".topic_id"


class TableWriter:
    """Writes batches to a new Parquet file, which only its owner may read.

    A context: where it ends with an error there is no file. `FileExistsError` where there is one of
    that name before.

    Attributes:
        rows: how many have been written.
        size: the bytes of the file, once it is closed.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = self.size = 0
        self._schema = schema
        self._held: list[Rows] = []
        self._held_rows = self._held_bytes = 0
        leaves = dict(_leaves(schema))
        grown = _GROWN if _GROWN & leaves.keys() else _GROWN_BY_FRAME
        self._path = path
        # Private from its first byte on; Arrow opens it again.
        create_private_file(path).close()
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[
                one for one, kind in leaves.items() if one not in grown and _repeats(one, kind)
            ],
            write_statistics=[one for one, kind in leaves.items() if _is_filtered_by(one, kind)],
            column_encoding=dict.fromkeys(leaves.keys() & grown, _GROWING),
            # Arrow's own schema says nothing that Parquet's does not.
            store_schema=False,
        )

    def write(self, batch: Rows) -> None:
        """Write rows; they are held until there are enough for a row group."""
        for part in _parts(batch):
            self._hold(part)

    def _hold(self, batch: Rows) -> None:
        rows, size = self._held_rows + len(batch), self._held_bytes + batch.nbytes
        if self._held and (rows > ROW_GROUP_ROWS or size > ROW_GROUP_BYTES):
            self._flush()
        self._held.append(batch)
        self._held_rows += len(batch)
        self._held_bytes += batch.nbytes

    def _flush(self) -> None:
        whole = [one.batch() if isinstance(one, RunRows) else one for one in self._held]
        table = pa.Table.from_batches(whole, self._schema)
        self._writer.write_table(table, row_group_size=max(1, len(table)))
        self.rows += len(table)
        self._held.clear()
        self._held_rows = self._held_bytes = 0

    def close(self) -> None:
        """Write what is held, and the end of the file; where that fails there is no file."""
        try:
            if self._held:
                self._flush()
            self._writer.close()
        except BaseException:
            self.discard()
            raise
        self.size = self._path.stat().st_size

    def discard(self) -> None:
        """Take the file away."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def _parts(batch: Rows) -> Iterator[Rows]:
    """Give a batch in parts that fit in a row group, or have one row."""
    fits = batch.nbytes <= ROW_GROUP_BYTES and len(batch) <= ROW_GROUP_ROWS
    if fits or len(batch) == 1:
        yield batch
        return
    half = len(batch) // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Give the columns that Parquet has, by their paths, and their types."""
    for one in schema:
        yield from _below(one.name, one.type)


def _below(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        for one in kind:
            yield from _below(f"{path}.{one.name}", one.type)
    elif pa.types.is_list(kind):
        yield from _below(f"{path}{_ELEMENT}", kind.value_type)
    else:
        yield path, kind


def _is_filtered_by(path: str, kind: pa.DataType) -> bool:
    if _ELEMENT not in path:
        return not _is_bytes(kind)
    # What has 16 bits is an error code, or is as few bytes.
    return pa.types.is_int16(kind) or (pa.types.is_string(kind) and path.endswith(_TOPIC_ID))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind))


def _repeats(path: str, kind: pa.DataType) -> bool:
    if _is_bytes(kind):
        return path.startswith(f"{_HEADERS}.")
    # Numbers in lists are so many that to look them up takes longer than to compress them.
    is_listed = _ELEMENT in path and pa.types.is_integer(kind)
    return not is_listed and path not in _DIFFERENT


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """Values of a column from the first to the last of a range, both included, for some ranges."""

    column: str
    ranges: tuple[tuple[int, int], ...]

    def has(self, values: pa.Array) -> pa.BooleanArray:
        """Which of these values are in a range."""
        found: list[Any] = [
            pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
            for first, last in self.ranges
        ]
        return reduce(pc.or_, found)

    def may_be_in(self, group: pq.RowGroupMetaData) -> bool:
        """Whether a row group may have such a value, by what the file says of it."""
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema == self.column and column.statistics is not None:
                least, most = column.statistics.min, column.statistics.max
                return any(least <= last and first <= most for first, last in self.ranges)
        return True
