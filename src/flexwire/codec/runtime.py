"""Functions that generated source calls in rare cases: for long lengths and tagged fields.

These functions read and write as `flexwire.wire` does. If `flexwire.wire` would raise an error,
these functions refuse the input. The reference executor then raises the error.
"""

from __future__ import annotations

from functools import cache, partial
from struct import Struct
from typing import TYPE_CHECKING, Any
from uuid import UUID, SafeUUID

from flexwire.errors import DecodeError
from flexwire.wire.limits import GROUP_BITS, HIGHEST_TAG, LONGEST, LONGEST_STRING
from flexwire.wire.tags import TagForm, join, objection, separate
from flexwire.wire.varint import (
    read_unsigned_varint,
    read_unsigned_varlong,
    write_unsigned_varint,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    _ReadTag = Callable[[bytes, int, int, int], tuple[int, int, int]]

__all__ = [
    "Refusal",
    "packers_of_many",
    "read_buffered_tag",
    "read_count",
    "read_interleaved_tag",
    "read_length",
    "read_string_length",
    "read_tag",
    "read_unknown_buffered_tags",
    "read_unknown_interleaved_tags",
    "read_unknown_tags",
    "to_uuid",
    "unpackers_of_many",
    "write_buffered_tags",
    "write_interleaved_tags",
    "write_length",
    "write_string_length",
    "write_tags",
]

_NO_TAGS: frozenset[int] = frozenset()
_INT16 = Struct(">h")
# Most arrays have fewer elements than this.
_MOST_KEPT = 128
_new = object.__new__
_from_bytes = int.from_bytes
# The attributes of a UUID are read-only. The class UUID itself sets its attributes in this way.
_set_int: Callable[[UUID, int], None] = vars(UUID)["int"].__set__
_set_safe: Callable[[UUID, SafeUUID], None] = vars(UUID)["is_safe"].__set__
# A byte below this value is the last byte of a varint.
_MORE = 1 << GROUP_BITS


class Refusal(Exception):  # noqa: N818 - the exception never leaves the codec, because the reference raises the error
    """Unusual input that generated source leaves to the reference executor."""


# The functions below read and write lengths.


def read_count(data: bytes, position: int) -> tuple[int, int]:
    """Return the unsigned varint at a position, and the position after it."""
    low = data[position]
    # Nearly all of these varints take one or two bytes. A call would take longer than all of this
    # code.
    if low < _MORE:
        return low, position + 1
    high = data[position + 1]
    if 0 < high < _MORE:
        return high << GROUP_BITS | low - _MORE, position + 2
    # Record batches have such lengths.
    if high and 0 < (top := data[position + 2]) < _MORE:
        low += (high - _MORE << GROUP_BITS) - _MORE
        return top << 2 * GROUP_BITS | low, position + 3
    try:
        return read_unsigned_varint(data, position, len(data))
    except DecodeError:
        raise Refusal from None


def read_length(data: bytes, position: int) -> tuple[int, int]:
    """Return the length of bytes or an array, plus 1, from its compact form. Null is refused."""
    count, position = read_count(data, position)
    if not 0 < count <= LONGEST + 1:
        raise Refusal
    return count, position


def read_string_length(data: bytes, position: int) -> tuple[int, int]:
    """Return the length of a string, plus 1, from its compact form. Null is refused."""
    count, position = read_count(data, position)
    if not 0 < count <= LONGEST_STRING + 1:
        raise Refusal
    return count, position


def write_length(length: int) -> bytes:
    """Return the compact length of bytes or of an array."""
    if length > LONGEST:
        raise Refusal
    return _write_count(length + 1)


def write_string_length(length: int) -> bytes:
    """Return the compact length of a string."""
    if length > LONGEST_STRING:
        raise Refusal
    return _write_count(length + 1)


def _write_count(count: int) -> bytes:
    if _MORE <= count < 1 << 2 * GROUP_BITS:
        return bytes((count & _MORE - 1 | _MORE, count >> GROUP_BITS))
    if _MORE <= count < 1 << 3 * GROUP_BITS:
        low = bytes((count & _MORE - 1 | _MORE, count >> GROUP_BITS & _MORE - 1 | _MORE))
        return low + bytes((count >> 2 * GROUP_BITS,))
    return write_unsigned_varint(count)


# The functions below read and write values.


def to_uuid(raw: bytes) -> UUID:
    """Return ``UUID(bytes=raw)`` for 16 bytes, without the checks for arguments of other kinds."""
    uuid = _new(UUID)
    _set_int(uuid, _from_bytes(raw))
    _set_safe(uuid, SafeUUID.unknown)
    return uuid


class _NumberFunctions(dict[int, "Callable[..., Any]"]):
    """Functions that read or write several values of one kind in one call, by number of values.

    The functions are created when they are first used. Functions for many values are not kept,
    because creating such a function takes little time compared with processing the values.
    """

    def __init__(self, method: str, before: str, code: str, less: int) -> None:
        self._method = method
        self._format = f">{before}{{}}{code}"
        self._less = less

    def __missing__(self, key: int) -> Callable[..., Any]:
        count = key - self._less
        if count < 0:
            raise Refusal
        function: Callable[..., Any] = getattr(Struct(self._format.format(count)), self._method)
        if count < _MOST_KEPT:
            self[key] = function
        return function


@cache
def unpackers_of_many(code: str, less: int = 0) -> _NumberFunctions:
    """Return the functions that read values with a `struct` code.

    The key of each function is the length on the wire, which is ``less`` more than the number of
    values.

    >>> unpackers_of_many("h", 1)[3](bytes(4), 0)
    (0, 0)
    """
    return _NumberFunctions("unpack_from", "", code, less)


@cache
def packers_of_many(before: str, code: str) -> _NumberFunctions:
    """Return the functions that write fixed-width values and then several numbers."""
    return _NumberFunctions("pack", before, code, 0)


# The functions below read the header of one tagged field. Each returns the tag, and the start and
# end of the value.


def read_tag(data: bytes, position: int, limit: int, previous: int) -> tuple[int, int, int]:
    """Return the tag and length of a field.

    ``previous`` is the preceding tag, or -1 for the first field.
    """
    tag, size = data[position], data[position + 1]
    if tag < _MORE and size < _MORE:
        position += 2
    else:
        tag, position = read_count(data, position)
        size, position = read_count(data, position)
    if tag <= previous or tag > HIGHEST_TAG or size > limit - position:
        raise Refusal
    return tag, position, position + size


def read_interleaved_tag(
    data: bytes, position: int, limit: int, previous: int
) -> tuple[int, int, int]:
    """Return a tag and a length that are stored in one varlong."""
    try:
        header, position = read_unsigned_varlong(data, position, len(data))
    except DecodeError:
        raise Refusal from None
    tag, size = separate(header)
    return _checked(tag, position, size, limit, previous)


def read_buffered_tag(
    data: bytes, position: int, limit: int, previous: int
) -> tuple[int, int, int]:
    """Return a length and a tag, as they are in an optional field buffer."""
    size, position = read_count(data, position)
    # The lowest bit of a zig-zag number is its sign.
    if size & 1:
        raise Refusal
    (tag,) = _INT16.unpack_from(data, position)
    return _checked(tag, position + _INT16.size, size >> 1, limit, previous)


def _checked(tag: int, position: int, size: int, limit: int, previous: int) -> tuple[int, int, int]:
    if tag <= previous or tag > HIGHEST_TAG or size > limit - position:
        raise Refusal
    return tag, position, position + size


# The functions below read all tagged fields of a structure that has no known tagged fields.


def _read_unknown_tags(
    read: _ReadTag, data: bytes, position: int, limit: int, refused: Collection[int] = _NO_TAGS
) -> tuple[dict[int, bytes], int]:
    count, position = read_count(data, position)
    unknown: dict[int, bytes] = {}
    tag = -1
    for _ in range(count):
        tag, position, stop = read(data, position, limit, tag)
        if tag in refused:
            raise Refusal
        unknown[tag] = data[position:stop]
        position = stop
    return unknown, position


read_unknown_tags = partial(_read_unknown_tags, read_tag)
read_unknown_interleaved_tags = partial(_read_unknown_tags, read_interleaved_tag)


def read_unknown_buffered_tags(
    data: bytes, position: int, limit: int, refused: Collection[int] = _NO_TAGS
) -> tuple[dict[int, bytes], int]:
    """Read an optional field buffer to its end."""
    unknown: dict[int, bytes] = {}
    tag = -1
    while data[position]:
        tag, position, stop = read_buffered_tag(data, position, limit, tag)
        if tag in refused:
            raise Refusal
        unknown[tag] = data[position:stop]
        position = stop
    return unknown, position + 1


def _write_tags(
    form: TagForm,
    out: bytearray,
    known: Mapping[int, bytearray],
    unknown: Mapping[int, bytes],
    taken: Collection[int] = _NO_TAGS,
) -> None:
    payloads: dict[int, bytearray | bytes] = dict(known)
    for tag, data in unknown.items():
        if type(tag) is not int or not 0 <= tag <= HIGHEST_TAG or tag in taken:
            raise Refusal
        if not isinstance(data, bytes):
            raise Refusal
        payloads[tag] = data
    if form is TagForm.BUFFER and any(objection(form, *item) for item in payloads.items()):
        raise Refusal
    out += join(form, payloads)


write_tags = partial(_write_tags, TagForm.SECTION)
write_interleaved_tags = partial(_write_tags, TagForm.INTERLEAVED)
write_buffered_tags = partial(_write_tags, TagForm.BUFFER)
