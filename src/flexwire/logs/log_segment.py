"""Log segments: the record batches of a partition in a file, as brokers keep them on disk.

A KRaft snapshot is such a file too. Nothing is held but the batch that is read.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from flexwire.errors import CaptureError, RecordError
from flexwire.records import MAX_INFLATED, RecordBatch, decode_batches
from flexwire.records.search import MAX_BATCH_BYTES, BatchSearch
from flexwire.wire.batch_layout import (
    HEADER,
    HEADER_SIZE,
    MAGIC_AT,
    NO_VALUE,
    PREFIXES,
    RECORD_BATCH,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_READ_AHEAD = 1024 * 1024
_SUFFIX = re.compile(r"\.(deleted|cleaned|swap)$")
# Enough to see that no batch begins here: its length and magic.
_LEAST_HEADER = MAGIC_AT + 1


class Damage(NamedTuple):
    """Bytes of a file that are not what should be there.

    ``size`` bytes from ``position`` on; what follows them was read again.
    """

    position: int
    size: int
    reason: str


class BatchPlace(NamedTuple):
    """Where a batch is in its file, and what its header alone says.

    A wrapper (magic 0 and 1) has the last offset only, so it is its ``base_offset`` here too;
    with magic 0 ``max_timestamp`` is -1.
    """

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class LogFile:
    """A file that is read piece by piece; made by `open_log`.

    It is not mapped into memory: a broker that truncates a mapped file would crash its reader.
    """

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self.path = path
        self.size = size
        self._file = file

    def read(self, position: int, size: int) -> bytes:
        """Give ``size`` bytes, or as many as there are. Raises `CaptureError`."""
        try:
            # A seek within what is read ahead costs nothing.
            self._file.seek(position)
            return self._file.read(max(0, min(size, self.size - position)))
        except OSError as error:
            raise CaptureError(
                f"cannot read: {error.strerror}", source=str(self.path), offset=position
            ) from error

    def is_zero(self, position: int) -> bool:
        """Whether there is nothing but zeros from ``position`` on."""
        while position < self.size:
            piece = self.read(position, _READ_AHEAD)
            if not piece or piece.count(0) != len(piece):
                return False
            position += len(piece)
        return True


@contextmanager
def open_log(path: Path) -> Iterator[LogFile]:
    """Open a file for piecewise reading. Raises `CaptureError`."""
    try:
        file = path.open("rb", buffering=_READ_AHEAD)
    except OSError as error:
        raise CaptureError(f"cannot open: {error.strerror}", source=str(path)) from error
    with file:
        yield LogFile(path, file, file.seek(0, 2))


def base_offset_of(path: Path) -> int | None:
    """Give the offset that a segment's files are named for; None for another name.

    >>> from pathlib import Path
    >>> base_offset_of(Path("orders-0/00000000000000000042.log.deleted"))
    42
    """
    digits = plain_name(path).split(".")[0]
    return int(digits) if re.fullmatch(r"[0-9]{20}", digits) else None


def plain_name(path: Path) -> str:
    """Give a file's name without what a broker adds to those it is about to add or delete."""
    return _SUFFIX.sub("", path.name)


def walk(log: LogFile, position: int = 0) -> Iterator[BatchPlace | Damage]:
    """Find every batch from ``position`` on by headers alone; records and crcs are not read.

    After damage the walk goes on at the next place where a whole batch of magic 2 with the right
    crc stands. A part of a batch, or zeros, at the end of the file is damage too.
    """
    search = BatchSearch(log)
    while position < log.size:
        try:
            place = place_at(log, position)
        except RecordError as error:
            if log.is_zero(position):
                reason = "zeros to the end of the file: preallocated, or lost in a crash"
                yield Damage(position, log.size - position, reason)
                return
            found = search.next_batch(position + 1)
            yield Damage(position, found - position, error.reason)
            position = found
        else:
            yield place
            position += place.size


def place_at(log: LogFile, position: int) -> BatchPlace:
    """Read the header of the batch at ``position``.

    Raises `RecordError` where no batch begins, or where the file does not hold all of it.
    """
    data = log.read(position, HEADER_SIZE)
    try:
        batches = decode_batches(data[:_LEAST_HEADER])
        # It ends before the batch does, so this gives the size or says what is wrong with it.
        next(batches, None)
    except RecordError as error:
        raise RecordError(error.reason, offset=position) from None
    remaining = log.size - position
    size = batches.partial.declared_size if batches.partial else None
    if size is None or len(data) < _LEAST_HEADER:
        reason = f"the file ends after {remaining} bytes of a batch's header"
        raise RecordError(reason, offset=position)
    if size > remaining:
        reason = f"a batch of {size} bytes, but the file ends after {remaining}"
        raise RecordError(reason, offset=position)
    if size > MAX_BATCH_BYTES:
        reason = f"a batch of {size} bytes, more than {MAX_BATCH_BYTES}"
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
    """Read a whole batch, whose records inflate to at most ``max_inflated`` bytes.

    Raises `RecordError` with its place in the file.
    """
    data = log.read(place.position, place.size)
    try:
        batch = next(decode_batches(data, check_crc=check_crc, max_inflated=max_inflated))
    except RecordError as error:
        raise RecordError(error.reason, offset=place.position + error.offset) from None
    except StopIteration:
        raise RecordError("the file became shorter", offset=place.position) from None
    batch.position = place.position
    return batch
