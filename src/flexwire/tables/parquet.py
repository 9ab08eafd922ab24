"""A table's Parquet file, written so that Spark reads it like one of its own files.

Row groups are limited in rows and in bytes, because one frame may take 100 MiB and the next row a
hundred bytes. The same batches always result in the same file. Columns with repeated values use
dictionaries: facts about a connection, a frame or a record batch, and record headers. Columns whose
values never repeat use no dictionaries. Bytes columns and values in lists have no statistics,
because queries do not filter by them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexwire.storage.local import create_private_file
from flexwire.tables.keys import BEGAN_IN
from flexwire.tables.records import RunRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from flexwire.tables.records import Rows


ORIGIN = pa.field(BEGAN_IN, pa.string())
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""The maximum size of a row group in memory, in bytes.

After compression, a row group takes about a tenth of this size.
"""
ROW_GROUP_ROWS = 1 << 20
# Columns in which hardly any value repeats.
_DIFFERENT = {"offset", "timestamp", "correlation_id", "latency_us"}
# The values of these columns usually increase by one from row to row.
_GROWING = "DELTA_BINARY_PACKED"
_GROWN = frozenset({"offset", "timestamp"})
# These columns increase only in tables with one row per frame. All records of a frame share the
# same values in these columns.
_GROWN_BY_FRAME = frozenset({"time", "frame_index"})
# Parquet's names for the elements of a list, in its specification and in older Arrow.
_IN_LISTS = re.compile(r"\.list\.(?:element|item)(?=\.|$)")
_HEADERS = "headers"
_ELEMENT = ".list.element"
_TOPIC_ID = ".topic_id"


class TableWriter:
    """Write batches to a new Parquet file that only its owner may read.

    Use the writer as a context manager. After an error, no file remains. Raises `FileExistsError`
    if a file with that name exists. ``constants`` are additional text columns, each with the same
    value in all rows. With ``origins``, the column `BEGAN_IN` is added to a table whose rows have a
    connection. This column contains the analysis in which the connection began, or null if
    ``origins`` lacks the connection.

    Attributes:
        rows: the number of rows that were written.
        size: the size of the file in bytes, after it is closed.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        constants: Mapping[str, str] | None = None,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        self.rows = self.size = 0
        self._schema = schema
        self._constants = constants or {}
        self._origins = origins if lacks_origin(schema) else None
        if self._origins is not None:
            schema = schema.append(ORIGIN)
        for name in self._constants:
            schema = schema.append(pa.field(name, pa.string()))
        self._held: list[Rows] = []
        self._held_rows = self._held_bytes = 0
        leaves = dict(_leaves(schema))
        grown = _GROWN if _GROWN & leaves.keys() else _GROWN_BY_FRAME
        self._path = path
        # The file is private from its creation. Arrow opens the file again.
        create_private_file(path).close()
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[
                path for path, kind in leaves.items() if path not in grown and _repeats(path, kind)
            ],
            write_statistics=[path for path, kind in leaves.items() if _is_filtered_by(path, kind)],
            column_encoding=dict.fromkeys(leaves.keys() & grown, _GROWING),
            # Arrow's own schema adds nothing to the Parquet schema.
            store_schema=False,
        )

    def write(self, batch: Rows) -> None:
        """Write rows. They are held until they fill a row group."""
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
        whole = [rows.batch() if isinstance(rows, RunRows) else rows for rows in self._held]
        table = pa.Table.from_batches(whole, self._schema)
        if self._origins is not None:
            table = table.append_column(ORIGIN, _origins_of(table["connection"], self._origins))
        for name, value in self._constants.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value), len(table)))
        self._writer.write_table(table, row_group_size=max(1, len(table)))
        self.rows += len(table)
        self._held.clear()
        self._held_rows = self._held_bytes = 0

    def close(self) -> None:
        """Write the held rows and the end of the file. If this fails, remove the file."""
        try:
            if self._held:
                self._flush()
            self._writer.close()
        except BaseException:
            self.discard()
            raise
        self.size = self._path.stat().st_size

    def discard(self) -> None:
        """Remove the file."""
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


def without_lists(path: str) -> str:
    """Return the path of a Parquet column without the parts that represent lists.

    >>> without_lists("records.list.element.headers.list.item.key")
    'records.headers.key'
    """
    return _IN_LISTS.sub("", path)


def lacks_origin(schema: pa.Schema) -> bool:
    """Return whether rows have a connection but lack the analysis in which it began."""
    return "connection" in schema.names and BEGAN_IN not in schema.names


def _origins_of(connections: pa.ChunkedArray, origins: Mapping[str, str]) -> pa.ChunkedArray:
    names, runs = pa.array(origins, pa.string()), pa.array(origins.values(), pa.string())
    if not len(names):
        return pa.chunked_array([pa.nulls(len(connections), pa.string())])
    return pc.take(runs, pc.index_in(connections, names))


def _parts(batch: Rows) -> Iterator[Rows]:
    """Yield a batch in parts, each of which fits into a row group or is a single row."""
    fits = batch.nbytes <= ROW_GROUP_BYTES and len(batch) <= ROW_GROUP_ROWS
    if fits or len(batch) == 1:
        yield batch
        return
    half = len(batch) // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the Parquet leaf columns, with their paths and types."""
    for field in schema:
        yield from _below(field.name, field.type)


def _below(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _below(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(kind):
        yield from _below(f"{path}{_ELEMENT}", kind.value_type)
    else:
        yield path, kind


def _is_filtered_by(path: str, kind: pa.DataType) -> bool:
    if _ELEMENT not in path:
        return not _is_bytes(kind)
    # A 16-bit number is an error code, or takes no more bytes than a dictionary index.
    return pa.types.is_int16(kind) or (pa.types.is_string(kind) and path.endswith(_TOPIC_ID))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind))


def _repeats(path: str, kind: pa.DataType) -> bool:
    if _is_bytes(kind):
        return path.startswith(f"{_HEADERS}.")
    # Lists contain so many numbers that making a dictionary takes longer than compressing them.
    is_listed = _ELEMENT in path and pa.types.is_integer(kind)
    return not is_listed and path not in _DIFFERENT


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """Ranges of a column's values. Both ends of a range are included."""

    column: str
    ranges: tuple[tuple[int, int], ...]

    def has(self, values: pa.Array) -> pa.BooleanArray:
        """Return whether each value is in a range."""
        masks: list[Any] = [
            pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
            for first, last in self.ranges
        ]
        return reduce(pc.or_, masks)

    def may_be_in(self, group: pq.RowGroupMetaData) -> bool:
        """Return whether, by the file's statistics, a row group may contain a value in a range."""
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema == self.column and column.statistics is not None:
                least, most = column.statistics.min, column.statistics.max
                return any(least <= last and first <= most for first, last in self.ranges)
        return True
