"""Explain each byte in a field of records: batches and message sets, in the format's own terms.

The bytes have already been read as batches and the batches' crcs checked, so this module only
describes where each value is. The field does not contain the bytes of compressed records in
readable form, so these records are only counted. The command `records dump` shows compressed
records.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.errors import DecodeError, RecordError
from flexwire.records import MAX_INFLATED, Compression, decode_batches
from flexwire.records.inflation import count_bytes
from flexwire.schema.spec import camel_case
from flexwire.wire.batch_layout import HEADER_FIELDS, HEADER_SIZE, PREFIXES, RECORD_BATCH
from flexwire.wire.varint import read_varint, read_varlong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.records import Record, RecordBatch

# The types of `struct` codes, as Kafka's specs name them.
_TYPES: Final = {"q": "INT64", "i": "INT32", "h": "INT16", "B": "INT8", "I": "UINT32"}
_MESSAGE_FIELDS: Final = ("offset", "message_size", "crc", "magic", "attributes", "timestamp")
_LENGTH: Final = struct.Struct(">i")


MOST_RECORDS: Final = 1000
"""The largest number of records in a field that are explained byte by byte. Each record takes ten
lines.
"""
MOST_COUNTED: Final = MAX_INFLATED
"""The largest size in bytes at which the compressed records of a field are read and counted."""


class Meaning(NamedTuple):
    """A range of ``size`` bytes at ``start``, with their meaning and their value."""

    start: int
    size: int
    path: str
    type: str
    value: Any


def explain_records(data: bytes, path: str) -> list[Meaning] | None:
    """Return the meaning of the bytes in a field of records, or None if they are not batches.

    ``start`` is counted from the first byte of ``data``. A batch that a fetch cut off is not
    explained. Beyond `MOST_RECORDS`, the last records of each batch are only counted. When
    compressed records have taken more than `MOST_COUNTED` bytes, no other compressed batches are
    read.
    """
    meanings: list[Meaning] = []
    left, room = MOST_RECORDS, MOST_COUNTED
    try:
        for index, batch in enumerate(decode_batches(data)):
            is_packed = batch.compression is not Compression.NONE
            # Bytes that cannot be read are not explained.
            records = None if is_packed and room < 0 else batch.records
            meanings += _batch(batch, records, f"{path}[{index}]", left)
            if records is not None:
                left = max(0, left - len(records))
                room -= count_bytes(records) if is_packed else 0
    except (RecordError, DecodeError):
        return None
    return meanings


def _batch(
    batch: RecordBatch, records: list[Record] | None, path: str, most: int
) -> Iterator[Meaning]:
    """Yield the meanings of a batch's bytes. ``records`` is None if they were not read."""
    if batch.magic == RECORD_BATCH:
        yield from _fields(HEADER_FIELDS, batch, path)
        body = HEADER_SIZE
    else:
        codes = PREFIXES[batch.magic].format.removeprefix(">")
        names = dict(zip(_MESSAGE_FIELDS, codes, strict=False))
        yield from _fields(names, batch, path)
        body = PREFIXES[batch.magic].size
        if batch.compression is Compression.NONE:
            yield from _message(batch, body, path)
            return
    if records is None or batch.compression is not Compression.NONE:
        count = "records that were not read"
        if records is not None:
            count = f"{len(records)} {'record' if len(records) == 1 else 'records'}"
        content, kind = batch.data[body:], f"{count} in {batch.compression}"
        yield Meaning(batch.position + body, len(content), f"{path}.records", kind, content)
        return
    at = body
    for index in range(min(len(records), most)):
        walk = _RecordWalk(batch, at, f"{path}.records[{index}]")
        yield from walk.meanings()
        at = walk.at
    if len(records) > most:
        rest, label = batch.data[at:], f"{len(records) - most:,} more"
        yield Meaning(batch.position + at, len(rest), f"{path}.records", label, rest)


def _fields(fields: dict[str, str], batch: RecordBatch, path: str) -> Iterator[Meaning]:
    start = 0
    for name, code in fields.items():
        layout = struct.Struct(f">{code}")
        value = layout.unpack_from(batch.data, start)[0]
        kind = _TYPES[code] + (_attributes(batch) if name == "attributes" else "")
        yield Meaning(
            batch.position + start, layout.size, f"{path}.{camel_case(name)}", kind, value
        )
        start += layout.size


def _attributes(batch: RecordBatch) -> str:
    """Return a text about a batch's attributes. The text follows the type of the attributes."""
    words = [] if batch.compression is Compression.NONE else [str(batch.compression)]
    if batch.magic:
        words.append(str(batch.timestamp_type))
    words += [
        word
        for word, holds in (
            ("transactional", batch.is_transactional),
            ("control", batch.is_control),
            ("delete horizon", batch.has_delete_horizon),
        )
        if holds
    ]
    return f" ({', '.join(words)})" if words else ""


def _message(batch: RecordBatch, at: int, path: str) -> Iterator[Meaning]:
    data, place = batch.data, batch.position
    for name in ("key", "value"):
        length = _LENGTH.unpack_from(data, at)[0]
        yield Meaning(place + at, _LENGTH.size, f"{path}.{name}", "INT32 length", length)
        at += _LENGTH.size
        if length > 0:
            yield _content(place + at, f"{path}.{name}", data[at : at + length])
            at += length


class _RecordWalk:
    """Read one record of an uncompressed batch, and record the meaning of its bytes."""

    def __init__(self, batch: RecordBatch, at: int, path: str) -> None:
        self.at = at
        self._batch = batch
        self._path = path

    def meanings(self) -> Iterator[Meaning]:
        yield self._varint("length")[0]
        yield Meaning(
            self._batch.position + self.at,
            1,
            f"{self._path}.attributes",
            "INT8",
            self._batch.data[self.at],
        )
        self.at += 1
        yield self._varint("timestampDelta", read_varlong)[0]
        yield self._varint("offsetDelta")[0]
        yield from self._bytes("key")
        yield from self._bytes("value")
        meaning, count = self._varint("headers", label="count of record headers")
        yield meaning
        for index in range(count):
            yield from self._bytes(f"headers[{index}].key")
            yield from self._bytes(f"headers[{index}].value")

    def _varint(
        self,
        name: str,
        read: Callable[[bytes, int, int], tuple[int, int]] = read_varint,
        label: str = "",
    ) -> tuple[Meaning, int]:
        start, data = self.at, self._batch.data
        value, self.at = read(data, start, len(data))
        kind = label or ("VARLONG" if read is read_varlong else "VARINT")
        place = self._batch.position + start
        return Meaning(place, self.at - start, f"{self._path}.{name}", kind, value), value

    def _bytes(self, name: str) -> Iterator[Meaning]:
        meaning, length = self._varint(name, label="VARINT length")
        yield meaning
        if length > 0:
            content = self._batch.data[self.at : self.at + length]
            place = self._batch.position + self.at
            yield _content(place, f"{self._path}.{name}", content)
            self.at += length


def _content(start: int, path: str, content: bytes) -> Meaning:
    """Return the bytes of a key or value. Bytes that form valid text are shown as text."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return Meaning(start, len(content), path, "BYTES", content)
    return Meaning(start, len(content), path, "BYTES as text", text)
