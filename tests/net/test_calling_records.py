"""Records are written as JSON, and records that are shown can be sent again."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from flexwire.client import Broker
from flexwire.errors import JsonFormError
from flexwire.protocol.records_json import RecordBudget, decode_records, encode_records
from flexwire.records import Record, decode_batches, encode_batch
from tests.net.answering import Answers, answering

RECORD = {"key": "a", "value": "b", "timestamp": 7}


def records_of(form: Any) -> list[Record]:
    return [
        one for batch in decode_batches(encode_records(form, "records")) for one in batch.records
    ]


@pytest.mark.parametrize(
    ("form", "record"),
    [
        ({}, Record(0, 7, None, None)),
        ({"key": "ü", "value": ""}, Record(0, 7, "ü".encode(), b"")),
        ({"key": {"hex": "00ff"}, "value": {"base64": "AP8="}}, Record(0, 7, b"\0\xff", b"\0\xff")),
        ({"headers": {"h": "x"}}, Record(0, 7, None, None, [(b"h", b"x")])),
        (
            {"headers": [{"key": "h", "value": None}, {"key": {"hex": "ff"}, "value": "x"}]},
            Record(0, 7, None, None, [(b"h", None), (b"\xff", b"x")]),
        ),
    ],
)
def test_a_record_is_what_was_written(form: dict[str, Any], record: Record) -> None:
    assert records_of([{"timestamp": 7, **form}]) == [record]


def test_a_timestamp_that_is_left_out_is_now() -> None:
    [first, second] = records_of([{"value": "a"}, {"value": "b"}])
    assert first.timestamp == second.timestamp > 1_700_000_000_000
    assert [first.offset, second.offset] == [0, 1]


def test_a_batch_says_what_its_header_has() -> None:
    form = {"compression": "zstd", "producerId": 5, "isTransactional": True, "records": [RECORD]}
    [batch] = decode_batches(encode_records(form, ""))
    assert (batch.compression, batch.producer_id, batch.is_transactional) == ("zstd", 5, True)
    [old] = decode_batches(encode_records({"magic": 1, "records": [RECORD]}, ""))
    assert old.magic == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        encode_batch([Record(0, 7, b"a", None, [(b"h", None)])]),
        encode_batch([Record(9, 7, b"\xff", b"\0")], compression="gzip", producer_id=3)
        + encode_batch([Record(10, 8, None, b"b")], partition_leader_epoch=4, base_sequence=2),
        encode_batch([], base_offset=3, last_offset=8),
        encode_batch([Record(0, 7, b"a", b"b")], timestamp_type="LogAppendTime", max_timestamp=7),
    ],
)
def test_what_is_shown_can_be_sent_again(raw: bytes) -> None:
    shown = decode_records(raw)
    assert shown is not None
    assert encode_records(shown, "records") == raw if raw else shown == []


def test_records_that_inflate_beyond_bounds_are_not_shown() -> None:
    batch = encode_batch([Record(0, 7, None, bytes(100_000))], compression="zstd")
    assert len(decode_records(batch * 3, RecordBudget(301_000)) or []) == 3
    assert decode_records(batch * 3, RecordBudget(299_000)) is None
    many = encode_batch([Record(at, 7, None, b"") for at in range(1000)])
    assert decode_records(many, RecordBudget(1000 * 256)) is not None
    assert decode_records(many, RecordBudget(1000 * 256 - 1)) is None


@pytest.mark.parametrize(
    ("form", "why", "where"),
    [
        ("text", "expected records, a batch or base64", "p"),
        ([7], "expected a record, got 7", "p[0]"),
        ([{"kee": "a"}], "a record has no field 'kee'", "p[0]"),
        ([{"key": 7}], "expected text, null", "p[0].key"),
        ([{"key": {"hex": "0"}}], "expected text, null", "p[0].key"),
        ([{"key": {"base64": 7}}], "expected text, null", "p[0].key"),
        ([{"headers": 7}], "expected record headers", "p[0].headers"),
        ([{"headers": [{"key": "a"}]}], 'expected {"key": …, "value": …}', "p[0].headers[0]"),
        ([{"headers": [{"key": None, "value": "a"}]}], "must not be null", "p[0].headers[0].key"),
        ([{"timestamp": "now"}], "timestamp", "p"),
        ({"records": 7}, "expected records, got 7", "p"),
        ({"records": [], "compresion": "zstd"}, "a batch has no field 'compresion'", "p"),
        ({"records": [], "compression": "zip"}, "magic 2 does not support 'zip'", "p"),
    ],
)
def test_what_is_not_a_record_is_refused_with_its_path(form: Any, why: str, where: str) -> None:
    with pytest.raises(JsonFormError) as caught:
        encode_records(form, "p")
    assert why in str(caught.value)
    assert caught.value.path == where


def test_they_go_into_a_request_and_come_out_of_an_answer() -> None:
    raw = encode_batch([Record(0, 7, b"a", b"b")])
    in_base64 = base64.b64encode(raw).decode()
    fetched = [{"partitions": [{"records": in_base64}, {"records": "AAAA"}, {"records": None}]}]
    answers = Answers(Fetch={"responses": fetched})
    with answering(answers) as (address, _), Broker.connect(address) as broker:
        for records in ([RECORD], in_base64):
            partitions = [{"index": 0, "records": records}]
            broker.call("Produce", {"topicData": [{"name": "a", "partitionData": partitions}]}, 9)
        shown = broker.call("Fetch", {}, 12).to_json(records=True)
    for _, _, form in answers.asked[:2]:
        assert form["topicData"][0]["partitionData"][0]["records"] == in_base64
    assert shown is not None
    [whole, cut, nothing] = [one["records"] for one in shown["responses"][0]["partitions"]]
    assert whole[0]["records"] == [{**RECORD, "offset": 0, "headers": []}]
    # An incomplete batch is returned unchanged, and null remains null.
    assert (cut, nothing) == ("AAAA", None)
