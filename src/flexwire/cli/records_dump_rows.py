"""The rows that `flexwire records dump` shows for a file, in JSON form.

Each batch, record and entry has a row. Each finding has a row at the place where it was found.

For logs in the format of KIP-82's document, ``--dialect`` specifies the dialect, because the bytes
do not indicate which of the two dialects was used. Such logs may also contain messages with magic 0
or 1. A message has the same row as a record, but with typed headers.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import uuid
from contextlib import ExitStack
from datetime import date, time
from typing import TYPE_CHECKING, Any, TypeAlias

from flexwire.cli.options import InputError
from flexwire.cli.records_dump_options import NUMBERS
from flexwire.errors import (
    CodecError,
    DecodeError,
    RecordError,
    RecordHeaderError,
    UnknownMessageError,
)
from flexwire.logs.segments import (
    BatchPlace,
    Damage,
    LogFile,
    base_offset_of,
    is_checkpoint,
    open_log,
    plain_name,
    read_batch,
    read_checkpoint,
    read_offset_index,
    read_producer_snapshot,
    read_time_index,
    read_transaction_index,
    walk,
)
from flexwire.protocol.credentials import WITHHELD, withhold
from flexwire.protocol.internal_topics import InternalTopic, TypedMessage, decode_key, decode_value
from flexwire.protocol.record_types import decode_control_record
from flexwire.records import RecordBatch, TimestampType
from flexwire.records.kip82 import Kip82Message, decode_message_set
from flexwire.records.typed import Typed, TypedDialect
from flexwire.wire.batch_layout import ENTRY, LEAST_SIZES, RECORD_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.cli.records_dump_options import DumpOptions
    from flexwire.records import Record, RecordHeader
    from flexwire.records.conventions import Convention


Row: TypeAlias = dict[str, Any]

_OF_METADATA = "a record of the cluster's metadata"
_INT32_MODULUS = 2**31
_UUID_SIZE = 16


def finding_row(damage: Damage) -> Row:
    """Return the row for damage in a file."""
    return {"type": "finding", **damage._asdict()}


def sequence_of(batch: RecordBatch, offset: int) -> int:
    """Return the sequence of the record at an offset.

    After the highest int32, the sequence restarts at 0.
    """
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + offset - batch.base_offset) % _INT32_MODULUS


class RecordRows:
    """Make the rows for the records of one log, batch by batch."""

    def __init__(self, path: Path, options: DumpOptions) -> None:
        self._options = options
        self._topic = options.decode or _topic_of(path)
        # This decoder is used even if another decoder was requested.
        self._is_metadata = InternalTopic.METADATA in {self._topic, _topic_of(path)}
        # The number of withheld credentials in the current record.
        self._withheld = 0
        self._last_offset: int | None = None

    def __call__(self, batch: RecordBatch) -> Iterator[Row]:
        """Yield the rows for a batch: records, and the gaps between their offsets."""
        try:
            records = batch.records
        except RecordError as error:
            yield finding_row(Damage(error.offset, batch.size, error.reason))
            return
        for record in records:
            if not self._options.has_record(record.offset, record.timestamp):
                continue
            last_offset, self._last_offset = self._last_offset, record.offset
            # If only a part was requested, gaps are expected.
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
            yield finding_row(Damage(batch.position, batch.size, reason))

    def _content(self, record: Record) -> tuple[Any, Any, str | None]:
        """Return the key and the value, and the error if either cannot be decoded."""
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
            # The type or version may be from a newer Kafka release, so this is not an error.
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
        """Return the bytes of an undecodable value, but withhold the bytes of metadata.

        Any of these bytes may be part of a credential.
        """
        is_secret = self._is_metadata and not self._options.show_credentials
        if record.value is not None and (is_secret or self._is_secret(record)):
            return self._withhold(reason)
        return _undecoded(record.value, reason)

    def _is_secret(self, record: Record) -> bool:
        """Return whether a record without a topic is a metadata record with a credential."""
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
    """Return the headers of one record, as a convention reads them."""
    try:
        convention = convention.for_record(headers)
    except RecordHeaderError as error:
        return [_misfit(header, error) for header in headers]
    return [_typed_header(convention, header) for header in headers]


def _typed_header(convention: Convention, header: RecordHeader) -> Row:
    """Return one record header. For an invalid header, return the bytes and the reason."""
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
    """Return the row for a record header whose value has a type."""
    return {"key": key, "type": value.type.value, "value": _plain(value.value)}


def _misfit(header: RecordHeader, error: RecordHeaderError) -> Row:
    key, value = header
    return {"key": show_bytes(key, "auto"), "value": _undecoded(value, error.reason)}


def _plain(value: Any) -> Any:
    """Return a header's value in JSON form."""
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
    # A char may be half of a surrogate pair. JSON text cannot contain such a half.
    return text.encode(errors="backslashreplace").decode()


