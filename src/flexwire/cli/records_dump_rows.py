"""What `flexwire records dump` shows of a file: rows in the form of JSON.

There is one for each batch, record and entry, and one for each finding, where it is found.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from flexwire.capture.log_index import read_offset_index, read_time_index
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
from flexwire.capture.log_state import (
    is_checkpoint,
    read_checkpoint,
    read_producer_snapshot,
    read_transaction_index,
)
from flexwire.cli.options import InputError
from flexwire.cli.records_dump_kip82 import kip82_rows
from flexwire.cli.records_dump_records import RecordRows, Row, finding, sequence_of
from flexwire.errors import RecordError
from flexwire.records import RecordBatch, TimestampType
from flexwire.wire.batch_layout import RECORD_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.cli.records_dump_options import DumpOptions

_CHECKPOINT = "*-checkpoint"
_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def rows(path: Path, options: DumpOptions) -> Iterator[Row]:
    """Read a file, whatever kind it is, and what is wrong with it, in its order.

    Raises `InputError` for a file that is of no known kind, `CaptureError` for one that cannot be
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
    """Whether a file is of a kind that can be read, by its name."""
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
    # A snapshot of producers holds what they had done up to the offset.
    return {"endOffset" if _kind(path) == "snapshot" else "baseOffset": offset}


# Logs and snapshots.


def _log_rows(log: LogFile, options: DumpOptions) -> Iterator[Row]:
    next_offset = base_offset_of(log.path) or 0
    records = RecordRows(log.path, options)
    for found in walk(log):
        if options.max_bytes is not None and found.position >= options.max_bytes:
            break
        options.hear(log.path, found.position, log.size)
        if isinstance(found, Damage):
            yield finding(found)
            continue
        # A wrapper does not say its first offset.
        first_offset = found.base_offset if found.magic == RECORD_BATCH else next_offset
        if options.offsets is not None and first_offset > options.offsets[1]:
            break
        if found.base_offset < next_offset:
            reason = f"base offset {found.base_offset}, expected {next_offset} or more"
            yield finding(Damage(found.position, found.size, reason))
        next_offset = found.last_offset + 1
        if options.has_offsets(first_offset, found.last_offset) and (
            options.times is None or found.max_timestamp >= options.times[0]
        ):
            yield from _batch_rows(log, found, options, records)
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
        yield finding(damage)
        try:
            # Bytes with another crc still show what was there.
            batch = read_batch(log, place, check_crc=False, max_inflated=options.most_inflated)
        except RecordError:
            return
    told = records(batch) if options.deep else iter(())
    first = next(told, None)
    is_in_time = first is not None if options.deep else _begins_in_time(batch, options)
    if options.times is None or is_in_time:
        yield {"type": "batch", **_batch_row(batch), "isValid": damage is None}
        if first is not None:
            yield first
        yield from told


def _begins_in_time(batch: RecordBatch, options: DumpOptions) -> bool:
    """Whether the header allows for a record before the wanted times end."""
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


# Indexes and what else is beside a log.


def _beside_rows(file: LogFile, _options: DumpOptions) -> Iterator[Row]:
    """Give the entries of any file but a log, and what is wrong with them."""
    kind, read = _BESIDE[_kind(file.path)]
    with ExitStack() as stack:
        log_path = _beside(file.path, "log")
        has_log = log_path != file.path and log_path.exists()
        log = stack.enter_context(open_log(log_path)) if has_log else None
        for found in read(file, log):
            if isinstance(found, Damage):
                yield finding(found)
            else:
                fields = found if isinstance(found, dict) else found._asdict()
                yield {"type": kind, **fields}


def _index_findings(log: LogFile, options: DumpOptions) -> Iterator[Row]:
    """Compare the indexes beside a log with it, unless they are asked for themselves."""
    if base_offset_of(log.path) is None:
        return
    for kind in ("index", "timeindex"):
        path = _beside(log.path, kind)
        if path not in options.named and path.exists():
            with open_log(path) as index:
                for found in _BESIDE[kind][1](index, log):
                    if isinstance(found, Damage):
                        yield {**finding(found), "file": str(path)}


def _beside(path: Path, kind: str) -> Path:
    """Give the file of another kind of the same segment."""
    return path.with_name(path.name.replace(f".{_kind(path)}", f".{kind}", 1))


def _base_offset(index: LogFile) -> int:
    base_offset = base_offset_of(index.path)
    if base_offset is None:
        raise InputError(f"{index.path}: an index is named for its base offset, in twenty digits")
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
