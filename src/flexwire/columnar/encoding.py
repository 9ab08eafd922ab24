"""Encode columns as messages, and compute message sizes: `encode_messages`, `message_sizes`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pyarrow as pa

from flexwire.columnar import layout as L  # noqa: N812 - a short prefix for about ten names
from flexwire.columnar import program
from flexwire.columnar.decoding import versions_of
from flexwire.columnar.program import ColumnBinding, ColumnProgram, address, allocate
from flexwire.columnar.reference import (
    TOO_LARGE,
    KernelRun,
    MessageRows,
    Mode,
    PermissiveResult,
    RowVersions,
    gather,
    write_row,
)
from flexwire.columnar.types import message_type
from flexwire.schema.catalog import per_catalog
from flexwire.schema.message_schemas import schemas_of
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.columnar.reference import Kernel
    from flexwire.schema.message_schemas import MessageLike
    from flexwire.wire.schema import Schema


_MARGIN = 1.1
_LEAST = 4096


@overload
def encode_messages(
    message: MessageLike,
    structs: Any,
    versions: Any,
    *,
    encoding: Encoding = ...,
    mode: Literal["FAILFAST"] = ...,
) -> pa.BinaryArray: ...


@overload
def encode_messages(
    message: MessageLike,
    structs: Any,
    versions: Any,
    *,
    encoding: Encoding = ...,
    mode: Literal["PERMISSIVE"],
) -> PermissiveResult: ...


def encode_messages(
    message: MessageLike,
    structs: Any,
    versions: Any,
    *,
    encoding: Encoding = Encoding.KAFKA,
    mode: Mode = "FAILFAST",
) -> pa.BinaryArray | PermissiveResult:
    """Encode a column of structs, such as `decode_messages` returns, into a binary column.

    A null row remains null. A null field means None, which is valid only if the field is nullable.
    If the version does not have the field, null means that there is no value to write. A column may
    have a different type if it can be converted without loss. ``versions`` and ``mode`` have the
    same meaning as in `decode_messages`. Errors are instances of `EncodeError`, and contain no
    offset.

    >>> header = [{"request_api_key": 3, "request_api_version": 0, "correlation_id": 7,
    ...            "client_id": "ping"}]
    >>> structs = pa.array(header, message_type("RequestHeader"))
    >>> encode_messages("RequestHeader", structs, 2)[0].as_py().hex()
    '0003000000000007000470696e6700'
    """
    row_versions = versions_of(message, structs, versions, encoding, mode, is_read=False)

    def rows(chunk: pa.Array, begin: int) -> MessageRows:
        return _EncodedRows(message, chunk, row_versions.slice(begin, len(chunk)), encoding)

    column: pa.BinaryArray | PermissiveResult = gather(structs, rows, pa.binary(), mode)
    return column


@overload
def message_sizes(
    message: MessageLike,
    structs: Any,
    versions: Any,
    *,
    encoding: Encoding = ...,
    mode: Literal["FAILFAST"] = ...,
) -> pa.Int64Array: ...


@overload
def message_sizes(
    message: MessageLike,
    structs: Any,
    versions: Any,
    *,
    encoding: Encoding = ...,
    mode: Literal["PERMISSIVE"],
) -> PermissiveResult: ...


def message_sizes(
    message: MessageLike,
    structs: Any,
    versions: Any,
    *,
    encoding: Encoding = Encoding.KAFKA,
    mode: Mode = "FAILFAST",
) -> pa.Int64Array | PermissiveResult:
    """Return the number of bytes that each row would have after `encode_messages`.

    >>> from flexwire.messages import RequestHeader
    >>> from flexwire.columnar import decode_messages
    >>> structs = decode_messages("RequestHeader", pa.array([RequestHeader().encode(2)]), 2)
    >>> [message_sizes("RequestHeader", structs, 2, encoding=one).to_pylist() for one in Encoding]
    [[11], [11], [11], [10], [11]]
    """
    row_versions = versions_of(message, structs, versions, encoding, mode, is_read=False)

    def rows(chunk: pa.Array, begin: int) -> MessageRows:
        return _MeasuredRows(message, chunk, row_versions.slice(begin, len(chunk)), encoding)

    column: pa.Int64Array | PermissiveResult = gather(structs, rows, pa.int64(), mode)
    return column


@per_catalog
@lru_cache(maxsize=256)
def _program(message: MessageLike, versions: tuple[int, ...], encoding: Encoding) -> ColumnProgram:
    served = schemas_of(message)
    return ColumnProgram(
        {version: served.schema(version, encoding) for version in versions},
        message_type(message),
        writing=True,
    )


class _WrittenRows(MessageRows):
    """An array of structs that is being encoded as messages."""

    def __init__(
        self, message: MessageLike, data: pa.Array, versions: RowVersions, encoding: Encoding
    ) -> None:
        super().__init__(message, data, versions, encoding)
        self.program = _program(message, self.valid_versions, encoding)
        self.binding = ColumnBinding(self.program, data)

    def start(self, first: int, ends: NumpyArray) -> KernelRun:
        """Begin a run that stores the end of each row in ``ends``."""
        run = KernelRun(self, self.program, first)
        run.put({L.C_COLUMNS: address(self.binding.columns), L.C_ENDS: address(ends)})
        return run

    def missing(self, first: int, after: int) -> NumpyArray | None:
        """Return which rows are null or were refused, or None if all rows have values."""
        refused = self.refused[first:after] != 0
        if self.data.null_count:
            refused |= np.asarray(self.data.slice(first, after - first).is_null())
        return refused if refused.any() else None

    def written(self, schema: Schema, row: int) -> bytes:
        """Encode a row with the reference executor."""
        return write_row(schema, self.data[row].as_py())


def _put_out(run: KernelRun, size: int) -> NumpyArray:
    """Return memory for the next run."""
    out = allocate(size)
    run.put({L.C_OUT: address(out), L.C_LIMIT: address(out) + size})
    return out


class _EncodedRows(_WrittenRows):
    kind = pa.binary()
    room, name = "columns_write", "encode"

    def run(self, kernel: Kernel, first: int) -> tuple[pa.Array, int]:
        rows = len(self.data)
        ends = allocate(4 * (rows - first) + 4).view(np.int32)
        ends[0] = 0
        run = self.start(first, ends)
        learned = int(self.program.data_hints[0] * (rows - first))
        out = _put_out(run, min(program.MOST, _LEAST + learned))
        while run.go(kernel):
            need, written = run.get(L.C_NEED), run.get(L.C_WRITTEN)
            if need > program.MOST:
                row = run.get(L.C_ROW)
                # A row that does not fit into any array is refused. Any other row that does not fit
                # becomes the first row of the next array.
                self.refused[row] = TOO_LARGE if row == first else 0
                rows = max(row, first + 1)
                break
            before, out = out, _put_out(run, min(program.MOST, max(need, 2 * len(out))))
            out[:written] = before[:written]
        size = int(ends[rows - first])
        self.program.data_hints[0] = _MARGIN * size / max(1, rows - first)
        missing = self.missing(first, rows)
        content = [
            None if missing is None else program.bits(~missing),
            pa.py_buffer(ends[: rows - first + 1]),
            program.buffer(out, size),
        ]
        return pa.Array.from_buffers(pa.binary(), rows - first, content), rows

    def reference(self, schema: Schema, row: int) -> bytes:
        return self.written(schema, row)


class _MeasuredRows(_WrittenRows):
    kind = pa.int64()
    room, name = "columns_write", "measure"

    def run(self, kernel: Kernel, first: int) -> tuple[pa.Array, int]:
        rows = len(self.data)
        sizes = allocate(8 * (rows - first)).view(np.int64)
        self.start(first, sizes).go(kernel)
        return pa.array(sizes, mask=self.missing(first, rows)), rows

    def reference(self, schema: Schema, row: int) -> int:
        return len(self.written(schema, row))