def _form(decoded: TypedMessage | None, data: bytes | None) -> Any:
    return show_bytes(data, "base64") if decoded is None else decoded.to_json()


def _topic_of(path: Path) -> InternalTopic | None:
    if plain_name(path).endswith(".checkpoint"):
        return InternalTopic.METADATA
    name = path.absolute().parent.name.rpartition("-")[0]
    return next((topic for topic in InternalTopic if topic.topic == name), None)


# The notation for bytes in JSON that loses nothing.


def show_bytes(data: bytes | None, notation: str) -> Any:
    """Return bytes in a notation. None becomes null.

    Bytes that are not UTF-8, or whose size is not that of the number, become ``{"base64": …}``.
    Different bytes are therefore never shown in the same way.
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
    """Return a number.

    NaN, Infinity and -Infinity become text, because JSON cannot represent them.
    """
    return number if math.isfinite(number) else json.dumps(number)


def kip82_rows(log: LogFile, options: DumpOptions) -> Iterator[Row]:
    """Yield the rows for a log by message. Damage becomes a finding, and reading continues."""
    dialect = TypedDialect(options.dialect)
    at = 0
    while at < log.size and (options.max_bytes is None or at < options.max_bytes):
        options.hear(log.path, at, log.size)
        head = log.read(at, ENTRY.size)
        size = ENTRY.size + ENTRY.unpack(head)[1] if len(head) == ENTRY.size else 0
        if not LEAST_SIZES[0] <= size <= log.size - at:
            reason = "no complete message begins here"
            yield finding_row(Damage(at, log.size - at, reason))
            return
        try:
            data, most = log.read(at, size), options.most_inflated
            messages = list(decode_message_set(data, max_inflated=most, dialect=dialect))
        except RecordError as error:
            yield finding_row(Damage(at, size, error.reason))
        else:
            for message in messages:
                if options.has_record(message.offset, message.timestamp):
                    yield from _message_rows(message, at, size, options)
        at += size
    options.hear(log.path, log.size, log.size)


def _message_rows(message: Kip82Message, at: int, size: int, options: DumpOptions) -> Iterator[Row]:
    row = {
        "type": "record",
        "offset": message.offset,
        "timestamp": message.timestamp,
        "sequence": -1,
        "keySize": -1 if message.key is None else len(message.key),
        "valueSize": -1 if message.value is None else len(message.value),
        "key": show_bytes(message.key, options.key_notation),
        "value": show_bytes(message.value, options.value_notation),
    }
    try:
        headers = [typed_value(key, typed) for key, typed in message.headers]
    except DecodeError as error:
        yield {**row, "headers": []}
        yield finding_row(Damage(at, size, f"offset {message.offset}: {error}"))
        return
    yield {**row, "headers": headers}


_CHECKPOINT = "*-checkpoint"
_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def rows(path: Path, options: DumpOptions) -> Iterator[Row]:
    """Yield the rows for a file of any kind and its findings, in the order of the file.

    Raises `InputError` for a file of an unknown kind, and `CaptureError` for a file that cannot be
    read.
    """
    if not is_known(path):
        kinds = ", ".join(f"*.{kind}" for kind in (*_LOGS, *_BESIDE) if kind != _CHECKPOINT)
        kinds += ", leader-epoch-checkpoint, *-offset-checkpoint"
        raise InputError(f"{path} is not one of {kinds}")
    is_log = _kind(path) in _LOGS
    with open_log(path) as file:
        yield {"type": "file", "file": str(path), "size": file.size, **_named_for(path)}
        of_log = _log_rows if options.dialect is None else kip82_rows
        for row in (of_log if is_log else _beside_rows)(file, options):
            yield {"type": row["type"], "file": str(path), **row}


def is_known(path: Path) -> bool:
    """Return whether the name of a file indicates that it can be read."""
    return _kind(path) in {*_LOGS, *_BESIDE}


def _kind(path: Path) -> str:
    return _CHECKPOINT if is_checkpoint(path) else plain_name(path).rpartition(".")[2]


def _named_for(path: Path) -> Row:
    snapshot = _SNAPSHOT_NAME.fullmatch(plain_name(path))
    if snapshot:
        return {"endOffset": int(snapshot[1]), "epoch": int(snapshot[2])}
    offset = base_offset_of(path)
    if offset is None:
        return {}
    # A snapshot of producers contains their state up to its offset.
    return {"endOffset" if _kind(path) == "snapshot" else "baseOffset": offset}


# The code below is for logs and snapshots.


def _log_rows(log: LogFile, options: DumpOptions) -> Iterator[Row]:
    next_offset = base_offset_of(log.path) or 0
    records = RecordRows(log.path, options)
    for batch in walk(log):
        if options.max_bytes is not None and batch.position >= options.max_bytes:
            break
        options.hear(log.path, batch.position, log.size)
        if isinstance(batch, Damage):
            yield finding_row(batch)
            continue
        # A wrapper message does not contain its first offset.
        first_offset = batch.base_offset if batch.magic == RECORD_BATCH else next_offset
        if options.offsets is not None and first_offset > options.offsets[1]:
            break
        if batch.base_offset < next_offset:
            reason = f"base offset {batch.base_offset}, expected {next_offset} or more"
            yield finding_row(Damage(batch.position, batch.size, reason))
        next_offset = batch.last_offset + 1
        if options.has_offsets(first_offset, batch.last_offset) and (
            options.times is None or batch.max_timestamp >= options.times[0]
        ):
            yield from _batch_rows(log, batch, options, records)
    options.hear(log.path, log.size, log.size)
    if not options.is_partial:
        yield from _index_findings(log, options)


def _batch_rows(
    log: LogFile, place: BatchPlace, options: DumpOptions, records: RecordRows
) -> Iterator[Row]:
    damage = None
    try:
        batch = read_batch(log, place, max_inflated=options.most_inflated)
    except RecordError as error:
        damage = Damage(place.position, place.size, error.reason)
        yield finding_row(damage)
        try:
            # Bytes with a wrong CRC may still be readable.
            batch = read_batch(log, place, check_crc=False, max_inflated=options.most_inflated)
        except RecordError:
            return
    record_rows = records(batch) if options.deep else iter(())
    first = next(record_rows, None)
    is_in_time = first is not None if options.deep else _begins_in_time(batch, options)
    if options.times is None or is_in_time:
        yield {"type": "batch", **_batch_row(batch), "isValid": damage is None}
        if first is not None:
            yield first
        yield from record_rows


def _begins_in_time(batch: RecordBatch, options: DumpOptions) -> bool:
    """Return whether, by its header, a batch may contain a record before the end of the range."""
    if options.times is None or batch.magic != RECORD_BATCH or batch.has_delete_horizon:
        return True
    is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    first_time = batch.max_timestamp if is_append_time else batch.base_timestamp
    return first_time <= options.times[1]


def _batch_row(batch: RecordBatch) -> Row:
    horizon = batch.base_timestamp if batch.has_delete_horizon else None
    return {
        "position": batch.position,
        "size": batch.size,
        "magic": batch.magic,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": sequence_of(batch, batch.last_offset),
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": horizon,
        "timestampType": batch.timestamp_type.value,
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "compression": batch.compression.value,
        "crc": batch.crc,
    }


# The code below is for indexes and other files next to a log.


def _beside_rows(file: LogFile, _options: DumpOptions) -> Iterator[Row]:
    """Yield the entries of a file that is not a log, and the findings in the file."""
    kind, read_entries = _BESIDE[_kind(file.path)]
    with ExitStack() as stack:
        log_path = _beside(file.path, "log")
        has_log = log_path != file.path and log_path.exists()
        log = stack.enter_context(open_log(log_path)) if has_log else None
        for entry in read_entries(file, log):
            if isinstance(entry, Damage):
                yield finding_row(entry)
            else:
                fields = entry if isinstance(entry, dict) else entry._asdict()
                yield {"type": kind, **fields}


def _index_findings(log: LogFile, options: DumpOptions) -> Iterator[Row]:
    """Compare a log with its indexes, unless the user also requested the indexes."""
    if base_offset_of(log.path) is None:
        return
    for kind in ("index", "timeindex"):
        path = _beside(log.path, kind)
        if path not in options.named and path.exists():
            with open_log(path) as index:
                for entry in _BESIDE[kind][1](index, log):
                    if isinstance(entry, Damage):
                        yield {**finding_row(entry), "file": str(path)}


def _beside(path: Path, kind: str) -> Path:
    """Return the file of another kind that belongs to the same segment."""
    return path.with_name(path.name.replace(f".{_kind(path)}", f".{kind}", 1))


def _base_offset(index: LogFile) -> int:
    base_offset = base_offset_of(index.path)
    if base_offset is None:
        raise InputError(
            f"{index.path}: the name of an index must be its base offset in twenty digits"
        )
    return base_offset


_BESIDE: dict[str, tuple[str, Callable[[LogFile, LogFile | None], Iterator[Any]]]] = {
    "index": (
        "offset-index-entry",
        lambda index, log: read_offset_index(index, _base_offset(index), log),
    ),
    "timeindex": (
        "time-index-entry",
        lambda index, log: read_time_index(index, _base_offset(index), log),
    ),
    "txnindex": ("aborted-transaction", lambda index, _: read_transaction_index(index)),
    "snapshot": ("producer", lambda snapshot, _: read_producer_snapshot(snapshot)),
    _CHECKPOINT: ("checkpoint-entry", lambda checkpoint, _: read_checkpoint(checkpoint)),
}
_LOGS = ("log", "checkpoint")
