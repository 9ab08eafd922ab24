"""Log segments and the files next to them: indexes, producer snapshots and checkpoints.

A KRaft snapshot has the same layout as a segment. Only one batch at a time is held in memory.

Offset and time indexes are allocated at full size and filled from the start, so the entries end at
the first zeros.

Transaction indexes and producer snapshots are binary, and the catalog contains their messages. A
checkpoint is a text file.
"""

from __future__ import annotations

import re
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

from flexwire.codec import message
from flexwire.errors import CaptureError, DecodeError, RecordError, UnknownMessageError
from flexwire.records import MAX_INFLATED, RecordBatch, decode_batches
from flexwire.records.search import MAX_BATCH_BYTES, BatchSearch
from flexwire.wire.batch_layout import (
    HEADER,
    HEADER_SIZE,
    MAGIC_AT,
    NO_VALUE,
    PREFIXES,
    RECORD_BATCH,
    crc32c,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_READ_AHEAD = 1024 * 1024
_SUFFIX = re.compile(r"\.(deleted|cleaned|swap)$")
# The length and the magic value are enough to recognize that no batch begins here.
_LEAST_HEADER = MAGIC_AT + 1


class Damage(NamedTuple):
    """Bytes in a file that are not in the expected format.

    ``size`` damaged bytes begin at ``position``. Reading continued after these bytes.
    """

    position: int
    size: int
    reason: str


class BatchPlace(NamedTuple):
    """The position of a batch in its file, and the facts in the batch's header.

    A wrapper message (magic 0 and 1) contains only its last offset, so ``base_offset`` is also the
    last offset. For magic 0, ``max_timestamp`` is -1.
    """

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class LogFile:
    """A file that is read piece by piece. Use `open_log` to open a file.

    The file is not mapped into memory, because a reader would crash if a broker truncated a mapped
    file.
    """

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self.path = path
        self.size = size
        self._file = file

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes, or fewer if the file ends. Raises `CaptureError`."""
        try:
            # A seek within the buffered bytes costs no time.
            self._file.seek(position)
            return self._file.read(max(0, min(size, self.size - position)))
        except OSError as error:
            raise CaptureError(
                f"cannot read: {error.strerror}", source=str(self.path), offset=position
            ) from error

    def is_zero(self, position: int) -> bool:
        """Return whether only zeros follow in the file from ``position`` on."""
        while position < self.size:
            piece = self.read(position, _READ_AHEAD)
            if not piece or piece.count(0) != len(piece):
                return False
            position += len(piece)
        return True


@contextmanager
def open_log(path: Path) -> Iterator[LogFile]:
    """Open a file that is read piece by piece. Raises `CaptureError`."""
    try:
        file = path.open("rb", buffering=_READ_AHEAD)
    except OSError as error:
        raise CaptureError(f"cannot open: {error.strerror}", source=str(path)) from error
    with file:
        yield LogFile(path, file, file.seek(0, 2))


def base_offset_of(path: Path) -> int | None:
    """Return the base offset in the name of a segment file, or None for any other name.

    >>> from pathlib import Path
    >>> base_offset_of(Path("orders-0/00000000000000000042.log.deleted"))
    42
    """
    digits = plain_name(path).split(".")[0]
    return int(digits) if re.fullmatch(r"[0-9]{20}", digits) else None


def plain_name(path: Path) -> str:
    """Return a file's name without the extension that marks files about to be added or deleted."""
    return _SUFFIX.sub("", path.name)


def walk(log: LogFile, position: int = 0) -> Iterator[BatchPlace | Damage]:
    """Yield every batch at or after ``position``, from its header. Records and CRCs are not read.

    After damaged bytes, the search continues at the next complete batch of magic 2 that has a
    correct CRC. A partial batch or zeros at the end of the file also count as damaged.
    """
    search = BatchSearch(log)
    while position < log.size:
        try:
            place = place_at(log, position)
        except RecordError as error:
            if log.is_zero(position):
                reason = "zero bytes up to the end of the file: preallocated, or lost in a crash"
                yield Damage(position, log.size - position, reason)
                return
            next_position = search.next_batch(position + 1)
            yield Damage(position, next_position - position, error.reason)
            position = next_position
        else:
            yield place
            position += place.size


def place_at(log: LogFile, position: int) -> BatchPlace:
    """Read the header of the batch at ``position``.

    Raises `RecordError` if no batch begins there, or if the file does not contain all of it.
    """
    data = log.read(position, HEADER_SIZE)
    try:
        batches = decode_batches(data[:_LEAST_HEADER])
        # The data ends before the batch does, so this returns the size or explains the problem.
        next(batches, None)
    except RecordError as error:
        raise RecordError(error.reason, offset=position) from None
    remaining = log.size - position
    size = batches.partial.declared_size if batches.partial else None
    if size is None or len(data) < _LEAST_HEADER:
        reason = f"the file ends after {remaining} bytes of a batch header"
        raise RecordError(reason, offset=position)
    if size > remaining:
        reason = f"the batch declares {size} bytes, but the file ends after {remaining}"
        raise RecordError(reason, offset=position)
    if size > MAX_BATCH_BYTES:
        reason = f"the batch declares {size} bytes, more than the maximum of {MAX_BATCH_BYTES}"
        raise RecordError(reason, offset=position)
    magic = data[MAGIC_AT]
    if magic == RECORD_BATCH:
        base_offset, _, _, _, _, _, last_offset_delta, _, max_timestamp, *_ = HEADER.unpack(data)
        last_offset = base_offset + last_offset_delta
        return BatchPlace(position, size, magic, base_offset, last_offset, max_timestamp)
    offset, _, _, _, _, *timestamp = PREFIXES[magic].unpack_from(data)
    return BatchPlace(position, size, magic, offset, offset, *(timestamp or [NO_VALUE]))


def read_batch(
    log: LogFile, place: BatchPlace, *, check_crc: bool = True, max_inflated: int = MAX_INFLATED
) -> RecordBatch:
    """Read a complete batch. Decompressed, the records may have at most ``max_inflated`` bytes.

    Raises `RecordError` with the position in the file.
    """
    data = log.read(place.position, place.size)
    try:
        batch = next(decode_batches(data, check_crc=check_crc, max_inflated=max_inflated))
    except RecordError as error:
        raise RecordError(error.reason, offset=place.position + error.offset) from None
    except StopIteration:
        raise RecordError(
            "the file became shorter while it was being read", offset=place.position
        ) from None
    batch.position = place.position
    return batch


_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    """An entry of an offset index: the batch that ends with ``offset`` begins at ``position``."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """An entry of a time index: no batch up to ``offset`` has a higher timestamp than this."""

    timestamp: int
    offset: int


def read_offset_index(
    index: LogFile, base_offset: int, log: LogFile | None
) -> Iterator[OffsetEntry | Damage]:
    """Read the entries of an offset index. Offsets and positions must ascend.

    If ``log`` is given, the last offset of the batch at an entry's position must equal the entry's
    offset.
    """
    last = OffsetEntry(base_offset - 1, -1)
    for read in _entries(index, _OFFSET_ENTRY):
        if isinstance(read, Damage):
            yield read
            continue
        at, (relative_offset, position) = read
        entry = OffsetEntry(base_offset + relative_offset, position)
        yield entry
        reasons = [
            *_descent("offset", last.offset, entry.offset, is_strict=True),
            *_descent("position", last.position, position, is_strict=True),
            *(_offset_mismatch(log, entry) if log is not None else ()),
        ]
        yield from (Damage(at, _OFFSET_ENTRY.size, reason) for reason in reasons)
        last = entry


def _offset_mismatch(log: LogFile, entry: OffsetEntry) -> Iterator[str]:
    if not 0 <= entry.position < log.size:
        yield f"position {entry.position} is not within the {log.size} bytes of the log"
        return
    try:
        last_offset = place_at(log, entry.position).last_offset
    except RecordError as error:
        yield f"no batch at position {entry.position} of the log: {error.reason}"
        return
    if last_offset != entry.offset:
        yield (
            f"the entry has offset {entry.offset}, but the batch at {entry.position} ends with "
            f"{last_offset}"
        )


def read_time_index(
    index: LogFile, base_offset: int, log: LogFile | None
) -> Iterator[TimeEntry | Damage]:
    """Read the entries of a time index. Timestamps must ascend, and offsets must not descend.

    If ``log`` is given, the batch whose last offset equals the entry's offset must have the entry's
    timestamp as its highest timestamp. An entry whose offset descends is not compared, because the
    log is read only once.
    """
    last = TimeEntry(-1, base_offset - 1)
    compare = _TimeComparison(log) if log is not None else None
    for read in _entries(index, _TIME_ENTRY):
        if isinstance(read, Damage):
            yield read
            continue
        at, (timestamp, relative_offset) = read
        entry = TimeEntry(timestamp, base_offset + relative_offset)
        yield entry
        reasons = [
            *_descent("timestamp", last.timestamp, timestamp, is_strict=True),
            *_descent("offset", last.offset, entry.offset, is_strict=False),
        ]
        if compare is not None and entry.offset >= last.offset:
            reasons += compare(entry)
        yield from (Damage(at, _TIME_ENTRY.size, reason) for reason in reasons)
        last = entry


class _TimeComparison:
    """Compare the entries of a time index with a log, in ascending order."""

    def __init__(self, log: LogFile) -> None:
        self._places = (place for place in walk(log) if isinstance(place, BatchPlace))
        self._place = next(self._places, None)

    def __call__(self, entry: TimeEntry) -> Iterator[str]:
        while self._place is not None and self._place.last_offset < entry.offset:
            self._place = next(self._places, None)
        place = self._place
        if place is None:
            yield f"offset {entry.offset} is beyond the end of the log"
        elif place.last_offset != entry.offset:
            yield (
                f"no batch ends at offset {entry.offset}; the next batch ends at "
                f"{place.last_offset}"
            )
        elif place.max_timestamp != entry.timestamp:
            difference = (
                f"the batch that ends at {entry.offset} has timestamp {place.max_timestamp}"
            )
            yield f"the entry has timestamp {entry.timestamp}, but {difference}"


def _entries(
    index: LogFile, layout: struct.Struct
) -> Iterator[tuple[int, tuple[int, int]] | Damage]:
    whole = index.size - index.size % layout.size
    for at in range(0, whole, layout.size):
        data = index.read(at, layout.size)
        if len(data) < layout.size:
            yield Damage(at, index.size - at, "the file became shorter while it was being read")
            return
        if not any(data):
            if index.is_zero(at):
                return
            # The first record of a log may have timestamp 0, and its entry may then consist of
            # zeros only.
            if at:
                yield Damage(at, index.size - at, "an entry of zeros, but other bytes follow")
                return
        first, second = layout.unpack(data)
        yield at, (first, second)
    if whole < index.size:
        size = index.size - whole
        yield Damage(whole, size, f"the file ends with {size} bytes, too few for an entry")


def _descent(what: str, last: int, number: int, *, is_strict: bool) -> Iterator[str]:
    if number < last or (is_strict and number == last):
        yield f"{what} {number} after {last}"


MAX_STATE_BYTES = 64 * 1024 * 1024
"""The largest accepted size of a producer snapshot or checkpoint.

These files are read as a whole.
"""

_INT16_SIZE = 2
_ABORTED_TXN = "AbortedTxn"
# The entry consists of a version and four 8-byte numbers.
_ABORTED_TXN_SIZE = 34
_PRODUCER_SNAPSHOT = "ProducerSnapshot"
# The CRC covers all bytes that follow the version and the CRC.
_CRC_START = 6
_CHECKPOINT_VERSION = 0


StateEntry: TypeAlias = dict[str, Any]
"""One entry, in its JSON form."""


def read_transaction_index(index: LogFile) -> Iterator[StateEntry | Damage]:
    """Read the aborted transactions of a segment. Their last offsets must be in ascending order."""
    whole = index.size - index.size % _ABORTED_TXN_SIZE
    last_offset = -1
    for at in range(0, whole, _ABORTED_TXN_SIZE):
        data = index.read(at, _ABORTED_TXN_SIZE)
        version = int.from_bytes(data[:_INT16_SIZE], "big", signed=True)
        try:
            fields = message(_ABORTED_TXN).decode(data[_INT16_SIZE:], version).to_json(version)
        except (DecodeError, UnknownMessageError) as error:
            # An entry of a later version may have another size, so the next entry cannot be found.
            yield Damage(at, index.size - at, str(error))
            return
        yield {"version": version, **fields}
        if fields["lastOffset"] <= last_offset:
            reason = f"last offset {fields['lastOffset']} after {last_offset}"
            yield Damage(at, _ABORTED_TXN_SIZE, reason)
        last_offset = fields["lastOffset"]
    if whole < index.size:
        size = index.size - whole
        yield Damage(
            whole, size, f"the file ends with {size} bytes, too few for an aborted transaction"
        )


def read_producer_snapshot(snapshot: LogFile) -> Iterator[StateEntry | Damage]:
    """Read the state of every producer at an offset. Raises `CaptureError`."""
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
    actual = crc32c(data[_CRC_START:])
    if actual != form["crc"]:
        reason = f"the declared crc is {form['crc']:#010x}, but the actual crc is {actual:#010x}"
        yield Damage(0, len(data), reason)
    yield from form["producerEntries"]


_EPOCHS_NAME = "leader-epoch-checkpoint"
_EPOCH_COLUMNS = ("epoch", "startOffset")
_OFFSET_COLUMNS = ("topic", "partition", "offset")


def is_checkpoint(path: Path) -> bool:
    """Return whether a file has the name of a broker's checkpoint. KRaft snapshots do not count."""
    name = plain_name(path)
    return name == _EPOCHS_NAME or name.endswith("-offset-checkpoint")


def read_checkpoint(checkpoint: LogFile) -> Iterator[StateEntry | Damage]:
    """Read a checkpoint: its version, the number of entries, and one entry per line.

    A broker creates the file empty, and writes entries later. A file that is empty or ends after
    its version therefore contains no entries (see Kafka's `CheckpointFile`). For damage, the
    position is a line number. In leader epoch checkpoints, both columns must ascend. Raises
    `CaptureError`.
    """
    by_epoch = plain_name(checkpoint.path) == _EPOCHS_NAME
    columns = _EPOCH_COLUMNS if by_epoch else _OFFSET_COLUMNS
    lines = _read_whole(checkpoint).decode("utf-8", "backslashreplace").splitlines()
    if lines in ([], [str(_CHECKPOINT_VERSION)]):
        return
    version, count = (_number(lines[at]) if len(lines) > at else None for at in range(2))
    if version != _CHECKPOINT_VERSION or count is None or count < 0:
        reason = (
            f"expected version {_CHECKPOINT_VERSION} in line 1 and the number of entries in line 2"
        )
        yield Damage(1, 2, reason)
        return
    last: list[int] | None = None
    for number, line in enumerate(lines[2:], start=3):
        words = line.split()
        numbers = [_number(word) for word in words[len(words) - 2 :]]
        if len(words) != len(columns) or None in numbers:
            yield Damage(
                number, 1, f"expected {len(columns)} columns, {', '.join(columns)}: {line}"
            )
            continue
        values = [*words[: len(words) - 2], *numbers]
        yield dict(zip(columns, values, strict=True))
        values_read = [value for value in numbers if value is not None]
        if (
            by_epoch
            and last is not None
            and (values_read[0] <= last[0] or values_read[1] < last[1])
        ):
            yield Damage(
                number,
                1,
                f"out of order: epoch {values_read[0]} at offset {values_read[1]} follows epoch "
                f"{last[0]} at offset {last[1]}",
            )
        last = values_read
    if len(lines) - 2 != count:
        yield Damage(2, 1, f"the file declares {count} entries, but contains {len(lines) - 2}")


def _number(word: str) -> int | None:
    # An int64 has at most 19 digits.
    is_number = word.removeprefix("-").isdecimal() and word.isascii() and len(word) <= 20  # noqa: PLR2004
    return int(word) if is_number else None


def _read_whole(file: LogFile) -> bytes:
    if file.size > MAX_STATE_BYTES:
        reason = f"the file has {file.size} bytes, more than the maximum of {MAX_STATE_BYTES}"
        raise CaptureError(reason, source=str(file.path))
    return file.read(0, file.size)
