"""Lengths and counts: an int16 or int32, or in compact types an unsigned varint of one more."""

from __future__ import annotations

from flexwire.kernels.machine import load_int16, load_int32, store_int8, store_int16, store_int32
from flexwire.kernels.memory import inlined, seldom
from flexwire.kernels.wire.varint import put_groups, read_varint
from flexwire.wire.limits import LONGEST

STRING_WIDTH, WIDTH = 2, 4
"""The bytes of a length that is not compact: of a string's, and of all others."""
WIDEST = 5
"""The most bytes that a length takes."""
NULL = -1
"""The length of what is null."""


@inlined
def read_length(
    compact: int, nullable: int, width: int, position: int, end: int
) -> tuple[int, int]:
    """Read a length or count: 0 to `LONGEST`, or `NULL` where that may be."""
    if compact:
        length, position = read_varint(position, end)
        length -= 1
    elif width > end - position:
        return 0, -1
    else:
        length = load_int16(position) if width == STRING_WIDTH else load_int32(position)
        position += width
    if length > LONGEST or length < NULL or (length < 0 and not nullable):
        return 0, -1
    return length, position


@inlined
def put_length(position: int, compact: int, width: int, length: int, writing: bool) -> int:
    """Write a length or count, or `NULL`; where not ``writing``, only its place is taken."""
    if compact:
        if 0 <= length + 1 <= 0x7F:
            if writing:
                store_int8(position, length + 1)
            return position + 1
        seldom()
        return position + put_groups(position if writing else 0, length + 1)
    if writing:
        if width == STRING_WIDTH:
            store_int16(position, length)
        else:
            store_int32(position, length)
    return position + width
