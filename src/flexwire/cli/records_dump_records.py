"""The rows of `flexwire records dump` for records: keys, values and record headers as JSON."""

from __future__ import annotations

import base64
import json
import math
import struct
import uuid
from datetime import date, time
from typing import TYPE_CHECKING, Any, TypeAlias

from flexwire.capture.log_segment import Damage, plain_name
from flexwire.cli.records_dump_options import NUMBERS
from flexwire.errors import CodecError, RecordError, RecordHeaderError, UnknownMessageError
from flexwire.protocol.credentials import WITHHELD, withhold
from flexwire.protocol.internal_topics import (
    InternalTopic,
    TypedMessage,
    decode_key,
    decode_value,
)
from flexwire.protocol.record_types import decode_control_record
from flexwire.records.typed import Typed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.cli.records_dump_options import DumpOptions
    from flexwire.records import Record, RecordBatch, RecordHeader
    from flexwire.records.conventions import Convention

Row: TypeAlias = dict[str, Any]

_OF_METADATA = "a record of the cluster's metadata"
_INT32_MODULUS = 2**31
_UUID_SIZE = 16


def finding(damage: Damage) -> Row:
    """Give the row of what is wrong with a file."""
    return {"type": "finding", **damage._asdict()}


def sequence_of(batch: RecordBatch, offset: int) -> int:
    """Give the sequence of the record at an offset; after the highest int32 comes 0."""
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + offset - batch.base_offset) % _INT32_MODULUS


class RecordRows:
    """The rows of one log's records, batch after batch."""

    def __init__(self, path: Path, options: DumpOptions) -> None:
        self._options = options
        self._topic = options.decode or _topic_of(path)
        # Also where another decoder was asked for.
        self._is_metadata = InternalTopic.METADATA in {self._topic, _topic_of(path)}
        # How many credentials of the record that is shown are withheld.
        self._withheld = 0
        self._last_offset: int | None = None

    def __call__(self, batch: RecordBatch) -> Iterator[Row]:
        """Give the rows of one batch: records, and the gaps between their offsets."""
        try:
            records = batch.records
        except RecordError as error:
            yield finding(Damage(error.offset, batch.size, error.reason))
            return
        for record in records:
            if not self._options.has_record(record.offset, record.timestamp):
                continue
            last_offset, self._last_offset = self._last_offset, record.offset
            # Part of a log has gaps because it was asked for.
            if last_offset not in {None, record.offset - 1} and not self._options.is_partial:
                yield {"type": "gap", "after": last_offset, "before": record.offset}
            yield from self._record_rows(batch, record)

    def _record_rows(self, batch: RecordBatch, record: Record) -> Iterator[Row]:
        row: Row = {
            "type": "record",
            "offset": record.offset,
            "timestamp": record.timestamp,
            "sequence": sequence_of(batch, record.offset),
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
        }
        reason = None
        if batch.is_control:
            control, reason = self._control(record)
            row |= control
        else:
            key, value, reason = self._content(record)
            row |= {"key": key, "value": value}
        row["headers"] = self._headers(record)
        if self._withheld:
            row["withheldCredentials"], self._withheld = self._withheld, 0
        yield row
        if reason is not None:
            reason = f"offset {record.offset}: {reason}"
            yield finding(Damage(batch.position, batch.size, reason))

    def _content(self, record: Record) -> tuple[Any, Any, str | None]:
        """Give the key and the value, and what is wrong with them."""
        topic = self._topic
        if topic is None:
            key = show_bytes(record.key, self._options.key_notation)
            if self._is_secret(record):
                return key, self._withhold(_OF_METADATA), None
            return key, show_bytes(record.value, self._options.value_notation), None
        typed_key = None
        try:
            typed_key = decode_key(topic, record.key, self._options.release)
            typed_value = decode_value(topic, typed_key, record.value, self._options.release)
        except (CodecError, UnknownMessageError) as error:
            # Of a type or version of a newer Kafka's nothing is known, so nothing is wrong with it.
            reason = None if isinstance(error, UnknownMessageError) else str(error)
            return _form(typed_key, record.key), self._undecoded(record, str(error)), reason
        if typed_value is not None and not self._options.show_credentials:
            self._withheld += withhold(typed_value.message)
        return _form(typed_key, record.key), _form(typed_value, record.value), None

    def _control(self, record: Record) -> tuple[Row, str | None]:
        try:
            decoded = decode_control_record(record.key, record.value, self._options.release)
            return {"control": decoded.to_json()}, None
        except (CodecError, UnknownMessageError) as error:
            reason = str(error)
            content = {
                "key": show_bytes(record.key, "base64"),
                "value": self._undecoded(record, reason),
            }
            return content, None if isinstance(error, UnknownMessageError) else reason

    def _undecoded(self, record: Record, reason: str) -> Any:
        """Return the bytes of a value that does not decode, but withhold those of the metadata.

        Nobody knows which of them are a credential.
        """
        is_secret = self._is_metadata and not self._options.show_credentials
        if record.value is not None and (is_secret or self._is_secret(record)):
            return self._withhold(reason)
        return _undecoded(record.value, reason)

    def _is_secret(self, record: Record) -> bool:
        """Whether a record without a topic is one of the cluster's metadata with a credential."""
        if self._options.show_credentials or record.key is not None or record.value is None:
            return False
        try:
            typed = decode_value(InternalTopic.METADATA, None, record.value)
        except (CodecError, UnknownMessageError):
            return False
        return typed is not None and withhold(typed.message) > 0

    def _withhold(self, reason: str) -> Row:
        self._withheld += 1
        return {WITHHELD: True, "reason": reason}

    def _headers(self, record: Record) -> list[Row]:
        if self._options.convention is None:
            return [
                {"key": show_bytes(key, "auto"), "value": show_bytes(value, "auto")}
                for key, value in record.headers
            ]
        return typed_headers(self._options.convention, record.headers)


