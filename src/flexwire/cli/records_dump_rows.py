"""What `flexwire records dump` tells of a file: one row, a mapping in the form of JSON, for each
batch, record, index entry and finding.
"""

from __future__ import annotations

import base64
import math
import re
import struct
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flexwire.capture import log_index, log_state
from flexwire.capture.log_segment import (
    BatchPlace,
    Damage,
    LogFile,
    base_offset_of,
    open_log,
    plain_name,
    read_batch,
    walk,
)
from flexwire.cli.options import InputError
from flexwire.errors import CodecError, RecordError, UnknownMessageError
from flexwire.protocol.control_records import decode_control_record
from flexwire.protocol.internal_topics import InternalTopic, decode_key, decode_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.records import Record, RecordBatch

Row = dict[str, Any]

_INT32_MODULUS = 2**31
_NUMBERS = {
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "float32": ">f",
    "float64": ">d",
}
NOTATIONS = ("auto", "hex", "base64", *_NUMBERS, "uuid")
"""How the bytes of keys and values can be shown; auto is text where they are UTF-8."""

_UUID_SIZE = 16
_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to tell: everything, unless a range says less.

    ``decode`` is the topic to decode the records as, None to go by the name of the directory.
    ``offsets`` and ``times`` (in ms) are inclusive. ``hear`` is told how far a log has been read.
    """

    deep: bool = False
    offsets: tuple[int, int] | None = None
    times: tuple[int, int] | None = None
    max_bytes: int | None = None
    decode: InternalTopic | None = None
    key_notation: str = "auto"
    value_notation: str = "auto"
    read_headers: Callable[[list[tuple[bytes, bytes | None]]], list[Any]] | None = None
    named: frozenset[Path] = field(default_factory=frozenset)
    hear: Callable[[Path, int, int], None] = lambda path, done, total: None  # noqa: ARG005

    @property
    def is_partial(self) -> bool:
        """Whether a part of a log is enough, so that its indexes are not compared with it."""
        return not (self.offsets is self.times is self.max_bytes is None)

    def has_offsets(self, first: int, last: int) -> bool:
        """Whether any offset from ``first`` to ``last`` is wanted."""
        return self.offsets is None or (first <= self.offsets[1] and last >= self.offsets[0])

    def has_times(self, first: int, last: int) -> bool:
        """Whether any time from ``first`` to ``last`` is wanted."""
        return self.times is None or (first <= self.times[1] and last >= self.times[0])


def rows(path: Path, wanted: Wanted) -> Iterator[Row]:
    """Read a file, whatever kind it is, and what is wrong with it, in its order.

    Raises `InputError` for a file that is of no known kind, `CaptureError` for one that cannot be
    read.
    """
    read = _reader(path)
    with open_log(path, wanted.max_bytes) as file:
        yield {"type": "file", "file": str(path), "size": file.size, **_named_for(path)}
        for row in read(file, wanted):
            yield {"type": row.pop("type"), "file": str(path), **row}


def is_known(path: Path) -> bool:
    """Whether a file is of a kind that can be read, by its name."""
    return log_state.is_checkpoint(path) or _suffix(path) in _READERS


def _suffix(path: Path) -> str:
    return plain_name(path).rpartition(".")[2]


def _reader(path: Path) -> Callable[[LogFile, Wanted], Iterator[Row]]:
    if log_state.is_checkpoint(path):
        return _checkpoint_rows
    if not is_known(path):
        kinds = ", ".join(f".{suffix}" for suffix in _READERS)
        raise InputError(f"{path} is none of {kinds}, nor a *-checkpoint")
    return _READERS[_suffix(path)]


def _named_for(path: Path) -> Row:
    snapshot = _SNAPSHOT_NAME.fullmatch(plain_name(path))
    if snapshot:
        return {"endOffset": int(snapshot[1]), "epoch": int(snapshot[2])}
    base_offset = base_offset_of(path)
    return {} if base_offset is None else {"baseOffset": base_offset}


def _finding(damage: Damage) -> Row:
    return {"type": "finding", **damage._asdict()}


# Logs and snapshots.


def _log_rows(log: LogFile, wanted: Wanted) -> Iterator[Row]:
    next_offset = base_offset_of(log.path) or 0
    records = _RecordRows(log.path, wanted)
    for found in walk(log):
        wanted.hear(log.path, found.position, log.size)
        if isinstance(found, Damage):
            yield _finding(found)
            continue
        if wanted.offsets is not None and found.base_offset > wanted.offsets[1]:
            break
        if found.base_offset < next_offset:
            reason = f"base offset {found.base_offset}, expected {next_offset} or more"
            yield _finding(Damage(found.position, found.size, reason))
        next_offset = max(next_offset, found.last_offset + 1)
        yield from _batch_rows(log, found, wanted, records)
    wanted.hear(log.path, log.size, log.size)
    if not wanted.is_partial:
        yield from _index_findings(log, wanted)


def _batch_rows(
    log: LogFile, place: BatchPlace, wanted: Wanted, records: _RecordRows
) -> Iterator[Row]:
    is_deleting = place.base_timestamp > place.max_timestamp
    first_time = place.max_timestamp if is_deleting else place.base_timestamp
    if not wanted.has_offsets(place.base_offset, place.last_offset):
        return
    if not wanted.has_times(min(first_time, place.max_timestamp), place.max_timestamp):
        return
    damage = None
    try:
        batch = read_batch(log, place)
    except RecordError as error:
        damage = Damage(error.offset, place.size, error.reason)
        yield _finding(damage)
        try:
            # Bytes with another crc still tell what was there.
            batch = read_batch(log, place, check_crc=False)
        except RecordError:
            return
    yield {"type": "batch", **_batch_row(batch), "isValid": damage is None}
    if wanted.deep:
        yield from records(batch)


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
        "lastSequence": _sequence(batch, batch.last_offset),
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": horizon,
        "timestampType": batch.timestamp_type.value,
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "compression": batch.compression.value,
        "crc": batch.crc,
    }


def _sequence(batch: RecordBatch, offset: int) -> int:
    """Give the sequence of the record at an offset; after the highest int32 comes 0."""
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + offset - batch.base_offset) % _INT32_MODULUS


class _RecordRows:
    """The rows of one log's records, batch after batch."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self._wanted = wanted
        self._topic = wanted.decode or _topic_of(path)
        self._last_offset: int | None = None

    def __call__(self, batch: RecordBatch) -> Iterator[Row]:
        try:
            records = batch.records
        except RecordError as error:
            yield _finding(Damage(error.offset, batch.size, error.reason))
            return
        for record in records:
            if self._last_offset is not None and record.offset != self._last_offset + 1:
                yield {"type": "gap", "after": self._last_offset, "before": record.offset}
            self._last_offset = record.offset
            if not self._wanted.has_offsets(record.offset, record.offset):
                continue
            if self._wanted.has_times(record.timestamp, record.timestamp):
                yield from self._record_rows(batch, record)

    def _record_rows(self, batch: RecordBatch, record: Record) -> Iterator[Row]:
        row = {
            "type": "record",
            "offset": record.offset,
            "timestamp": record.timestamp,
            "sequence": _sequence(batch, record.offset),
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
        }
        reason = None
        if batch.is_control:
            control, reason = _control(record)
            row |= control
        else:
            key, value, reason = self._content(record)
            row |= {"key": key, "value": value}
        row["headers"] = self._headers(record)
        yield row
        if reason is not None:
            reason = f"offset {record.offset}: {reason}"
            yield _finding(Damage(batch.position, batch.size, reason))

    def _content(self, record: Record) -> tuple[Any, Any, str | None]:
        raw_key = show_bytes(record.key, self._wanted.key_notation)
        raw_value = show_bytes(record.value, self._wanted.value_notation)
        if self._topic is None:
            return raw_key, raw_value, None
        key: Any = raw_key
        try:
            typed_key = decode_key(self._topic, record.key)
            key = raw_key if typed_key is None else typed_key.to_json()
            typed_value = decode_value(self._topic, typed_key, record.value)
            return key, None if typed_value is None else typed_value.to_json(), None
        except UnknownMessageError as error:
            # A newer Kafka than the catalog's wrote it, and nothing is wrong with the file.
            return key, _undecoded(record.value, str(error)), None
        except CodecError as error:
            return key, _undecoded(record.value, str(error)), str(error)

    def _headers(self, record: Record) -> list[Row]:
        if self._wanted.read_headers is not None and record.headers:
            return self._wanted.read_headers(record.headers)
        return [
            {"key": show_bytes(key, "auto"), "value": show_bytes(value, "auto")}
            for key, value in record.headers
        ]


