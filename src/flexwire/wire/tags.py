"""Tagged fields in bytes, in the three forms of KIP-482 and its drafts.

A form defines how the tag and the length are written before a value, and where the fields end. The
structure determines the meaning of a tag.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from flexwire.errors import short
from flexwire.wire.limits import HIGHEST_TAG, HIGHEST_TAG_IN_BUFFER
from flexwire.wire.varint import write_unsigned_varint, write_varint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from flexwire.wire.cursor import Reader, Writer
    from flexwire.wire.types import Type

_INT16 = struct.Struct(">h")
# This table spreads one run of 32 bits over every second bit of 64, by halving the runs in each
# step.
_STEPS = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)


class TagForm(Enum):
    """The notation for a structure's tagged fields.

    SECTION is at the end of the structure: a count, and for each field a tag and a length as
    unsigned varints, and a value. INTERLEAVED is at the end: a count, and for each field a varlong
    with tag and length, and a value. BUFFER is at the beginning: for each field a length as a
    zig-zag varint, an int16 tag and a value. A length of 0 ends the buffer.
    """

    SECTION = "tag section"
    INTERLEAVED = "tag section with interleaved headers"
    BUFFER = "optional field buffer"


class TagHeader(NamedTuple):
    """The bytes before the value of a tagged field. Positions are counted in the reader's data.

    In an interleaved header, the tag and the size have the same position.
    """

    tag_at: int
    tag: int
    size_at: int
    size: int


class TaggedFieldType(Protocol):
    """A tagged field, with the properties that readers of tag sections need."""

    @property
    def json_name(self) -> str:
        """The name of the field in a path."""

    @property
    def type(self) -> Type:
        """The type of the field's value."""


def interleave(tag: int, length: int) -> int:
    """Return a 64-bit number with the tag in its odd bits and the length in its even bits.

    >>> bin(interleave(tag=5, length=4))
    '0b110010'
    """
    return _spread(tag) << 1 | _spread(length)


def separate(header: int) -> tuple[int, int]:
    """Return the tag and the length of an interleaved header.

    >>> separate(0b110010)
    (5, 4)
    """
    return _gather(header >> 1), _gather(header)


def _spread(value: int) -> int:
    for shift, mask in _STEPS:
        value = (value | value << shift) & mask
    return value


def _gather(value: int) -> int:
    for shift, mask in reversed(_STEPS):
        value &= mask
        value |= value >> shift
    return value & 0xFFFFFFFF


def objection(form: TagForm, tag: int, payload: bytes | bytearray) -> str | None:
    """Return why a form does not allow a tagged field, or None if the form allows it."""
    if form is not TagForm.BUFFER:
        return None
    if tag > HIGHEST_TAG_IN_BUFFER:
        return (
            f"tag {tag} is above {HIGHEST_TAG_IN_BUFFER}, the highest in an optional field buffer"
        )
    if not payload:
        return f"tag {tag} has an empty value, but a length of 0 ends an optional field buffer"
    return None


def join(form: TagForm, payloads: Mapping[int, bytes | bytearray]) -> bytes:
    """Return the tagged fields of a structure as bytes, in ascending order of their tags.

    >>> for form in TagForm:
    ...     print(join(form, {5: b"data"}).hex(" "))
    01 05 04 64 61 74 61
    01 32 64 61 74 61
    08 00 05 64 61 74 61 00
    """
    out = bytearray()
    if form is not TagForm.BUFFER:
        out += write_unsigned_varint(len(payloads))
    for tag in sorted(payloads):
        size = len(payloads[tag])
        if form is TagForm.SECTION:
            out += write_unsigned_varint(tag) + write_unsigned_varint(size)
        elif form is TagForm.INTERLEAVED:
            out += write_unsigned_varint(interleave(tag, size))
        else:
            out += write_varint(size) + _INT16.pack(tag)
        out += payloads[tag]
    if form is TagForm.BUFFER:
        out.append(0)
    return bytes(out)


def write_tagged_fields(
    writer: Writer,
    form: TagForm,
    payloads_known: Mapping[int, bytes | bytearray],
    unknown: Mapping[int, bytes],
    taken: Collection[int],
) -> None:
    """Write the known and the unknown tagged fields. ``taken`` contains the known tags.

    Raises `EncodeError` for a value that is not an unknown tagged field, and for a field that the
    form does not allow.
    """
    payloads = dict(payloads_known)
    for tag, data in unknown.items():
        if type(tag) is not int or tag < 0 or (tag > HIGHEST_TAG and not writer.lenient):
            raise writer.error(f"expected a tag from 0 to {HIGHEST_TAG}, got {short(tag)}")
        if tag in taken:
            raise writer.error(f"tag {tag} belongs to a known field; set the field instead")
        if not isinstance(data, bytes):
            raise writer.error(f"unknown tagged field {tag}: expected bytes, got {short(data)}")
        payloads[tag] = data
    for tag, payload in payloads.items():
        reason = objection(form, tag, payload)
        if reason:
            raise writer.error(reason)
    writer.write(join(form, payloads))


