"""Reading record batches and message sets one after the other, as a fetch or a log holds them."""

from __future__ import annotations

from itertools import chain
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import google_crc32c
import msgspec

from flexwire.arguments import to_bytes, to_flag, to_int
from flexwire.errors import RecordError
from flexwire.kernels.loading import kernels
from flexwire.records.attributes import COMPRESSIONS, Compression
from flexwire.records.batch import MAX_INFLATED, RecordBatch
from flexwire.records.batch_executors import functions_on, no_records
from flexwire.records.message_set import check_message_crc
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CRC_START,
    ENTRY,
    HEADER,
    LEAST_SIZES,
    MAGIC_AT,
    PREFIXES,
    RECORD_BATCH,
    ZSTD,
)
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.records.record import Record


class PartialBatch(NamedTuple):
    """The start of a batch that the data ends within, as a fetch ends when it is full.

    ``size`` bytes of it are there; ``declared_size`` is the whole, None where the data ends before
    it says how large that is.
    """

    position: int
    size: int
    declared_size: int | None


class BatchIterator(chain[RecordBatch]):
    """Gives the batches of ``data`` in order; see `decode_batches`.

    Some batches are read ahead, at once, where kernels are sure of them. They and those that are
    read one by one make a chain, which goes on without a step of Python for each.
    """

    __slots__ = ("_walk",)

    _walk: _Walk

    @property
    def position(self) -> int:
        """Where the next batch starts."""
        left = length_hint(self._walk.ahead)
        if left == 0:
            return self._walk.position
        # What an iterator over a list says of itself: where it is, and over which list.
        _, (batches,), _ = cast("Any", self._walk.ahead.__reduce__())
        position: int = batches[-left].position
        return position

    @property
    def partial(self) -> PartialBatch | None:
        """The partial batch at the end, None when there is none or it is not reached yet."""
        return self._walk.partial


class _Walk(msgspec.Struct, gc=False):
    """Gives the batches of ``data`` from a position on, one after the other."""

    data: bytes
    check_crc: bool
    max_inflated: int
    # What comes first in the chain, and the position after it.
    ahead: Iterator[RecordBatch]
    position: int = 0
    partial: PartialBatch | None = None
    # Batches that were read already, the next one last.
    found: list[RecordBatch] | None = None

    def __iter__(self) -> _Walk:
        return self

    def __next__(self) -> RecordBatch:
        loaded = None if self.found else kernels(0)
        if loaded is not None:
            read = functions_on(loaded).read_ahead
            self.found = read(self.data, self.position, self.check_crc, self.max_inflated)
            self.found.reverse()
        if not self.found:
            return self._read_one()
        batch = self.found.pop()
        self.position = batch.position + len(batch.data)
        return batch

    def _read_one(self) -> RecordBatch:
        start = self.position
        remaining = len(self.data) - start
        if remaining == 0:
            raise StopIteration
        # Until the batch proves sound enough to know where the next one starts, nothing follows it.
        self.position = len(self.data)
        if remaining < ENTRY.size:
            self.partial = PartialBatch(start, remaining, None)
            raise StopIteration
        size = ENTRY.size + ENTRY.unpack_from(self.data, start)[1]
        magic = self._check_size(start, size, remaining)
        if size > remaining:
            self.partial = PartialBatch(start, remaining, size)
            raise StopIteration
        self.position = start + size
        data = self.data[start : start + size]
        if magic == RECORD_BATCH:
            return self._decode_batch(data, start)
        return self._decode_message(data, start)

    def _check_size(self, start: int, size: int, remaining: int) -> int | None:
        """Give the magic, None where the data ends before it."""
        magic = None
        least = LEAST_SIZES[0]
        if remaining > MAGIC_AT:
            magic = self.data[start + MAGIC_AT]
            if magic >= len(LEAST_SIZES):
                raise RecordError(f"unknown magic {magic}; 0, 1 and 2 are known", offset=start)
            least = LEAST_SIZES[magic]
        if size < least:
            reason = f"batch length {size - ENTRY.size} is less than the {least - ENTRY.size}"
            raise RecordError(f"{reason} that every batch takes", offset=start)
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
            actual = google_crc32c.value(data[CRC_START:])
            if actual != crc:
                reason = f"crc is {crc:#010x} but the bytes have {actual:#010x}"
                raise RecordError(reason, offset=start)
        _check_compression(attributes, magic, start)
        if last_offset_delta < 0 or base_offset + last_offset_delta > INT64_MAX:
            reason = f"last offset delta {last_offset_delta} after base offset {base_offset}"
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
        raise RecordError(f"zstd compression, which magic {magic} does not have", offset=start)
    return COMPRESSIONS[number]


def decode_batches(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> BatchIterator:
    """Iterate over the record batches, or top-level messages, in ``data``.

    Headers and crcs are read as the iteration goes, records when `RecordBatch.records` is asked.
    Where the data ends within a batch, the iteration ends and ``partial`` says so: that is how a
    full fetch ends, not an error. ``max_inflated`` bounds the bytes that the records of one
    compressed batch may inflate to, and with them how many objects are made.

    A damaged batch raises `RecordError`; if its length is sound the iteration can go on after it,
    otherwise it is over.

    >>> batches = decode_batches(bytes.fromhex("00000000000000050000004402"))
    >>> list(batches), batches.partial
    ([], PartialBatch(position=0, size=13, declared_size=80))
    """
    if type(data) is not bytes:
        data = to_bytes(data)
    if check_crc is not True:
        to_flag(check_crc, "check_crc")
    if max_inflated is not MAX_INFLATED:
        max_inflated = to_int(max_inflated, "max_inflated", least=0)
    loaded = kernels(0)
    found: list[RecordBatch] = []
    position = 0
    if loaded is not None:
        found = functions_on(loaded).read_ahead(data, 0, check_crc, max_inflated)
        if found:
            last = found[-1]
            position = last.position + len(last.data)
    ahead = iter(found)
    walk = _Walk(data, check_crc, max_inflated, ahead, position)
    # Where nothing follows, nothing need be asked for it.
    batches = BatchIterator(ahead) if position == len(data) else BatchIterator(ahead, walk)
    batches._walk = walk  # noqa: SLF001 - of this file, and a chain takes nothing but its parts
    return batches


def decode_records(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> list[Record]:
    """Give the records of all batches in ``data``, in order: of a whole fetch, in one call.

    They are those of each batch that `decode_batches` gives, control records too; without batches
    to make, it is several times as fast where these have few records. Where the data ends within a
    batch, so do the records; ``partial`` of `decode_batches` says by how much. A damaged batch
    raises `RecordError`, and gives nothing; `decode_batches` can go on after it.

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
    loaded = kernels(0)
    read = no_records if loaded is None else functions_on(loaded).read_all
    records, position = read(data, 0, check_crc)
    size = len(data)
    while position < size:
        # What the kernel is not sure of, and batches that are compressed.
        batch = next(_Walk(data, check_crc, max_inflated, iter(()), position), None)
        if batch is None:
            break
        records += batch.records
        more, position = read(data, position + len(batch.data), check_crc)
        records += more
    return records