def typed_headers(convention: Convention, headers: list[RecordHeader]) -> list[Row]:
    """Give the record headers of one record as a convention reads them."""
    try:
        convention = convention.for_record(headers)
    except RecordHeaderError as error:
        return [_misfit(header, error) for header in headers]
    return [_typed_header(convention, header) for header in headers]


def _typed_header(convention: Convention, header: RecordHeader) -> Row:
    """Give one of them; what does not fit, as its bytes and with the reason."""
    data = header[1]
    try:
        key = convention.key_text(header[0])
        value = None if data is None else convention.read_value(key, data)
    except RecordHeaderError as error:
        return _misfit(header, error)
    if isinstance(value, Typed):
        return typed_value(key, value)
    kind = {} if value is None else {"type": type(value).__name__}
    return {"key": key, **kind, "value": _plain(value)}


def typed_value(key: str, value: Typed) -> Row:
    """Give a record header whose value says its type."""
    return {"key": key, "type": value.type.value, "value": _plain(value.value)}


def _misfit(header: RecordHeader, error: RecordHeaderError) -> Row:
    key, value = header
    return {"key": show_bytes(key, "auto"), "value": _undecoded(value, error.reason)}


def _plain(value: Any) -> Any:
    """Give a header's value in the form of JSON."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return show_bytes(value, "auto")
    if isinstance(value, bool | int | None):
        return value
    text = value.isoformat() if isinstance(value, date | time) else str(value)
    # A char may be one half of a character, which no JSON text can hold.
    return text.encode(errors="backslashreplace").decode()


def _form(decoded: TypedMessage | None, data: bytes | None) -> Any:
    return show_bytes(data, "base64") if decoded is None else decoded.to_json()


def _topic_of(path: Path) -> InternalTopic | None:
    if plain_name(path).endswith(".checkpoint"):
        return InternalTopic.METADATA
    name = path.absolute().parent.name.rpartition("-")[0]
    return next((one for one in InternalTopic if one.topic == name), None)


# Bytes, without losing any.


def show_bytes(data: bytes | None, notation: str) -> Any:
    """Give bytes in the notation asked for; null as None.

    What is not UTF-8, and where a number is asked for has another size, is ``{"base64": …}``, so
    that no other bytes are shown alike.
    """
    if data is None:
        return None
    if notation == "hex":
        return {"hex": data.hex()}
    if notation == "uuid" and len(data) == _UUID_SIZE:
        return str(uuid.UUID(bytes=data))
    if notation in NUMBERS and len(data) == struct.calcsize(NUMBERS[notation]):
        (number,) = struct.unpack(NUMBERS[notation], data)
        return _number(number)
    if notation == "auto":
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(data).decode()}


def _undecoded(data: bytes | None, reason: str) -> Any:
    shown = {} if data is None else show_bytes(data, "base64")
    return {**shown, "reason": reason}


def _number(number: float) -> float | str:
    """Give a number, or as text what JSON has no number for: NaN, Infinity and -Infinity."""
    return number if math.isfinite(number) else json.dumps(number)
