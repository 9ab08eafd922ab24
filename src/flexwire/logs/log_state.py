"""The small files beside a log segment: aborted transactions, producer snapshots and checkpoints.

The first two are binary, with messages that the catalog has; a checkpoint is text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import google_crc32c

from flexwire.codec import message
from flexwire.errors import CaptureError, DecodeError, UnknownMessageError
from flexwire.logs.log_segment import Damage, LogFile, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_STATE_BYTES = 64 * 1024 * 1024
"""A producer snapshot or a checkpoint that is longer is refused: they are read whole."""

_INT16_SIZE = 2
_ABORTED_TXN = "AbortedTxn"
# The version, and four int64.
_ABORTED_TXN_SIZE = 34
_PRODUCER_SNAPSHOT = "ProducerSnapshot"
# After the version and the crc itself.
_CRC_START = 6
_CHECKPOINT_VERSION = 0


StateEntry: TypeAlias = dict[str, Any]
"""One entry, in the form of JSON."""


def read_transaction_index(index: LogFile) -> Iterator[StateEntry | Damage]:
    """Read the aborted transactions of a segment; their last offsets must ascend."""
    whole = index.size - index.size % _ABORTED_TXN_SIZE
    last_offset = -1
    for at in range(0, whole, _ABORTED_TXN_SIZE):
        data = index.read(at, _ABORTED_TXN_SIZE)
        version = int.from_bytes(data[:_INT16_SIZE], "big", signed=True)
        try:
            fields = message(_ABORTED_TXN).decode(data[_INT16_SIZE:], version).to_json(version)
        except (DecodeError, UnknownMessageError) as error:
            # A later version may have another size, so the place of the next entry is unknown.
            yield Damage(at, index.size - at, str(error))
            return
        yield {"version": version, **fields}
        if fields["lastOffset"] <= last_offset:
            reason = f"last offset {fields['lastOffset']} after {last_offset}"
            yield Damage(at, _ABORTED_TXN_SIZE, reason)
        last_offset = fields["lastOffset"]
    if whole < index.size:
        size = index.size - whole
        yield Damage(whole, size, f"{size} bytes at the end, too few for an aborted transaction")


def read_producer_snapshot(snapshot: LogFile) -> Iterator[StateEntry | Damage]:
    """Read the state of every producer as of an offset. Raises `CaptureError`."""
    data = _read_whole(snapshot)
    if len(data) < _CRC_START:
        yield Damage(0, len(data), f"{len(data)} bytes are too few for a producer snapshot")
        return
    version = int.from_bytes(data[:_INT16_SIZE], "big", signed=True)
    try:
        decoded = message(_PRODUCER_SNAPSHOT).decode(data[_INT16_SIZE:], version)
    except (DecodeError, UnknownMessageError) as error:
        yield Damage(0, len(data), str(error))
        return
    form = decoded.to_json(version)
    actual = google_crc32c.value(data[_CRC_START:])
    if actual != form["crc"]:
        reason = f"crc is {form['crc']:#010x} but the bytes have {actual:#010x}"
        yield Damage(0, len(data), reason)
    yield from form["producerEntries"]


_EPOCHS_NAME = "leader-epoch-checkpoint"
_EPOCH_COLUMNS = ("epoch", "startOffset")
_OFFSET_COLUMNS = ("topic", "partition", "offset")


def is_checkpoint(path: Path) -> bool:
    """Whether a file is a checkpoint of a broker, by its name; snapshots of KRaft are not."""
    name = plain_name(path)
    return name == _EPOCHS_NAME or name.endswith("-offset-checkpoint")


def read_checkpoint(checkpoint: LogFile) -> Iterator[StateEntry | Damage]:
    """Read a checkpoint: its version, the count of entries, and an entry a line.

    A broker makes the file empty, and writes entries when it has some, so a file without a line has
    none, nor has one that ends after its version (Kafka's `CheckpointFile`). The position of damage
    is a line. Those of leader epochs must ascend in both columns. Raises `CaptureError`.
    """
    by_epoch = plain_name(checkpoint.path) == _EPOCHS_NAME
    columns = _EPOCH_COLUMNS if by_epoch else _OFFSET_COLUMNS
    lines = _read_whole(checkpoint).decode("utf-8", "backslashreplace").splitlines()
    if lines in ([], [str(_CHECKPOINT_VERSION)]):
        return
    version, count = (_number(lines[at]) if len(lines) > at else None for at in range(2))
    if version != _CHECKPOINT_VERSION or count is None or count < 0:
        reason = f"the first lines must be version {_CHECKPOINT_VERSION} and the count of entries"
        yield Damage(1, 2, reason)
        return
    last: list[int] | None = None
    for number, line in enumerate(lines[2:], start=3):
        words = line.split()
        numbers = [_number(word) for word in words[len(words) - 2 :]]
        if len(words) != len(columns) or None in numbers:
            yield Damage(number, 1, f"not {len(columns)} columns, {', '.join(columns)}: {line}")
            continue
        values = [*words[: len(words) - 2], *numbers]
        yield dict(zip(columns, values, strict=True))
        found = [one for one in numbers if one is not None]
        if by_epoch and last is not None and (found[0] <= last[0] or found[1] < last[1]):
            yield Damage(number, 1, f"epoch {found[0]} at {found[1]} after {last[0]} at {last[1]}")
        last = found
    if len(lines) - 2 != count:
        yield Damage(2, 1, f"{count} entries declared, and {len(lines) - 2} lines follow")


def _number(word: str) -> int | None:
    # An int64 has at most nineteen digits.
    is_number = word.removeprefix("-").isdecimal() and word.isascii() and len(word) <= 20  # noqa: PLR2004
    return int(word) if is_number else None


def _read_whole(file: LogFile) -> bytes:
    if file.size > MAX_STATE_BYTES:
        reason = f"{file.size} bytes, more than the {MAX_STATE_BYTES} that such a file may have"
        raise CaptureError(reason, source=str(file.path))
    return file.read(0, file.size)
