"""Integers of variable length: groups of 7 bits, lowest first, with bit 8 set in all but the last.

Unsigned varints encode the lengths and tags of KIP-482. Zig-zag varints and varlongs encode the
numbers in record batches.
"""

from __future__ import annotations

import base64
import uuid

from flexwire.errors import DecodeError
from flexwire.wire.limits import VARINT_BITS, VARINT_BYTES, VARLONG_BITS, VARLONG_BYTES


def write_unsigned_varint(value: int) -> bytes:
    """Encode ``value``, from 0 to 2**32-1 (2**64-1 for a varlong), in as few bytes as possible.

    >>> write_unsigned_varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_unsigned_varint(
    data: bytes,
    position: int,
    end: int,
    *,
    lenient: bool = False,
    most_bytes: int = VARINT_BYTES,
    bits: int = VARINT_BITS,
) -> tuple[int, int]:
    """Decode the varint at ``position``. Return the value and the position after it.

    Strict reading refuses forms that are too long (whose last group is zero) and bits beyond
    ``bits``. Lenient reading accepts both faults, as Kafka's Java code does, and drops the
    additional bits. Raises `DecodeError` at the byte at which the varint begins.
    """
    value = 0
    start = position
    for index in range(most_bytes):
        if position >= end:
            raise DecodeError("the varint is cut off", offset=start)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if not lenient and byte == 0 and index:
                raise DecodeError("overlong varint: its last group is zero", offset=start)
            if not lenient and value >> bits:
                raise DecodeError(f"varint {value} does not fit in {bits} bits", offset=start)
            return value & ((1 << bits) - 1), position
    raise DecodeError(f"varint of more than {most_bytes} bytes", offset=start)


def read_unsigned_varlong(
    data: bytes, position: int, end: int, *, lenient: bool = False
) -> tuple[int, int]:
    """Decode the varlong at ``position``. A varlong has at most 10 bytes and 64 bits."""
    return read_unsigned_varint(
        data, position, end, lenient=lenient, most_bytes=VARLONG_BYTES, bits=VARLONG_BITS
    )


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Decode a zig-zag int32, as in record batches: 0, -1, 1, -2 are written as 0, 1, 2, 3."""
    raw, position = read_unsigned_varint(data, position, end, lenient=True)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Decode a zig-zag int64 of at most 10 bytes."""
    raw, position = read_unsigned_varlong(data, position, end, lenient=True)
    return (raw >> 1) ^ -(raw & 1), position


def write_varint(value: int) -> bytes:
    """Encode an int32 or int64 in zig-zag form.

    >>> write_varint(-1).hex(), write_varint(150).hex()
    ('01', 'ac02')
    """
    return write_unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def uuid_text(value: uuid.UUID) -> str:
    """Return a uuid as a string, in the form that Kafka prints.

    >>> from uuid import UUID
    >>> uuid_text(UUID(int=1))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid_text(text: str) -> uuid.UUID:
    """Return the uuid in the result of `uuid_text`, with or without padding. Raises `ValueError`.

    The last character contains four more bits than a uuid needs, so several texts represent the
    same uuid.

    >>> uuid_text(parse_uuid_text("AAAAAAAAAAAAAAAAAAAAAf=="))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    return uuid.UUID(bytes=raw)
