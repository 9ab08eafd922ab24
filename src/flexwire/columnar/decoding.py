"""Decode messages into columns: `decode_messages`.

When columns are passed to Spark, Java creates a row from every value of a struct. This takes
several times as long as decoding the column. Unwanted fields are therefore removed first. The other
fields are not copied.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

import numpy as np
import pyarrow as pa

from flexwire.arguments import refuse, to_choice, to_int, to_kind, to_list, to_version
from flexwire.columnar import layout as L  # noqa: N812 - a short prefix for about thirty names
from flexwire.columnar.program import ColumnBuffers, ColumnFullError, ColumnProgram, address
from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.columnar.reference import (
    TOO_LARGE,
    KernelRun,
    MessageRows,
    Mode,
    PermissiveResult,
    RowVersions,
    gather,
    read_row,
)
from flexwire.columnar.types import message_type
from flexwire.schema.catalog import per_catalog
from flexwire.schema.message_schemas import check_message, schemas_of
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.columnar.arrays import NumpyArray
    from flexwire.columnar.reference import Kernel
    from flexwire.schema.message_schemas import MessageLike
    from flexwire.wire.schema import Schema

    Path: TypeAlias = tuple[str, ...]


_ENDS = 2

_KNOWN_COLUMNS = RECORD_COLUMNS | BATCH_COLUMNS


def versions_of(
    message: MessageLike,
    data: Any,
    versions: Any,
    encoding: Encoding,
    mode: Mode,
    *,
    is_read: bool,
) -> RowVersions:
    """Check the input of a function that decodes or encodes. Return the version of each row."""
    check_message(message)
    to_kind(encoding, "encoding", Encoding)
    to_choice(mode, "mode", get_args(Mode))
    if not isinstance(data, pa.Array | pa.ChunkedArray):
        name = "data" if is_read else "structs"
        raise refuse(name, "an Arrow Array or ChunkedArray (use pa.array)", data)
    if is_read and data.type not in {pa.binary(), pa.large_binary()}:
        raise refuse("data", "a binary or large_binary column", str(data.type))
    if not is_read and not pa.types.is_struct(data.type):
        raise refuse("structs", "a struct column", str(data.type))
    numbers = _numbers(versions)
    if not isinstance(numbers, int) and len(numbers) != len(data):
        raise refuse("versions", f"a version for each of {len(data)} rows", len(numbers))
    return RowVersions(numbers, len(data))


def _numbers(versions: Any) -> int | pa.Array | pa.ChunkedArray:
    """Return a single version, or a column of versions."""
    if isinstance(versions, pa.Array | pa.ChunkedArray):
        if not pa.types.is_integer(versions.type) and not pa.types.is_null(versions.type):
            raise refuse("versions", "an integer column", str(versions.type))
        try:
            return versions.cast(pa.int64())
        except pa.ArrowInvalid:
            raise refuse("versions", "64-bit integers", str(versions.type)) from None
    if isinstance(versions, np.ndarray) and versions.ndim:
        if versions.dtype.kind not in "iu" or versions.ndim > 1:
            raise refuse("versions", "a one-dimensional integer array", versions)
        return _numbers(pa.array(versions))
    if isinstance(versions, int) or not hasattr(versions, "__iter__"):
        return to_version(versions)
    several = to_list(versions, "versions", "a version, or one version per row")
    # If a list contained itself, Arrow would follow it until the process crashed.
    return pa.array(
        [None if version is None else to_version(version) for version in several], pa.int64()
    )


def column_names(columns: object) -> tuple[str, ...]:
    """Check the names of the requested record columns, and return them."""
    names = to_list(columns, "columns", "a list of column names")
    if not names:
        raise refuse("columns", "at least one", columns)
    for name in names:
        if not isinstance(name, str) or name not in _KNOWN_COLUMNS:
            raise refuse("columns", f"names of {', '.join(_KNOWN_COLUMNS)}", name)
    return tuple(names)


def range_of(ends: object, name: str) -> tuple[int | None, int | None]:
    """Return both ends of a range, each as an int64 or None."""
    if not isinstance(ends, tuple | list) or len(ends) != _ENDS:
        raise refuse(name, "a pair of first and last values (None for no limit)", ends)
    low, high = (None if end is None else to_int(end, name) for end in ends)
    return low, high


def pruned_type(kind: pa.StructType, wanted: Iterable[str]) -> pa.StructType:
    """Return a type with only the wanted fields, in the type's order (without names: all fields).

    The name of a field in a structure contains dots, as in ``topics.partitions.leader_id``, even if
    the structure is in an array. Raises `ArgumentError` for an unknown name.

    >>> inner = pa.struct({"c": pa.int8(), "d": pa.int8()})
    >>> pruned_type(pa.struct({"a": pa.int8(), "b": pa.list_(inner)}), ["b.d"])
    StructType(struct<b: list<item: struct<d: int8>>>)
    """
    paths = {tuple(name.split(".")) for name in wanted}
    kind_pruned: pa.StructType = _pruned(kind, paths, "a message") if paths else kind
    return kind_pruned


def _pruned(kind: pa.DataType, paths: set[Path], within: str) -> pa.DataType:
    if () in paths:
        return kind
    if pa.types.is_list(kind):
        element = kind.value_field
        return pa.list_(element.with_type(_pruned(element.type, paths, within)))
    there = [field.name for field in kind] if pa.types.is_struct(kind) else []
    for path in sorted(paths):
        if path[0] not in there:
            expected = f"fields of {within} ({', '.join(there) or 'it has none'})"
            raise refuse("fields", expected, path[0])
    inner = {name: {path[1:] for path in paths if path[0] == name} for name in there}
    fields = [field for field in kind if inner[field.name]]
    return pa.struct(
        [field.with_type(_pruned(field.type, inner[field.name], field.name)) for field in fields]
    )


def pruned(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert a column to a type from `pruned_type`. The remaining fields are not copied."""
    if values.type == kind:
        return values
    mask = values.is_null() if values.null_count else None
    if pa.types.is_list(kind):
        if values.offset:
            values = pa.concat_arrays([values])
        inner = pruned(values.values, kind.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, type=kind, mask=mask)
    children = [pruned(values.field(field.name), field.type) for field in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


Absent = Literal["null", "default"]


@overload
def decode_messages(
    message: MessageLike,
    data: Any,
    versions: Any,
    *,
    encoding: Encoding = ...,
    absent: Absent = ...,
    mode: Literal["FAILFAST"] = ...,
) -> pa.StructArray: ...


@overload
def decode_messages(
    message: MessageLike,
    data: Any,
    versions: Any,
    *,
    encoding: Encoding = ...,
    absent: Absent = ...,
    mode: Literal["PERMISSIVE"],
) -> PermissiveResult: ...


def decode_messages(
    message: MessageLike,
    data: Any,
    versions: Any,
    *,
    encoding: Encoding = Encoding.KAFKA,
    absent: Absent = "null",
    mode: Mode = "FAILFAST",
) -> pa.StructArray | PermissiveResult:
    """Decode a binary column that contains one message per row into a column of `message_type`.

    ``message`` is the name of a bundled message, a spec of your own, or a message class.
    ``versions`` is a single version, or an array that contains the version of each row. A null row
    remains null. A field that does not exist in a version is null or, with ``absent="default"``,
    has its default. The bytes of a row must be exactly one message, as in ``Message.decode``.

    FAILFAST raises `DecodeError`, or `UnknownMessageError` if the message does not have the
    version; a note on the error names the row. PERMISSIVE sets such rows to null, and returns a
    `PermissiveResult`: the values, and a column with the reason, path and offset of each error.

    For a ChunkedArray, the result is a ChunkedArray. It has more chunks if a column would otherwise
    exceed 2**31-1 bytes or elements. If an Array would exceed this limit, the function raises
    `CodecError`.

    >>> from flexwire.messages import RequestHeader
    >>> header = RequestHeader(request_api_key=3, correlation_id=7, client_id="ping")
    >>> column = decode_messages("RequestHeader", pa.array([header.encode(2), None]), 2)
    >>> column.field("client_id").to_pylist()
    ['ping', None]
    """
    to_choice(absent, "absent", get_args(Absent))
    row_versions = versions_of(message, data, versions, encoding, mode, is_read=True)

    def rows(chunk: pa.Array, begin: int) -> MessageRows:
        return _DecodedRows(message, chunk, row_versions.slice(begin, len(chunk)), encoding, absent)

    column: pa.StructArray | PermissiveResult = gather(data, rows, message_type(message), mode)
    return column


@per_catalog
@lru_cache(maxsize=256)
def _program(
    message: MessageLike, versions: tuple[int, ...], encoding: Encoding, absent: Absent
) -> ColumnProgram:
    served = schemas_of(message)
    return ColumnProgram(
        {version: served.schema(version, encoding) for version in versions},
        message_type(message),
        writing=False,
        absent_are_null=absent == "null",
    )


class _DecodedRows(MessageRows):
    """An array of messages that is being decoded into columns."""

    room, name = "columns_read", "decode"

    def __init__(
        self,
        message: MessageLike,
        data: pa.Array,
        versions: RowVersions,
        encoding: Encoding,
        absent: Absent,
    ) -> None:
        super().__init__(message, data, versions, encoding)
        self.absent_are_null = absent == "null"
        self.program = _program(message, self.valid_versions, encoding, absent)
        self.kind = self.program.kind
        self.offsets, self.place, self.size = _binary(data)

    def run(self, kernel: Kernel, first: int) -> tuple[pa.Array, int]:
        rows = len(self.data)
        # As a string, a uuid has 22 bytes; in a message, it has 16. No other value becomes longer.
        columns = ColumnBuffers(self.program, rows - first, 2 * self.size)
        run = KernelRun(self, self.program, first)
        run.put(self._input())
        run.put({L.C_COLUMNS: address(columns.columns), L.C_LEVELS: address(columns.levels)})
        while status := run.go(kernel):
            try:
                columns.grow(status, run.get(L.C_GROW), run.get(L.C_NEED))
            except ColumnFullError:
                rows = self._end_before(run, kernel)
        columns.learn(rows - first)
        return columns.to_arrow(rows - first), rows

    def _input(self) -> dict[int, int]:
        validity = self.data.buffers()[0] if self.data.null_count else None
        return {
            L.C_BLANK: self.program.blank,
            L.C_BRANCHES: address(self.program.branches),
            L.C_BRANCH_COUNT: self.program.branch_count,
            L.C_DATA: self.place,
            L.C_SIZE: self.size,
            L.C_OFFSETS: address(self.offsets),
            L.C_WIDE: self.offsets.dtype == np.int64,
            L.C_VALID: validity.address if validity else 0,
            L.C_VALID_BIT: self.data.offset,
            L.C_OPERATION: L.BETWEEN,
        }

    def _end_before(self, run: KernelRun, kernel: Kernel) -> int:
        """Undo the row that does not fit into a column, and end the chunk before it.

        Returns the next row. The undone row becomes the first row of the next chunk. If it is
        already the first row of this chunk, it fits into no chunk.
        """
        row, first = run.get(L.C_ROW), run.get(L.C_FIRST)
        run.put({L.C_OPERATION: self.program.refuse, L.C_ROWS: row + 1})
        run.go(kernel)
        self.refused[row] = 0 if row > first else TOO_LARGE
        return max(row, first + 1)

    def reference(self, schema: Schema, row: int) -> dict[str, Any]:
        return read_row(schema, self.data[row].as_py(), absent_are_null=self.absent_are_null)


def _binary(data: pa.Array) -> tuple[NumpyArray, int, int]:
    """Return the offsets of the rows, and the address and size of their bytes."""
    width = {pa.binary(): np.int32, pa.large_binary(): np.int64}.get(data.type)
    if width is None:
        raise TypeError(f"messages must be binary or large_binary, got {data.type}")
    _, raw, content = data.buffers()
    if not len(data):
        return np.zeros(1, np.int64), 0, 0
    size = np.dtype(width).itemsize
    offsets = np.frombuffer(raw, width, len(data) + 1, data.offset * size)
    return offsets, content.address if content else 0, content.size if content else 0
