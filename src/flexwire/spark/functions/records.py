"""Decode record batches in a column into lists of records, using only Arrow.

The kernels of `flexwire.columnar` read all rows together. If a row contains anything that the
kernels do not read (a message set, damaged bytes, a truncated batch), the complete reader reads the
whole row again. Each row therefore equals the result of `decode_records` for its bytes.

An SQL function always returns the same type, whatever its arguments are. If a column names the
message, the result is therefore a Variant, with the fields of its columns. Rows with the same name
are decoded together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.arguments import refuse
from flexwire.columnar import BATCH_COLUMNS, ERROR, RECORD_COLUMNS, RecordReader, RecordSelection
from flexwire.columnar.program import MOST
from flexwire.columnar.record_columns import SizeHints
from flexwire.columnar.record_pieces import PieceReader
from flexwire.columnar.types import validate
from flexwire.errors import CodecError, FlexwireError, RecordError, UnknownMessageError
from flexwire.schema.message_schemas import check_message
from flexwire.spark.functions import headers, messages
from flexwire.spark.functions.messages import with_error
from flexwire.spark.functions.variant import VARIANT, struct_variants, variants
from flexwire.tables.records import PARTIAL_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flexwire.columnar.record_pieces import PieceGroup
    from flexwire.spark.functions.messages import FunctionSettings

    Words = np.ndarray[Any, Any]


# This is the only column that depends on the position of a row among other rows.
_POSITION = "batch_position"


def list_type(columns: Sequence[str], options: FunctionSettings) -> pa.ListType:
    """Return the type of a column of records, with an error field if requested."""
    types = RECORD_COLUMNS | BATCH_COLUMNS
    kind = pa.struct([(name, types[name]) for name in columns])
    return pa.list_(with_error(kind, options, ERROR) if options.is_permissive else kind)


def record_lists(
    columns: tuple[str, ...], options: FunctionSettings, data: pa.Array
) -> pa.ListArray:
    """Decode a binary column into a column of `list_type`. Null remains null.

    In PERMISSIVE mode, each part that cannot be decoded becomes one element, after the records of
    its row. Raises `RecordError` in FAILFAST mode, with the row in a note. Raises `CodecError` if
    all rows together contain more records than one array can hold.
    """
    if data.type not in {pa.binary(), pa.large_binary()}:
        raise refuse("data", "a binary column", str(data.type))
    validate(data, full=True)
    kind = list_type(columns, options)
    bounds = options.inflation
    selection = RecordSelection(
        columns=columns, max_inflated=bounds.max_inflated, max_ratio=bounds.ratio
    )
    starts, ends = _extents(data)
    (pieces,) = np.nonzero(ends > starts)
    content = np.frombuffer(data.buffers()[2] or b"", np.uint8)
    rows = _RecordLists(kind.value_type, len(data))
    for group in PieceReader(content, starts[pieces], ends[pieces], selection, _hints(columns)):
        of_row = pieces[group.batches["piece"]]
        rows.add(_placed(group, starts[of_row]), of_row, group.batches["rows"])
    for row in rows.unread.tolist():
        try:
            rows.put(row, _read(content[starts[row] : ends[row]], selection, options))
        except RecordError as error:
            error.add_note(f"in row {row}")
            raise
    return rows.lists(kind, data)


@lru_cache(maxsize=64)
def _hints(columns: tuple[str, ...]) -> SizeHints:  # noqa: ARG001 - the columns are the key of the cache
    """Return the sizes that a worker learned from earlier rows, including earlier Spark batches."""
    return SizeHints()


def _placed(group: PieceGroup, starts: Words) -> pa.RecordBatch:
    """Return the records of batches, with positions counted from the start of their rows."""
    at = group.records.schema.get_field_index(_POSITION)
    if at < 0:
        return group.records
    begins = pa.array(np.repeat(starts, group.batches["rows"]))
    placed = pc.subtract(group.records.column(at), begins)
    return group.records.set_column(at, _POSITION, placed)


class _RecordLists:
    """The records in the rows of a column. Rows that the kernels refuse are read again."""

    def __init__(self, kind: pa.StructType, count: int) -> None:
        self._kind = kind
        self._counts = np.zeros(count, np.int64)
        self._is_unread = np.zeros(count, np.bool_)
        self._made: list[pa.StructArray] = []
        self._of_row: list[Words] = []
        self._size = 0

    def add(self, records: pa.RecordBatch, of_row: Words, counts: Words) -> None:
        """Add the records of batches, with the row of each.

        A count of 0 means that the kernels refused the batch.
        """
        self._is_unread[of_row[counts == 0]] = True
        if len(records):
            self._keep(_structs(self._kind, records, None), np.repeat(of_row, counts))

    @property
    def unread(self) -> Words:
        """Return the rows that contain a part that the kernels refused."""
        return np.flatnonzero(self._is_unread)

    def put(self, row: int, records: list[pa.StructArray]) -> None:
        """Add the records of a row that was read separately."""
        for structs in records:
            self._keep(structs, np.full(len(structs), -1 - row))

    def _keep(self, records: pa.StructArray, of_row: Words) -> None:
        self._size += records.nbytes
        if self._size > MOST:
            error = CodecError(
                f"the records of one Arrow batch of rows take more than {MOST} bytes"
            )
            error.add_note("set spark.sql.execution.arrow.maxRecordsPerBatch to a lower number")
            raise error
        self._made.append(records)
        self._of_row.append(of_row)

    def lists(self, kind: pa.ListType, data: pa.Array) -> pa.ListArray:
        """Return the records of each row as a list."""
        of_row = np.concatenate([*self._of_row, np.zeros(0, np.int64)])
        records = pa.concat_arrays([*self._made, pa.array([], self._kind)])
        if self._is_unread.any():
            # For a row that was read again, the kernels' records are dropped. The new records are
            # given negative numbers, and take the places of their rows.
            indices = np.flatnonzero((of_row < 0) | ~self._is_unread[of_row])
            of_row = np.where(of_row < 0, -1 - of_row, of_row)[indices]
            order = np.argsort(of_row, kind="stable")
            records, of_row = records.take(pa.array(indices[order])), of_row[order]
        counts = np.bincount(of_row, minlength=len(data))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        mask = data.is_null() if data.null_count else None
        offset_array = pa.array(offsets, pa.int32())
        return pa.ListArray.from_arrays(offset_array, records, type=kind, mask=mask)


def _structs(kind: pa.StructType, records: pa.RecordBatch, errors: Any) -> pa.StructArray:
    columns = list(records.columns)
    if len(columns) < kind.num_fields:
        columns.append(pa.nulls(len(records), ERROR) if errors is None else errors)
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def _read(
    data: Words, selection: RecordSelection, options: FunctionSettings
) -> list[pa.StructArray]:
    """Read one row separately. In PERMISSIVE mode, its error is the last element."""
    reader = RecordReader(data, selection, mode=options.mode, partial=True)
    kind = list_type(selection.columns, options).value_type
    parts = [_structs(kind, records, None) for records in reader]
    wrong = [
        {"reason": damage.reason, "path": "", "offset": damage.offset} for damage in reader.errors
    ]
    wrong += _partial(reader)
    if options.is_permissive and wrong:
        errors = pa.array(wrong, ERROR)
        columns = [pa.nulls(len(errors), field.type) for field in reader.schema]
        nothing = pa.RecordBatch.from_arrays(columns, schema=reader.schema)
        parts.append(_structs(kind, nothing, errors))
    return parts


def _partial(reader: RecordReader) -> Iterator[dict[str, Any]]:
    """Yield the row for the batch that was cut off at the end of a full fetch."""
    if reader.partial is not None:
        declared_size = reader.partial.declared_size or "an unknown number of"
        reason = f"{PARTIAL_BATCH}: {reader.partial.size} of {declared_size} bytes"
        yield {"reason": reason, "path": "", "offset": reader.partial.position}


def _extents(data: pa.Array) -> tuple[Words, Words]:
    """Return where the bytes of each row begin and end. A null has no bytes."""
    if not len(data):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    width = np.int32 if data.type == pa.binary() else np.int64
    offsets = np.frombuffer(data.buffers()[1], width)[data.offset :][: len(data) + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    if data.null_count:
        nulls = data.is_null().to_numpy(zero_copy_only=False)
        ends[nulls] = starts[nulls]
    return starts, ends


def message_variants(
    options: FunctionSettings, data: pa.Array, names: pa.Array, versions: pa.Array
) -> pa.StructArray:
    """Decode messages into Variants. Null remains null.

    ``names`` contains the message of each row. Each Variant is an object with the fields of the
    result of `messages.decoded`.
    """

    def decode(name: str | None, rows: pa.Array) -> pa.StructArray:
        bytes_taken, versions_taken = data.take(rows), versions.take(rows)
        try:
            structs = messages.decoded(_named(name), options, bytes_taken, versions_taken)
        except UnknownMessageError as error:
            if not options.is_permissive:
                raise
            return _unknown(error, options, bytes_taken)
        return struct_variants(structs)

    return by_name(names, VARIANT, decode)


def encoded_messages(
    options: FunctionSettings, structs: pa.Array, names: pa.Array, versions: pa.Array
) -> pa.BinaryArray:
    """Encode structures as messages. ``names`` contains the message of each row."""

    def encode(name: str | None, rows: pa.Array) -> pa.BinaryArray:
        return messages.encoded(_named(name), options, structs.take(rows), versions.take(rows))

    return by_name(names, pa.binary(), encode)


def header_lists(
    options: FunctionSettings, header_column: pa.Array, conventions: pa.Array
) -> pa.ListArray:
    """Read record headers by the conventions whose names are in a column."""

    def read_headers(name: str | None, rows: pa.Array) -> pa.ListArray:
        return headers.header_lists(
            headers.find_convention(name), options, header_column.take(rows)
        )

    return by_name(conventions, headers.list_type(options), read_headers)


def by_name(
    names: pa.Array, kind: pa.DataType, work: Callable[[str | None, pa.Array], pa.Array]
) -> pa.Array:
    """Apply a function to all rows of each name together, and return the results in row order."""
    if names.type not in {pa.string(), pa.large_string()}:
        raise refuse("message", "a string column", str(names.type))
    coded = names.dictionary_encode("encode")
    codes = np.asarray(coded.indices)
    parts, of_row = [pa.array([], kind)], [np.zeros(0, np.int64)]
    for number, name in enumerate(coded.dictionary.to_pylist()):
        (rows,) = np.nonzero(codes == number)
        parts.append(work(name, pa.array(rows)))
        of_row.append(rows)
    order = np.argsort(np.concatenate(of_row), kind="stable")
    return pa.concat_arrays(parts).take(pa.array(order))


def _named(name: str | None) -> str:
    if name is None:
        raise UnknownMessageError("expected the name of a message, got null")
    check_message(name)
    return name


def _unknown(error: FlexwireError, options: FunctionSettings, data: pa.Array) -> pa.StructArray:
    """Return the rows that PERMISSIVE mode returns for messages that are not in the catalog."""
    validate(data, full=True)
    row = {options.corrupt: {"reason": str(error), "path": "", "offset": None}}
    error_rows = variants([row] * len(data))
    return pc.if_else(data.is_valid(), error_rows, pa.scalar(None, VARIANT))