def read_tagged_fields(
    reader: Reader,
    form: TagForm,
    known: Mapping[int, TaggedFieldType],
    refused: Collection[int] = (),
) -> tuple[dict[int, Any], dict[int, bytes]]:
    """Read a structure's tagged fields: the values of known tags, and the bytes of unknown tags.

    Like Kafka's Java code, the lenient reader keeps unknown fields that cannot be written. A tag
    above 31 bits is kept unchanged. A second value for a tag is kept under tag + n * 2**32, where n
    is the number of unknown fields before it. Both kinds of keys are above the highest tag. Raises
    `DecodeError`, also for a tag in ``refused``.
    """
    values: dict[int, Any] = {}
    unknown: dict[int, bytes] = {}
    previous = -1
    reader.path.append("_taggedFields")
    for start, tag, at, size in _HEADERS[form](reader):
        if tag <= previous and not reader.lenient:
            raise reader.error(f"tag {tag} follows tag {previous}; tags must ascend", start)
        if tag > HIGHEST_TAG and not reader.lenient:
            raise reader.error(f"tag {tag} is above {HIGHEST_TAG}", start)
        if tag in refused:
            raise reader.error(f"tag {tag} is not valid for this version", start)
        previous = tag
        field = known.get(tag)
        # Java never checks the size of a field with a known tag.
        if size > reader.remaining and not (reader.lenient and field is not None):
            raise reader.error(f"tag {tag} declares {size} bytes but {reader.remaining} remain", at)
        if field is None:
            # A mapping cannot contain a second value for a tag, but Java keeps a list.
            key = tag + (len(unknown) << 32) if tag in unknown else tag
            unknown[key] = _read_unknown(reader, tag, size)
        else:
            values[tag] = _read_known(reader, field, tag, size)
    reader.path.pop()
    return values, unknown


def skip_tagged_fields(reader: Reader, form: TagForm) -> None:
    """Skip the tagged fields of a structure. Raises `DecodeError`."""
    for header in tag_headers(reader, form):
        reader.visit(1)
        reader.skip(header.size)


def tag_headers(reader: Reader, form: TagForm) -> Iterator[TagHeader]:
    """Yield the header of each tagged field of a structure. Raises `DecodeError`.

    When a header is yielded, the reader is at the start of the value. Before the next header, the
    caller must move the reader to the end of the value.
    """
    return map(TagHeader._make, _HEADERS[form](reader))


def _read_unknown(reader: Reader, tag: int, size: int) -> bytes:
    reader.path.append(f"[{tag}]")
    at = reader.position
    data = reader.take(size)
    reader.annotate(at, "unknown tagged field", data)
    reader.path.pop()
    return data


def _read_known(reader: Reader, field: TaggedFieldType, tag: int, size: int) -> Any:
    section = reader.path.pop()
    reader.path.append(field.json_name)
    end, stop = reader.end, reader.position + size
    if not reader.lenient:
        reader.end = stop
    value = field.type.read(reader)
    reader.end = end
    if reader.position != stop and not reader.lenient:
        raise reader.error(f"tag {tag} declares {size} bytes but its value is shorter")
    reader.path[-1] = section
    return value


# These functions return the values of a `TagHeader`, in the same order.
_Header = tuple[int, int, int, int]


def _read_count(reader: Reader, header_bytes: int) -> int:
    start = reader.position
    count = reader.read_unsigned_varint()
    if reader.lenient and count > HIGHEST_TAG:
        # Java reads the count as an int32, so a higher number is negative and no field is read.
        count = 0
    reader.annotate(start, "tagged field count", count)
    if header_bytes * count > reader.remaining:
        raise reader.error(
            f"{count} tagged fields declared but {reader.remaining} bytes remain", start
        )
    return count


def _section_headers(reader: Reader) -> Iterator[_Header]:
    for _ in range(_read_count(reader, header_bytes=2)):
        start = reader.position
        tag = reader.read_unsigned_varint()
        reader.annotate(start, "tag", tag)
        at = reader.position
        size = reader.read_unsigned_varint()
        reader.annotate(at, "tagged field size", size)
        yield start, tag, at, size


def _interleaved_headers(reader: Reader) -> Iterator[_Header]:
    for _ in range(_read_count(reader, header_bytes=1)):
        start = reader.position
        tag, size = separate(reader.read_unsigned_varlong())
        reader.annotate(start, "tag and size", f"{tag}, {size}")
        yield start, tag, start, size


def _buffer_headers(reader: Reader) -> Iterator[_Header]:
    while True:
        at = reader.position
        raw = reader.read_unsigned_varint()
        size = raw >> 1 ^ -(raw & 1)
        if size == 0:
            reader.annotate(at, "end of optional fields", 0)
            return
        reader.annotate(at, "optional field size", size)
        if size < 0:
            raise reader.error(f"an optional field has a negative size, {size}", at)
        start = reader.position
        tag = int(reader.unpack(_INT16, "a tag")[0])
        reader.annotate(start, "tag", tag)
        if tag < 0:
            raise reader.error(f"tag {tag} is negative", start)
        yield start, tag, at, size


_HEADERS = {
    TagForm.SECTION: _section_headers,
    TagForm.INTERLEAVED: _interleaved_headers,
    TagForm.BUFFER: _buffer_headers,
}
