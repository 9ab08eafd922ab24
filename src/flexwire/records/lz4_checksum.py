"""The lz4 frame header of old clients, whose checksum covers four bytes too many.

Clients that wrote magic 0 computed the header checksum over the frame's magic number as well
(KAFKA-3160). A reader of the lz4 format refuses such a frame, so its one wrong byte is put right.
"""

from __future__ import annotations

from flexwire.errors import RecordError
from flexwire.records.bounds import lz4_header_size
from flexwire.wire.frame_layout import (
    XXH_PRIME_1,
    XXH_PRIME_2,
    XXH_PRIME_3,
    XXH_PRIME_4,
    XXH_PRIME_5,
)

_LONGEST = 15


def with_right_checksum(data: bytes) -> bytes:
    """Give the frame with the checksum byte of its header as the lz4 format has it.

    Raises `RecordError` where the byte is neither the right one nor the old clients' one.
    """
    last = lz4_header_size(data) - 1
    if len(data) <= last:
        raise RecordError("the lz4 frame header is cut off")
    right = header_checksum(data[4:last])
    if data[last] == right:
        return data
    if data[last] != header_checksum(data[:last]):
        raise RecordError(f"lz4 frame header checksum is {data[last]:#04x}, expected {right:#04x}")
    return data[:last] + bytes([right]) + data[last + 1 :]


def with_old_checksum(data: bytes) -> bytes:
    """Give the frame with the checksum byte of its header as old clients want it."""
    last = lz4_header_size(data) - 1
    return data[:last] + bytes([header_checksum(data[:last])]) + data[last + 1 :]


def header_checksum(data: bytes) -> int:
    """Compute the checksum byte of a frame header: of ``data``, its flags and what follows them."""
    return xxh32_short(data) >> 8 & 0xFF


def xxh32_short(data: bytes) -> int:
    """Compute XXH32 with seed 0 of at most 15 bytes, which need none of its striped part.

    >>> hex(xxh32_short(b""))
    '0x2cc5d05'
    """
    if len(data) > _LONGEST:
        raise ValueError(f"{len(data)} bytes, at most {_LONGEST} are supported")
    value = XXH_PRIME_5 + len(data)
    whole = len(data) & ~3
    for index in range(0, whole, 4):
        lane = int.from_bytes(data[index : index + 4], "little")
        value = _rotate(value + lane * XXH_PRIME_3, 17) * XXH_PRIME_4
    for byte in data[whole:]:
        value = _rotate(value + byte * XXH_PRIME_5, 11) * XXH_PRIME_1
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * XXH_PRIME_2 & 0xFFFFFFFF
    value = (value ^ value >> 13) * XXH_PRIME_3 & 0xFFFFFFFF
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF
