"""A record batch: the fields of its header, and its records, which are read on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from flexwire.arguments import to_list
from flexwire.errors import RecordError
from flexwire.records.compression import inflate
from flexwire.records.encode import WRITTEN_FIELDS, write_batch
from flexwire.records.executors import read_records
from flexwire.records.message_set import read_inner_records, read_message, wrapped_bytes
from flexwire.records.record import Compression, Record, TimestampType, compression_of
from flexwire.wire.batch_layout import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE,
    RECORD_BATCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_INFLATED = 128 * 1024 * 1024
# For every this many bytes of the limit, the inflated bytes may contain one record or record
# header. Its object takes far more memory than the two to seven bytes from which it is read.
OBJECT_COST = 32


class RecordBatch(msgspec.Struct, gc=False, kw_only=True):
    """A record batch (magic 2), or one top-level message of a message set (magic 0, 1).

    A wrapper message is one batch with many records. Any other message is a batch with one record.
    A field is -1 if its magic does not define the field, or if the value is known only after a
    wrapper message is inflated.

    Attributes:
        position: where the batch starts in the data.
        data: the bytes of the batch itself.
        batch_length: the bytes after its base offset and this length, as declared.
        last_offset: the offset of its last record, which compaction may have removed.
        base_timestamp: the first timestamp, or the delete horizon if there is one.
        record_count: as declared.
        crc: as declared. It covers all bytes after the crc field, as CRC-32C in magic 2 and as
        CRC-32 in magic 0 and 1.
    """

    position: int
    data: bytes
    base_offset: int
    last_offset: int
    batch_length: int
    magic: int
    crc: int
    attributes: int
    max_timestamp: int
    base_timestamp: int = -1
    partition_leader_epoch: int = -1
    last_offset_delta: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    record_count: int = -1
    check_crc: bool = True
    max_inflated: int = MAX_INFLATED
    _records: list[Record] | None = None

    @property
    def size(self) -> int:
        """The number of bytes of the whole batch, including its base offset and batch length."""
        return len(self.data)

    @property
    def compression(self) -> Compression:
        """The compression type of the records."""
        return compression_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """The source of the timestamps."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        if self.attributes & TIMESTAMP_TYPE_MASK:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """True if the batch is part of a transaction."""
        return self.magic > 1 and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """True if the records are control records.

        Brokers write control records; consumers skip them.
        """
        return self.magic > 1 and bool(self.attributes & CONTROL_MASK)

    @property
    def has_delete_horizon(self) -> bool:
        """True if the base timestamp is the delete horizon of the batch's tombstones."""
        return self.magic > 1 and bool(self.attributes & DELETE_HORIZON_MASK)

    @property
    def records(self) -> list[Record]:
        """The records, which are inflated and read at the first access and then kept.

        Raises `RecordError` with an offset in the data from which the batch was read. If the damage
        is in compressed bytes, the error contains the batch's offset, and its reason contains the
        place in the inflated bytes.
        """
        return read_and_keep(self)

    def encode(self, records: Iterable[Record] | None = None, *, level: int | None = None) -> bytes:
        """Write the batch again: its fields, and its own records or the given ``records``.

        The batch's own records are written as they were read. With ``LogAppendTime``, the written
        timestamps come from the producer. For an uncompressed batch in Kafka's own form, the result
        therefore equals the original bytes. ``level`` has the same meaning as in `encode_batch`.

        Raises `EncodeError` for records that are not valid in this batch, and the `RecordError` of
        `records`.
        """
        given = (
            self._read(None)
            if records is None
            else to_list(records, "records", "an iterable of Records")
        )
        is_message = self.magic < RECORD_BATCH and self.compression is Compression.NONE
        names = () if is_message else WRITTEN_FIELDS[self.magic]
        fields = {name: getattr(self, name) for name in names}
        return write_batch(given, self.magic, self.attributes, fields, level=level)

    def _read(self, append_time: int | None) -> list[Record]:
        read = self._read_records if self.magic == RECORD_BATCH else self._read_messages
        return read(append_time)

    def _budget(self) -> int:
        if self.compression is Compression.NONE:
            return len(self.data)
        return object_budget(self.max_inflated)

    def _inflate(self, data: bytes) -> bytes:
        return inflate(self.compression, data, magic=self.magic, limit=self.max_inflated)

    def _read_records(self, append_time: int | None) -> list[Record]:
        data, start = self.data, HEADER_SIZE
        try:
            # A batch that compaction emptied contains no compressed data at all. It does not even
            # contain the compressed form of empty data.
            if self.compression is not Compression.NONE and self.size > HEADER_SIZE:
                data, start = self._inflate(data[start:]), 0
            return read_records(
                data,
                start,
                count=self.record_count,
                base_offset=self.base_offset,
                base_timestamp=self.base_timestamp,
                budget=self._budget(),
                append_time=append_time,
            )
        except RecordError as error:
            raise self._located(error, is_inflated=data is not self.data) from None

    def _read_messages(self, append_time: int | None) -> list[Record]:
        data = self.data
        try:
            message = read_message(data, 0, len(data))
            if self.compression is Compression.NONE:
                return [Record(message.offset, message.timestamp, message.key, message.value, [])]
            data = self._inflate(wrapped_bytes(message))
            return read_inner_records(
                data,
                message,
                append_time=append_time,
                check_crc=self.check_crc,
                budget=self._budget(),
            )
        except RecordError as error:
            raise self._located(error, is_inflated=data is not self.data) from None

    def _located(self, error: RecordError, *, is_inflated: bool) -> RecordError:
        if not is_inflated:
            return RecordError(error.reason, offset=self.position + error.offset)
        reason = f"{error.reason} (at byte {error.offset} of the inflated records)"
        return RecordError(reason, offset=self.position)


def read_and_keep(batch: RecordBatch) -> list[Record]:
    """Return the records of a batch, and keep them in the batch."""
    kept = batch._records  # noqa: SLF001 - the attribute of a batch, used in the same package
    if kept is None:
        is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        kept = batch._read(batch.max_timestamp if is_append_time else None)  # noqa: SLF001 - the attribute of a batch
        batch._records = kept  # noqa: SLF001 - the attribute of a batch
    return kept


def property_of(read: Callable[[RecordBatch], list[Record]]) -> property:
    """Make another function, possibly written in C, the getter of `RecordBatch.records`."""
    return property(read, doc=_RECORDS.__doc__)


# The getter that the class defines.
_RECORDS = RecordBatch.records


def object_budget(max_inflated: int) -> int:
    """Return how many records and record headers a compressed batch may contain."""
    return max_inflated // OBJECT_COST
