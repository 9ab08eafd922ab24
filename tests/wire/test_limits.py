"""The limits and layouts of the formats agree with `struct`, the wire types and whole batches."""

from __future__ import annotations

import struct

import pytest

from flexwire.errors import EncodeError
from flexwire.records import Record, decode_batches, encode_batch
from flexwire.wire import batch_layout, limits, types
from flexwire.wire.cursor import Writer
from flexwire.wire.varint import write_unsigned_varint, write_varint

CODES = {"INT8": "b", "INT16": "h", "UINT16": "H", "INT32": "i", "UINT32": "I", "INT64": "q"}
FIELDS = list(batch_layout.HEADER_FIELDS)


@pytest.mark.parametrize("name", limits.RANGES)
def test_a_range_is_what_its_bytes_hold(name: str) -> None:
    lowest, highest = limits.RANGES[name]
    layout = struct.Struct(">" + CODES[name])
    for value in (lowest, highest):
        assert layout.unpack(layout.pack(value)) == (value,)
    for value in (lowest - 1, highest + 1):
        with pytest.raises(struct.error):
            layout.pack(value)


def test_the_longest_string_is_written_and_one_byte_more_is_not() -> None:
    for kind in (types.STRING, types.COMPACT_STRING):
        kind.write(Writer(), "a" * limits.LONGEST_STRING)
        with pytest.raises(EncodeError, match="at most 32767"):
            kind.write(Writer(), "a" * (limits.LONGEST_STRING + 1))
    assert struct.Struct(">h").pack(limits.LONGEST_STRING) == b"\x7f\xff"


def test_the_widest_varints_have_so_many_bytes() -> None:
    assert len(write_unsigned_varint(limits.UINT32_MAX)) == limits.VARINT_BYTES == 5
    assert len(write_unsigned_varint(2**64 - 1)) == limits.VARLONG_BYTES == 10
    assert len(write_varint(limits.INT64_MIN)) == limits.VARLONG_BYTES


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_the_header_stands_where_its_name_says(field: str) -> None:
    data = bytearray(encode_batch([Record(0, 0, None, b"v", [])]))
    code = batch_layout.HEADER_FIELDS[field]
    (before,) = decode_batches(bytes(data))
    if field in {"batch_length", "magic"}:
        value = getattr(before, field)
    else:
        value = 0x20 if field == "attributes" else 0x0102
        struct.pack_into(f">{code}", data, getattr(batch_layout, f"{field.upper()}_AT"), value)
    (after,) = decode_batches(bytes(data), check_crc=False)
    assert getattr(after, field) == value
    at = getattr(batch_layout, f"{field.upper()}_AT")
    assert struct.unpack_from(f">{code}", data, at) == (value,)
    for other in set(FIELDS) - {field}:
        assert getattr(after, other) == getattr(before, other)


def test_sizes_are_those_of_the_smallest_that_are_written() -> None:
    empty = encode_batch([], magic=2, base_offset=0)
    assert len(empty) == batch_layout.HEADER_SIZE == batch_layout.LEAST_SIZES[2]
    record = encode_batch([Record(0, 0, None, None, [])])
    assert len(record) - len(empty) == batch_layout.LEAST_RECORD
    header = encode_batch([Record(0, 0, None, None, [(b"", None)])])
    assert len(header) - len(record) == batch_layout.LEAST_RECORD_HEADER
    for magic in batch_layout.MESSAGE_SETS:
        message = encode_batch([Record(0, -1 if magic == 0 else 0, None, None, [])], magic=magic)
        assert len(message) == batch_layout.LEAST_SIZES[magic]


def test_each_bit_of_the_attributes_means_one_thing() -> None:
    masks = [getattr(batch_layout, name) for name in vars(batch_layout) if name.endswith("_MASK")]
    assert sum(masks) == 0x7F
    assert batch_layout.COMPRESSION_MASK >= batch_layout.ZSTD == 4