def _topic_of(path: Path) -> InternalTopic | None:
    if _suffix(path) == "checkpoint":
        return InternalTopic.METADATA
    name = path.absolute().parent.name.rpartition("-")[0]
    return next((one for one in InternalTopic if one.topic == name), None)


def _control(record: Record) -> tuple[Row, str | None]:
    try:
        return {"control": decode_control_record(record.key, record.value).to_json()}, None
    except (CodecError, UnknownMessageError) as error:
        reason = str(error)
        content = {"key": show_bytes(record.key, "hex"), "value": _undecoded(record.value, reason)}
        return content, None if isinstance(error, UnknownMessageError) else reason


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
    if notation in _NUMBERS and len(data) == struct.calcsize(_NUMBERS[notation]):
        (number,) = struct.unpack(_NUMBERS[notation], data)
        return number if isinstance(number, int) or math.isfinite(number) else str(number)
    if notation == "auto":
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(data).decode()}


def _undecoded(data: bytes | None, reason: str) -> Any:
    shown = {} if data is None else show_bytes(data, "base64")
    return {**shown, "reason": reason}


# Indexes and what else is beside a log.


def _index_findings(log: LogFile, wanted: Wanted) -> Iterator[Row]:
    """Compare the indexes beside a log with it, unless they are dumped themselves."""
    for suffix, findings in _INDEX_FINDINGS.items():
        path = log.path.with_name(log.path.name.replace(".log", suffix, 1))
        if path == log.path or path in wanted.named or not path.exists():
            continue
        with open_log(path) as index:
            for damage in findings(index, log):
                yield {"file": str(path), **_finding(damage)}


def _offset_index_findings(index: LogFile, log: LogFile | None) -> Iterator[Damage]:
    for read in log_index.read_offset_index(index, _base_offset(index)):
        if isinstance(read, Damage):
            yield read
        elif log is not None:
            yield from log_index.check_offset_entry(log, read)


def _time_index_findings(index: LogFile, log: LogFile | None) -> Iterator[Damage]:
    entries = []
    ...
