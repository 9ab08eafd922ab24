"""The records in every batch and message set that Kafka's Java code wrote are read correctly."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from flexwire.records import Compression, RecordBatch, decode_batches
from tests.each import each

_PATH = Path(__file__).parents[1] / "vectors" / "records.jsonl.gz"
with gzip.open(_PATH, "rt", encoding="ascii") as _lines:
    VECTORS: list[dict[str, Any]] = [json.loads(line) for line in _lines]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _as_document(batch: RecordBatch) -> dict[str, Any]:
    return {
        # Kafka's Java API does not return this field before magic 2.
        "baseOffset": batch.base_offset if batch.magic > 1 else -1,
        "lastOffset": batch.last_offset,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControlBatch": batch.is_control,
        "checksum": batch.crc,
        "sizeInBytes": batch.size,
        "records": [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": _hex(record.key),
                "value": _hex(record.value),
                "headers": [[_hex(key), _hex(value)] for key, value in record.headers],
            }
            for record in batch.records
        ],
    }


def test_there_are_300_documents_of_every_magic_and_compression() -> None:
    assert len(VECTORS) == 300
    kinds = Counter((vector["magic"], vector["compression"]) for vector in VECTORS)
    codecs = ("none", "gzip", "snappy", "lz4")
    assert set(kinds) == {(m, c) for m in (0, 1, 2) for c in codecs} | {(2, "zstd")}


@each("number", range(300))
def test_a_document_reads_to_its_content(number: int) -> None:
    vector = VECTORS[number]
    batches = decode_batches(bytes.fromhex(vector["hex"]))
    decoded = list(batches)
    assert [_as_document(batch) for batch in decoded] == vector["batches"]
    assert batches.partial is None
    for batch in decoded:
        assert (batch.magic, batch.compression) == (vector["magic"], vector["compression"])
        assert batch.timestamp_type == vector["timestampType"]
        assert batch.size == batch.batch_length + 12
        assert batch.record_count in (len(batch.records), -1)


@each("number", range(300))
def test_a_document_is_written_as_it_was(number: int) -> None:
    for batch in decode_batches(bytes.fromhex(VECTORS[number]["hex"])):
        written = batch.encode()
        if batch.compression is Compression.NONE:
            assert written == batch.data
        [again] = decode_batches(written)
        # Here gzip and zstd produce other bytes than in Java, so the length and the checksum
        # differ.
        other = {"checksum": batch.crc, "sizeInBytes": batch.size}
        assert _as_document(again) | other == _as_document(batch)
        assert (again.attributes, again.base_timestamp) == (batch.attributes, batch.base_timestamp)
