"""flexwire reads records that other clients wrote, and other clients read flexwire's records."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from aiokafka.record.default_records import (
    DefaultRecordBatchBuilder,
)
from aiokafka.record.legacy_records import (
    LegacyRecordBatchBuilder,
)
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords

from flexwire.records import Compression, Record, decode_batches, encode_batch

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
    from kafka.record.memory_records import MemoryRecordsBuilder

CODECS = list(Compression)
T0 = 1_700_000_000_000
HEADERS = [("k", b"1"), ("k", None), ("\u00e9", b"")]
PAIRS = [(None, b"v"), (b"k", None), (b"", b""), (b"key" * 50, b"value" * 500)] * 30


def _expected(magic: int) -> list[Record]:
    headers = [(key.encode(), value) for key, value in HEADERS] if magic > 1 else []
    return [
        Record(i, T0 + i * 7 if magic else -1, key, value, headers if i % 2 else [])
        for i, (key, value) in enumerate(PAIRS)
    ]


def _read(data: bytes) -> tuple[list[Record], set[Compression]]:
    batches = list(decode_batches(data))
    return [r for b in batches for r in b.records], {b.compression for b in batches}


@pytest.mark.parametrize("codec", CODECS)
def test_aiokafka_record_batches(codec: Compression) -> None:
    builder = DefaultRecordBatchBuilder(2, CODECS.index(codec), True, 77, 3, 5, 1 << 20)
    for i, (key, value) in enumerate(PAIRS):
        builder.append(i, T0 + i * 7, key, value, HEADERS if i % 2 else [])
    data = bytes(builder.build())
    assert _read(data) == (_expected(2), {codec})
    [batch] = decode_batches(data)
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 3, 5)
    assert (batch.record_count, batch.last_offset) == (len(PAIRS), len(PAIRS) - 1)
    assert (batch.base_timestamp, batch.max_timestamp) == (T0, T0 + 7 * (len(PAIRS) - 1))


# aiokafka refuses lz4 in magic 0, because it does not know the checksum of that format.
@pytest.mark.parametrize(
    ("magic", "codec"),
    [(m, c) for m in (0, 1) for c in CODECS[:4] if (m, c) != (0, Compression.LZ4)],
)
def test_aiokafka_message_sets(magic: Any, codec: Compression) -> None:
    builder = LegacyRecordBatchBuilder(magic, CODECS.index(codec), 1 << 20)
    for i, (key, value) in enumerate(PAIRS):
        builder.append(i, T0 + i * 7, key, value)
    assert _read(bytes(builder.build())) == (_expected(magic), {codec})


# kafka-python supports no codec except gzip.
@pytest.mark.parametrize("codec", CODECS[:2])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_kafka_python(magic: int, codec: Compression) -> None:
    builder = MemoryRecordsBuilder(magic, CODECS.index(codec), 1 << 20)
    for i, (key, value) in enumerate(PAIRS):
        headers = HEADERS if i % 2 and magic > 1 else []
        builder.append(T0 + i * 7, key, value, headers)
    builder.close()
    assert _read(bytes(builder.buffer())) == (_expected(magic), {codec})


def _read_by(reader: Any, data: bytes) -> list[Record]:
    """Return what another client's reader finds after its CRC checks."""
    found = reader(data)
    records: list[Record] = []
    while found.has_next():
        batch = found.next_batch()
        assert batch.validate_crc()
        records += (
            Record(
                one.offset,
                -1 if one.timestamp is None else one.timestamp,
                one.key,
                one.value,
                [(key.encode(), value) for key, value in one.headers],
            )
            for one in batch
        )
    return records


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(m, c) for m in (0, 1, 2) for c in CODECS if m > 1 or c is not Compression.ZSTD],
)
def test_they_read_what_is_written(magic: int, codec: Compression) -> None:
    expected = _expected(magic)
    data = encode_batch(expected, magic=magic, compression=codec)
    if codec in CODECS[:2]:
        assert _read_by(KafkaPythonRecords, data) == expected
    # aiokafka refuses this combination (see `_read_by`).
    if (magic, codec) != (0, Compression.LZ4):
        assert _read_by(AiokafkaRecords, data) == expected
