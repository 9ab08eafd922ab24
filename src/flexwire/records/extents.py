"""How many bytes a batch and its records have once they are inflated, as they stand there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.records.attributes import Compression
from flexwire.records.inflate import inflate
from flexwire.records.message_set import read_message, wrapped_bytes
from flexwire.wire.batch_layout import ENTRY, HEADER_SIZE, RECORD_BATCH
from flexwire.wire.varint import read_varint

if TYPE_CHECKING:
    from flexwire.records.batch import RecordBatch


def extents(batch: RecordBatch) -> tuple[int, list[int]]:
    """Give the bytes of a batch without compression, and those of each of its `records`.

    A record has its length before it, a message its offset and size. Raises `RecordError` where the
    records do not inflate; they must be such that they can be read.
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
