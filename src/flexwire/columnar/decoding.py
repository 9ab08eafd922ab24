"""Messages into columns: `decode_messages`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
import pyarrow as pa

from flexwire.arguments import to_choice
from flexwire.columnar.buffers import Buffers, ColumnFullError
from flexwire.columnar.doors import versions_of
from flexwire.columnar.program import ColumnProgram, address
from flexwire.columnar.reference import read_row
from flexwire.columnar.rows import TOO_LARGE, Mode, Permissive, Rows, Run, Versions, gather
from flexwire.columnar.types import message_type
from flexwire.kernels.columns import layout as L  # noqa: N812 - a word in front of some thirty
from flexwire.schema.catalog import per_catalog
from flexwire.schema.served import served_of
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from flexwire.kernels.engine import Kernel
    from flexwire.schema.served import MessageLike
    from flexwire.wire.schema import Schema

    Words = np.ndarray[Any, Any]

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
) -> Permissive: ...


def decode_messages(
    message: MessageLike,
    data: Any,
    versions: Any,
    *,
    encoding: Encoding = Encoding.KAFKA,
    absent: Absent = "null",
    mode: Mode = "FAILFAST",
) -> pa.StructArray | Permissive:
    """Decode a binary column, a message in each row, into a column of `message_type`.

    ``message`` is a bundled message's name, a spec of one's own, or a message class; ``versions``
    one version, or an array with one for each row. A null gives a null. What a version does not
    have is null, or ``absent="default"``. Each message is all of its bytes, as in
    ``Message.decode``.

    FAILFAST raises `DecodeError`, or `UnknownMessageError` for what is not a version, with the row
    in a note. PERMISSIVE makes such rows null, and gives `Permissive`: the values, and a column
    with the reason, path and offset of each error.

    A ChunkedArray gives a ChunkedArray, of more chunks where a column would pass 2**31-1 bytes or
    elements; an Array that does raises `CodecError`.

    >>> from flexwire.messages import RequestHeader
    >>> header = RequestHeader(request_api_key=3, correlation_id=7, client_id="ping")
    >>> column = decode_messages("RequestHeader", pa.array([header.encode(2), None]), 2)
    >>> column.field("client_id").to_pylist()
    ['ping', None]
    """
    to_choice(absent, "absent", get_args(Absent))
    given = versions_of(message, data, versions, encoding, mode, is_read=True)

    def rows(chunk: pa.Array, begin: int) -> Rows:
        return _Decoding(message, chunk, given.slice(begin, len(chunk)), encoding, absent)

    made: pa.StructArray | Permissive = gather(data, rows, message_type(message), mode)
    return made


@per_catalog
@lru_cache(maxsize=256)
def _program(
    message: MessageLike, versions: tuple[int, ...], encoding: Encoding, absent: Absent
) -> ColumnProgram:
    served = served_of(message)
    return ColumnProgram(
        {version: served.schema(version, encoding) for version in versions},
        message_type(message),
        writing=False,
        absent_are_null=absent == "null",
    )


class _Decoding(Rows):
    """One array of messages on its way into columns."""

    name = "decode"

    def __init__(
        self,
        message: MessageLike,
        data: pa.Array,
        versions: Versions,
        encoding: Encoding,
        absent: Absent,
    ) -> None:
        super().__init__(message, data, versions, encoding)
        self.absent_are_null = absent == "null"
        self.program = _program(message, self.known, encoding, absent)
        self.kind = self.program.kind
        self.offsets, self.place, self.size = _binary(data)

    def run(self, kernel: Kernel, first: int) -> tuple[pa.Array, int]:
        rows = len(self.data)
        # A uuid takes 22 bytes as text, and 16 on the wire; nothing else becomes more.
        columns = Buffers(self.program, rows - first, 2 * self.size)
        run = Run(self, self.program, first)
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

    def _end_before(self, run: Run, kernel: Kernel) -> int:
        """Take back the row that a column is too full for, and end there; gives the next row.

        The row begins the next chunk. One that begins this chunk fits in none.
        """
        row, first = run.get(L.C_ROW), run.get(L.C_FIRST)
        run.put({L.C_OPERATION: self.program.refuse, L.C_ROWS: row + 1})
        run.go(kernel)
        self.refused[row] = 0 if row > first else TOO_LARGE
        return max(row, first + 1)

    def reference(self, schema: Schema, row: int) -> dict[str, Any]:
        return read_row(schema, self.data[row].as_py(), absent_are_null=self.absent_are_null)


def _binary(data: pa.Array) -> tuple[Words, int, int]:
    """Give the offsets of the rows, and where and how large their bytes are."""
    width = {pa.binary(): np.int32, pa.large_binary(): np.int64}.get(data.type)
    if width is None:
        raise TypeError(f"messages are binary or large_binary, not {data.type}")
    _, raw, content = data.buffers()
    if not len(data):
        return np.zeros(1, np.int64), 0, 0
    size = np.dtype(width).itemsize
    offsets = np.frombuffer(raw, width, len(data) + 1, data.offset * size)
    return offsets, content.address if content else 0, content.size if content else 0
