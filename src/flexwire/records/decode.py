"""Read a sequence of record batches and message sets, as in a fetch or a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from flexwire.arguments import to_bytes, to_flag, to_int
from flexwire.errors import RecordError
from flexwire.forks import lock_over_forks
from flexwire.records.batch import MAX_INFLATED, RecordBatch
from flexwire.records.compression import inflate
from flexwire.records.executors import ACTIVE
from flexwire.records.message_set import check_message_crc, read_message, wrapped_bytes
from flexwire.records.record import COMPRESSIONS, Compression
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CRC_START,
    ENTRY,
    HEADER,
    HEADER_SIZE,
    LEAST_SIZES,
    MAGIC_AT,
    PREFIXES,
    RECORD_BATCH,
    ZSTD,
    crc32c,
)
from flexwire.wire.limits import INT64_MAX
from flexwire.wire.varint import read_varint

if TYPE_CHECKING:
    from flexwire.records.record import Record


class PartialBatch(NamedTuple):
    """The beginning of a batch that is cut off, as in a fetch that reached its size limit.

    ``size`` is the number of bytes that are present. ``declared_size`` is the size of the whole
    batch, or None if the data ends before it.
    """

    position: int
    size: int
    declared_size: int | None


class BatchIterator(Iterator[RecordBatch]):
    """Return the batches of ``data`` in order, as `decode_batches` describes."""

    # The kernels' iterator is registered as a subclass below.
    __slots__ = ()

    _walk: _BatchWalk

    def __next__(self) -> RecordBatch:
        return next(self._walk)

    @property
    def position(self) -> int:
        """The position at which the next batch begins."""
        return self._walk.position

    @property
    def partial(self) -> PartialBatch | None:
        """The partial batch at the end, or None if no partial batch has been reached so far."""
        return self._walk.partial


# If threads share an iterator, this lock runs each Python step as a whole. Without the lock, two
# threads would get the same batch. A finalizer that takes a step within another step does not wait.
_STEP = lock_over_forks()


class _PythonIterator(BatchIterator):
    """The iterator that is used without kernels."""

    __slots__ = ("_walk",)

    def __init__(self, walk: _BatchWalk) -> None:
        self._walk = walk

    def __next__(self) -> RecordBatch:
        with _STEP:
            return next(self._walk)


class _BatchWalk(msgspec.Struct, gc=False):
    """Read the batches of ``data`` one after another, starting at a position."""

    data: bytes
    check_crc: bool
    max_inflated: int
    position: int
    partial: PartialBatch | None = None

    def __next__(self) -> RecordBatch:
        start = self.position
        remaining = len(self.data) - start
        if remaining == 0:
            raise StopIteration
        if remaining < ENTRY.size:
            self._end_within(start, None)
        size = ENTRY.size + ENTRY.unpack_from(self.data, start)[1]
        magic = self._check_size(start, size, remaining)
        if size > remaining:
            self._end_within(start, size)
        data = self.data[start : start + size]
        self.position = start + size
        try:
            if magic == RECORD_BATCH:
                return self._decode_batch(data, start)
            return self._decode_message(data, start)
        except RecordError:
            raise
        except BaseException:
            # For example, a signal handler raised an exception. The batch was not returned, so it
            # remains the next one.
            self.position = start
            raise

    def _end_within(self, start: int, size: int | None) -> NoReturn:
        """End the iteration with a partial batch."""
        self.position = len(self.data)
        self.partial = PartialBatch(start, len(self.data) - start, size)
        raise StopIteration

    def _check_size(self, start: int, size: int, remaining: int) -> int | None:
        """Return the magic, or None if the data ends before it.

        An invalid entry ends the iteration.
        """
        magic, least, reason = None, LEAST_SIZES[0], None
        if remaining > MAGIC_AT:
            magic = self.data[start + MAGIC_AT]
            if magic >= len(LEAST_SIZES):
                reason = f"unknown magic {magic}; 0, 1 and 2 are known"
            else:
                least = LEAST_SIZES[magic]
        if reason is None and size < least:
            reason = (
                f"batch length {size - ENTRY.size} is less than the minimum, {least - ENTRY.size}"
            )
        if reason is not None:
            self.position = len(self.data)
            raise RecordError(reason, offset=start)
        return magic

    def _decode_batch(self, data: bytes, start: int) -> RecordBatch:
        (
            base_offset,
            batch_length,
            partition_leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ) = HEADER.unpack_from(data)
        if self.check_crc:
            actual = crc32c(data[CRC_START:])
            if actual != crc:
                reason = f"the declared crc is {crc:#010x}, but the actual crc is {actual:#010x}"
                raise RecordError(reason, offset=start)
        _check_compression(attributes, magic, start)
        if last_offset_delta < 0 or base_offset + last_offset_delta > INT64_MAX:
            reason = (
                f"last offset delta {last_offset_delta} is invalid for base offset {base_offset}"
            )
            raise RecordError(reason, offset=start)
        return RecordBatch(
            position=start,
            data=data,
            base_offset=base_offset,
            last_offset=base_offset + last_offset_delta,
            batch_length=batch_length,
            partition_leader_epoch=partition_leader_epoch,
            magic=magic,
            crc=crc,
            attributes=attributes,
            last_offset_delta=last_offset_delta,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=record_count,
            check_crc=self.check_crc,
            max_inflated=self.max_inflated,
        )

    def _decode_message(self, data: bytes, start: int) -> RecordBatch:
        layout = PREFIXES[data[MAGIC_AT]]
        offset, batch_length, crc, magic, attributes, *timestamp = layout.unpack_from(data)
        if self.check_crc:
            check_message_crc(data, crc, start)
        compression = _check_compression(attributes, magic, start)
        is_wrapper = compression is not Compression.NONE
        when = timestamp[0] if timestamp else -1
        return RecordBatch(
            position=start,
            data=data,
            base_offset=-1 if is_wrapper else offset,
            last_offset=offset,
            batch_length=batch_length,
            magic=magic,
            crc=crc,
            attributes=attributes,
            last_offset_delta=-1 if is_wrapper else 0,
            base_timestamp=-1 if is_wrapper else when,
            max_timestamp=when,
            record_count=-1 if is_wrapper else 1,
            check_crc=self.check_crc,
            max_inflated=self.max_inflated,
        )


def _check_compression(attributes: int, magic: int, start: int) -> Compression:
    number = attributes & COMPRESSION_MASK
    if number >= len(COMPRESSIONS):
        raise RecordError(f"unknown compression type {number}", offset=start)
    if number == ZSTD and magic < RECORD_BATCH:
        raise RecordError(f"magic {magic} does not support zstd compression", offset=start)
    return COMPRESSIONS[number]


def iterate(
    data: bytes | bytearray | memoryview,
    position: int,
    check_crc: bool,  # noqa: FBT001 - the kernel that replaces this is called in the same way
    max_inflated: int,
) -> BatchIterator:
    """Do the same as `decode_batches`, starting at a position."""
    data = to_bytes(data)
    to_flag(check_crc, "check_crc")
    max_inflated = to_int(max_inflated, "max_inflated", least=0)
    return _PythonIterator(_BatchWalk(data, check_crc, max_inflated, position))


def go_on(iterator: Any) -> RecordBatch:
    """Return the next batch of a kernel iterator, after the kernels have refused this batch."""
    with _STEP:
        walk = _BatchWalk(
            iterator._data,  # noqa: SLF001 - the attribute belongs to the kernel iterator
            iterator._check_crc,  # noqa: SLF001 - this also belongs to the kernel iterator
            iterator._max_inflated,  # noqa: SLF001 - this also belongs to the kernel iterator
            # A step in another thread waits during this call, and does not use the data that was
            # read ahead.
            iterator._hold(),  # noqa: SLF001 - this also belongs to the kernel iterator
        )
        try:
            return next(walk)
        finally:
            iterator._go_on(walk.position, walk.partial)  # noqa: SLF001 - this also belongs to the kernel iterator


def decode_batches(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> BatchIterator:
    """Iterate over the record batches, or top-level messages, in ``data``.

    Headers and CRCs are read during the iteration. Records are read when `RecordBatch.records` is
    used. If the data ends within a batch, the iteration ends, and ``partial`` contains the
    beginning of that batch. This is not an error, because a fetch response ends in this way when
    it reaches its size limit. ``max_inflated`` limits the inflated bytes of the records in one
    compressed batch, and thereby the number of objects.

    A damaged batch raises `RecordError`. If the length of this batch is valid, the iteration can
    continue after the batch. If its length is invalid, the iteration ends.

    >>> batches = decode_batches(bytes.fromhex("00000000000000050000004402"))
    >>> list(batches), batches.partial
    ([], PartialBatch(position=0, size=13, declared_size=80))
    """
    batches: BatchIterator = ACTIVE.functions.iterate(data, 0, check_crc, max_inflated)
    return batches


def decode_records(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> list[Record]:
    """Return the records of all batches in ``data``, in order, for example of a whole fetch.

    The result contains the records of all batches from `decode_batches`, including control records.
    If batches contain few records, this function is several times as fast as `decode_batches`,
    because it creates no batch objects. If the data ends within a batch, the result ends before
    this batch, and ``partial`` of `decode_batches` contains its beginning. A damaged batch raises
    `RecordError`, and no records are returned. `decode_batches` can continue after a damaged batch.

    >>> from flexwire.records import Record, encode_batch
    >>> data = b"".join(encode_batch([Record(at, 0, None, b"v%d" % at, [])]) for at in (7, 8))
    >>> [record.value for record in decode_records(data)]
    [b'v7', b'v8']
    """
    if type(data) is not bytes:
        data = to_bytes(data)
    if check_crc is not True:
        to_flag(check_crc, "check_crc")
    if max_inflated is not MAX_INFLATED:
        max_inflated = to_int(max_inflated, "max_inflated", least=0)
    read = ACTIVE.functions.read_all
    records, position = read(data, 0, check_crc)
    size = len(data)
    while position < size:
        # The rest are compressed batches, and batches that the kernel refuses.
        batch = next(ACTIVE.functions.iterate(data, position, check_crc, max_inflated), None)
        if batch is None:
            break
        records += batch.records
        more, position = read(data, position + len(batch.data), check_crc)
        records += more
    return records


def extents(batch: RecordBatch) -> tuple[int, list[int]]:
    """Return the uncompressed size of a batch, and the sizes of its `records`.

    The size of a record includes its length, and the size of a message includes its offset and
    size. Raises `RecordError` if the records cannot be inflated. The records must be valid.
    """
    is_plain = batch.compression is Compression.NONE
    if batch.magic == RECORD_BATCH:
        body = batch.data[HEADER_SIZE:]
        if not is_plain and body:
            body = inflate(batch.compression, body, magic=RECORD_BATCH, limit=batch.max_inflated)
        return HEADER_SIZE + len(body), _records(body)
    if is_plain:
        return batch.size, [batch.size]
    wrapped = wrapped_bytes(read_message(batch.data, 0, batch.size))
    body = inflate(batch.compression, wrapped, magic=batch.magic, limit=batch.max_inflated)
    return batch.size - len(wrapped) + len(body), _messages(body)


def _records(body: bytes) -> list[int]:
    sizes, at = [], 0
    while at < len(body):
        length, after = read_varint(body, at, len(body))
        sizes.append(after + length - at)
        at = after + length
    return sizes


def _messages(body: bytes) -> list[int]:
    sizes, at = [], 0
    while at < len(body):
        size = ENTRY.size + ENTRY.unpack_from(body, at)[1]
        sizes.append(size)
        at += size
    return sizes
