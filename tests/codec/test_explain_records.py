"""Explanations of records cover every byte of each batch from Kafka's Java, in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec import explain, message
from flexwire.codec import record_explanation as bounded
from flexwire.codec.record_explanation import MOST_RECORDS, explain_records
from flexwire.records import Record, encode_batch
from flexwire.records.inflation import count_bytes
from tests.each import each
from tests.records.batches import record
from tests.records.inflating import FORMS
from tests.records.test_vectors import VECTORS

if TYPE_CHECKING:
    import pytest


@each("number", range(300))
def test_what_is_said_of_records_tiles_them(number: int) -> None:
    vector = VECTORS[number]
    raw = bytes.fromhex(vector["hex"])
    found = explain_records(raw, "records")
    assert found is not None
    at = 0
    for one in found:
        assert one.start == at
        at += one.size
    assert at == len(raw)
    if vector["compression"] == "none":
        _holds_what_is_in_the_records(vector, found)


def _holds_what_is_in_the_records(vector: dict[str, Any], found: list[Any]) -> None:
    def content(name: str) -> list[bytes]:
        return [
            one.value if isinstance(one.value, bytes) else one.value.encode()
            for one in found
            if one.path.endswith(f".{name}") and one.type.startswith("BYTES")
        ]

    records = [one for batch in vector["batches"] for one in batch["records"]]
    for name in ("key", "value"):
        there = [bytes.fromhex(one[name]) for one in records if one[name]]
        of_headers = [
            bytes.fromhex(pair[name == "value"])
            for one in records
            for pair in one["headers"]
            if pair[name == "value"]
        ]
        assert sorted(content(name)) == sorted(there + of_headers)


def _produced(batch: bytes) -> tuple[Any, bytes]:
    kind: Any = message("ProduceRequest")
    made = kind(topic_data=[])
    topic = kind.TopicProduceData(name="t")
    topic.partition_data = [kind.PartitionProduceData(index=0, records=batch)]
    made.topic_data = [topic]
    return kind, made.encode(9)


def test_a_field_of_records_is_its_batches() -> None:
    batch = encode_batch([Record(0, 1700000000000, b"k", b"\xff\x01", [(b"h", None)])])
    kind, raw = _produced(batch + batch[:30])
    found = explain(kind, raw, 9)
    at = 0
    for one in found.annotations:
        assert one.offset == at
        at += one.length
    assert (at, found.error) == (len(raw), None)
    field = "topicData[0].partitionData[0].records"
    said = {one.path.removeprefix(field): (one.type, one.value) for one in found.annotations}
    assert said["[0].baseOffset"] == ("INT64", 0)
    assert said["[0].attributes"] == ("INT16 (CreateTime)", 0)
    assert said["[0].records[0].timestampDelta"] == ("VARLONG", 0)
    assert said["[0].records[0].offsetDelta"] == ("VARINT", 0)
    assert said["[0].records[0].key"] == ("BYTES as text", "k")
    assert said["[0].records[0].value"] == ("BYTES", b"\xff\x01")
    assert said["[0].records[0].headers[0].key"] == ("BYTES as text", "h")
    assert said["[0].records[0].headers[0].value"] == ("VARINT length", -1)
    assert said[""] == ("the first part of a batch", batch[:30])


def test_a_field_of_whole_batches_has_no_other_part() -> None:
    batch = encode_batch([Record(0, 0, b"k", b"v", [])])
    for count in (1, 2):
        kind, raw = _produced(batch * count)
        found = explain(kind, raw, 9).annotations
        assert sum(one.path.endswith("].baseOffset") for one in found) == count
        assert not [one for one in found if one.type == "the first part of a batch"]


def test_bytes_after_the_message_are_counted() -> None:
    kind, raw = _produced(encode_batch([Record(0, 0, b"k", b"v", [])]))
    error = explain(kind, raw + b"abc", 9).error
    assert error is not None
    assert (error.offset, error.reason) == (len(raw), "the message ends here but 3 bytes follow")


def test_of_many_records_the_last_are_counted() -> None:
    batch = encode_batch([Record(at, 0, b"k", b"v", []) for at in range(MOST_RECORDS - 1)])
    found = explain_records(batch * 3, "records") or []
    said = [(one.path, one.type) for one in found if one.type.endswith(" more")]
    assert said == [("records[1].records", "998 more"), ("records[2].records", "999 more")]
    assert sum(one.path.endswith("].length") for one in found) == MOST_RECORDS
    at = 0
    for one in found:
        assert one.start == at
        at += one.size
    assert at == 3 * len(batch)


def test_as_many_records_as_are_explained_leave_none_to_count() -> None:
    batch = encode_batch([Record(at, 0, b"k", b"v", []) for at in range(MOST_RECORDS)])
    found = explain_records(batch, "records") or []
    assert found[-1].path.startswith(f"records[0].records[{MOST_RECORDS - 1}].")


def test_compressed_records_are_counted() -> None:
    batch = encode_batch([Record(at, 0, b"k", b"v", []) for at in range(3)], compression="lz4")
    *_, last = explain_records(batch, "records") or []
    assert (last.path, last.type) == ("records[0].records", "3 records in lz4")
    assert last.value == batch[last.start :]


def test_compressed_records_beyond_a_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = FORMS["magic 2, zstd"].packed(record(value=bytes(5000)), 1)
    wrapper = FORMS["magic 1, gzip"].packed(FORMS["magic 1, gzip"].body([b""]), 1)
    plain = encode_batch([Record(0, 0, b"k", b"v", [])])
    monkeypatch.setattr(bounded, "MOST_COUNTED", 6000)
    data = packed * 2 + plain + packed + wrapper
    found = explain_records(data, "records") or []
    assert [one.type for one in found if one.path.endswith("].records")] == [
        "1 record in zstd",
        "1 record in zstd",
        "records that were not read in zstd",
        "records that were not read in gzip",
    ]
    assert sum(one.size for one in found) == len(data)


def test_the_bound_of_compressed_records_is_one_that_they_may_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [Record(0, 0, b"k", bytes(5000), [])]
    monkeypatch.setattr(bounded, "MOST_COUNTED", count_bytes(records))
    packed = encode_batch(records, compression="zstd")
    said = [one.type for one in explain_records(packed * 3, "records") or []]
    assert said.count("1 record in zstd") == 2
    assert said.count("records that were not read in zstd") == 1


def test_what_is_no_batch_stays_bytes() -> None:
    batch = bytearray(encode_batch([Record(0, 0, b"k", b"v", [])]))
    batch[-1] ^= 1
    assert explain_records(bytes(batch), "records") is None
    kind, raw = _produced(bytes(batch))
    [field] = [one for one in explain(kind, raw, 9).annotations if one.path.endswith(".records")]
    assert (field.type, field.value) == ("COMPACT_NULLABLE_RECORDS", bytes(batch))
