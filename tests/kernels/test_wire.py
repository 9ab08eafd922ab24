"""The ground of all kernels reads and writes as the reference does, and refuses no less."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import DecodeError
from flexwire.kernels.wire import lengths, numbers, operations, tags, text, varint
from flexwire.wire import types
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.limits import HIGHEST_TAG_IN_BUFFER, LONGEST, RANGES, UINT32_MAX
from flexwire.wire.schema import NullableStruct, Schema
from flexwire.wire.tags import TagForm, join
from flexwire.wire.varint import (
    read_unsigned_varint,
    read_unsigned_varlong,
    write_unsigned_varint,
    write_varint,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.compiles  # of functions that are parts of kernels

# Where the number of groups changes, and where a sign would.
EDGES = sorted(
    {(1 << bits) + more for bits in (0, 7, 14, 21, 28, 31) for more in (-1, 0, 1)} | {UINT32_MAX}
)
WIDE_EDGES = sorted({*EDGES, *(1 << 7 * group for group in range(5, 10)), 2**63, 2**64 - 1})
SIGNED = sorted({sign * one for one in EDGES for sign in (1, -1) if one < 2**31} | {-(2**31)})
WIDE_SIGNED = sorted({*SIGNED, -(2**63), 2**63 - 1, 2**40, -(2**40)})
FIXED = [
    types.BOOLEAN,
    types.INT8,
    types.INT16,
    types.UINT16,
    types.INT32,
    types.UINT32,
    types.INT64,
    types.FLOAT64,
    types.UUID,
]


class Memory:
    """Bytes at an address, with a byte before and after them that nothing may touch."""

    def __init__(self, content: bytes = b"", room: int = 32) -> None:
        self._block = ctypes.create_string_buffer(b"\xa5" + content.ljust(room, b"\xa5") + b"\xa5")
        self.at = ctypes.addressof(self._block) + 1
        self.end = self.at + len(content)

    def until(self, position: int) -> bytes:
        """What was written; nothing stands around it."""
        content = bytes(self._block.raw[:-1])
        assert content[0] == 0xA5
        assert set(content[1 + position - self.at :]) == {0xA5}
        return content[1 : 1 + position - self.at]


def word(number: int) -> int:
    """The signed word that has the bits of a number."""
    return number - 2**64 if number >= 2**63 else number


def read(part: Callable[..., Any], data: bytes, *before: int) -> tuple[Any, ...] | None:
    """What a part that reads gives, and how many bytes it took; None where it refuses."""
    memory = Memory(data, len(data))
    *found, position = part(*before, memory.at, memory.end)
    return (*found, position - memory.at) if position >= 0 else None


def written(part: Callable[..., int], *arguments: int) -> bytes:
    """What a part that writes has written, at its first argument."""
    memory = Memory()
    return memory.until(part(memory.at, *arguments))


@pytest.mark.parametrize(
    ("reader", "reference", "edges"),
    [
        (varint.read_varint, read_unsigned_varint, EDGES),
        (varint.read_varlong, read_unsigned_varlong, WIDE_EDGES),
        (varint.read_zigzag_varint, read_unsigned_varint, EDGES),
        (varint.read_zigzag_varlong, read_unsigned_varlong, WIDE_EDGES),
    ],
    ids=["varint", "varlong", "zig-zag varint", "zig-zag varlong"],
)
def test_varints_are_read_as_the_reference_reads_them(
    reader: Callable[..., Any], reference: Callable[..., tuple[int, int]], edges: list[int]
) -> None:
    whole = [write_unsigned_varint(one) for one in edges]
    # With bytes after them, cut off, overlong, of too many bits, and of too many bytes.
    data = [one + b"\x80\x01" for one in whole]
    data += [one[:cut] for one in whole for cut in range(len(one))]
    data += [one[:-1] + bytes([one[-1] | 0x80, 0]) for one in whole]
    data += [b"\xff" * count + bytes([last]) for count in range(11) for last in range(0x80)]
    for one in data:
        try:
            value, position = reference(one, 0, len(one))
        except DecodeError:
            assert read(reader, one) is None, one.hex()
        else:
            assert read(reader, one) == (word(value), position), one.hex()


def test_varints_are_written_as_the_reference_writes_them() -> None:
    for number in WIDE_EDGES:
        expected = write_unsigned_varint(number)
        assert written(varint.write_varint, word(number)) == expected
        assert varint.varint_size(word(number)) == len(expected)
    for number in WIDE_SIGNED:
        expected = write_varint(number)
        assert written(varint.write_zigzag, number) == expected, number
        assert varint.zigzag_size(number) == len(expected), number
        assert varint.signed(varint.zigzag(number)) == number


@pytest.mark.parametrize("nullable", [0, 1])
@pytest.mark.parametrize("compact", [0, 1])
@pytest.mark.parametrize("kind", [types.String, types.Bytes])
def test_lengths_are_those_of_the_reference(kind: Any, compact: int, nullable: int) -> None:
    width = lengths.STRING_WIDTH if kind is types.String else lengths.WIDTH
    prefix = struct.Struct(">h" if kind is types.String else ">i")
    told = kind(compact=bool(compact), nullable=bool(nullable))
    edges = [-2, -1, *(one for one in EDGES if one < 1 << 8 * width - 1)]
    for length in edges:
        data = write_unsigned_varint((length + 1) % 2**32) if compact else prefix.pack(length)
        for one in (data, data + b"\0", *(data[:cut] for cut in range(len(data)))):
            found = read(lengths.read_length, one, compact, nullable, width)
            reader = Reader(one)
            try:
                expected = told._read_length(reader, prefix)
            except DecodeError:
                assert found is None, one.hex()
            else:
                assert found == (-1 if expected is None else expected, reader.position)
        if length >= -1:
            writer = Writer()
            told._write_length(writer, length, prefix)
            written_length = written(lengths.put_length, compact, width, length, True)
            assert written_length == writer.buffer
            assert lengths.put_length(0, compact, width, length, False) == len(writer.buffer)
            assert len(writer.buffer) <= lengths.WIDEST
    above = write_unsigned_varint(LONGEST + 2)
    assert read(lengths.read_length, above, 1, 1, width) is None


def test_numbers_are_those_of_the_reference() -> None:
    for name, (lowest, highest) in RANGES.items():
        kind = getattr(types, name)
        code = operations.operation_of(kind)
        for value in {lowest, lowest + 1, 0, 1, highest - 1, highest}:
            expected = struct.pack(f">{kind.code}", value)
            assert numbers.is_in_range(code, value)
            memory = Memory()
            assert memory.until(numbers.store_number(code, memory.at, value)) == expected
            assert numbers.load_number(code, memory.at) == value
        if name != "INT64":
            assert not numbers.is_in_range(code, lowest - 1)
            assert not numbers.is_in_range(code, highest + 1)


@pytest.mark.parametrize(("width", "code"), [(1, "b"), (2, "h"), (4, "i"), (8, "q")])
def test_arrays_of_numbers_are_turned_to_the_wire_and_back(width: int, code: str) -> None:
    values = [0, 1, -1, -(1 << 8 * width - 1)]
    on_the_wire, here = struct.pack(f">4{code}", *values), struct.pack(f"<4{code}", *values)
    for source, expected in ((on_the_wire, here), (here, on_the_wire)):
        memory, given = Memory(), Memory(source)
        numbers.turn_numbers(memory.at, given.at, 4, width)
        assert memory.until(memory.at + 4 * width) == expected
        if width == 4:
            memory = Memory()
            numbers.turn_two(memory.at, given.at)
            assert memory.until(memory.at + 8) == expected[:8]


def test_operations_are_in_the_order_that_kernels_compare() -> None:
    codes = [operations.operation_of(one) for one in FIXED]
    assert codes == sorted(set(codes))
    assert max(codes) < operations.STRING < operations.BYTES < operations.ARRAY
    assert [numbers.fixed_size(one) for one in codes] == [1, 1, 2, 2, 4, 4, 8, 8, 16]
    others: list[types.Type] = [
        types.STRING,
        types.COMPACT_NULLABLE_BYTES,
        types.RECORDS,
        types.ArrayOf(types.INT8),
    ]
    structure = Schema(name="any")
    others += [structure, NullableStruct(structure), NullableStruct(structure, tagged=True)]
    codes += [operations.operation_of(one) for one in others]
    assert len({*codes}) == len(codes) - 1  # records are bytes
    others_than_operations = {"SECTION", "INTERLEAVED", "BUFFER", "OPERATIONS", "TYPE_CHECKING"}
    numbered = [
        value
        for name, value in vars(operations).items()
        if name.isupper() and isinstance(value, int) and name not in others_than_operations
    ]
    assert sorted(numbered) == [*range(operations.OPERATIONS)]


@pytest.mark.parametrize("form", TagForm)
def test_headers_of_tagged_fields_are_those_of_the_reference(form: TagForm) -> None:
    code = operations.FORMS[form]
    highest = HIGHEST_TAG_IN_BUFFER if form is TagForm.BUFFER else 2**31 - 1
    for tag in [one for one in [0, *EDGES] if one <= highest]:
        for size in (1, 63, 64, 127, 128, 8191, 8192, 16_384):
            payload = bytes(size)
            whole = join(form, {tag: payload})
            header = whole.removesuffix(b"\0") if form is TagForm.BUFFER else whole[1:]
            header = header[:-size]
            assert written(tags.write_header, code, tag, size) == header
            assert tags.header_size(code, tag, size) == len(header)
            for rest in (b"", b"\xff"):
                memory = Memory(header + rest)
                found = tags.read_header(code, memory.at, memory.end)
                assert found == (tag, size, memory.at + len(header))
            for cut in range(len(header)):
                memory = Memory(header[:cut])
                assert tags.read_header(code, memory.at, memory.end)[2] == -1
    memory = Memory(b"\0")
    if form is TagForm.BUFFER:
        assert tags.read_header(code, memory.at, memory.end) == (-1, 0, memory.end)
        for wrong in (b"\x01\0\0", b"\x02\x80\0", b"\x02\xff\xff"):  # a size or a tag below 0
            memory = Memory(wrong)
            assert tags.read_header(code, memory.at, memory.end)[2] == -1


def test_a_tag_is_among_some_or_not() -> None:
    memory = Memory(struct.pack("<3q", 3, 5, 2**31 - 1))
    found = [one for one in range(8) if tags.is_among(one, memory.at, 3)]
    assert found == [3, 5]
    assert not tags.is_among(5, memory.at, 1)
    assert tags.is_among(2**31 - 1, memory.at, 3)


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_text_is_what_python_takes_for_utf_8() -> None:
    edges = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
    data = [bytes([first, second]) for first in range(256) for second in range(256)]
    for lead in range(0xE0, 0x100):
        for second in range(256):
            data += [bytes([lead, second, third, 0x80]) for third in edges]
            data += [bytes([lead, second, third]) for third in edges]
    # After ASCII of every length, as eight bytes are looked at together.
    data += [b"a" * count + tail for count in range(17) for tail in (b"", "é".encode(), b"\xff")]
    for one in data:
        memory = Memory(one, len(one))
        assert text.is_utf8(memory.at, len(one)) is is_text(one), one.hex()
