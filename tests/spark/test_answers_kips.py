"""Answers about headers, tagged fields and sizes equal counts made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.answers import ANSWERS
from flexwire.answers.asking.answer import AnalysisTables
from flexwire.codec import message
from flexwire.columnar import decode_messages
from flexwire.measures.tagged_fields import TaggedFieldSums
from flexwire.specs.cost.columns import BLOCKS
from flexwire.tables.message_schema import table_schema
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE, RECORDS, schema_of
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession


pytestmark = pytest.mark.spark

NAMES = {"headers", "header_tags", "tagged_fields", "sizes"}
OURS = {one.name: one for one in ANSWERS if one.name in NAMES}
RECORD = {
    "source": "produce",
    "topic": "orders",
    "client_id": "shop",
    "magic": 2,
    "is_control": False,
    "key": b"k",
    "value": b"",
    "headers": [],
}
KEY_TWICE = [{"key": b"trace", "value": None}, {"key": b"trace", "value": b"abcdef"}]
TYPED = [{"key": b"trace", "value": b"abc"}, {"key": b"n", "value": b"\x05" + bytes(8)}]
RECORDS_SEEN: list[dict[str, Any]] = [
    RECORD | {"offset": 0, "base_offset": 0, "value": b"12345", "headers": TYPED},
    RECORD | {"offset": 1, "base_offset": 1, "headers": KEY_TWICE},
    RECORD | {"offset": 2, "base_offset": 1, "key": None, "value": b"1234"},
    # Neither of these two records counts.
    RECORD | {"offset": 3, "base_offset": 3, "is_control": True, "headers": TYPED},
    RECORD | {"offset": None, "is_control": None, "headers": None, "error": "cut off"},
    # A key that is not UTF-8, and an offset within a batch, which the answer does not judge.
    RECORD
    | {"offset": 5, "base_offset": 4, "source": "fetch", "client_id": None, "topic": None}
    | {"topic_id": "AAAA", "key": None, "headers": [{"key": b"\xff", "value": b"\xfe\x00"}]},
]
OLD, NEW = ("kafka-java", "3.9.0"), ("librdkafka", "2.1")
ONE, TWO = "10.0.0.1:1>10.0.0.9:9092", "10.0.0.2:1>10.0.0.9:9092"
# FetchRequest contains a known and an unknown tagged field in the body, and a tagged field in the
# header.
KNOWN = {"path": "", "tag": 0, "name": "clusterId", "times": 1, "bytes": None}
UNKNOWN = {"path": "topics[]", "tag": 99, "name": None, "times": 2, "bytes": 7}
FIELDS_SENT: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    (ONE, [KNOWN], []),
    (ONE, [KNOWN, UNKNOWN], []),
    (ONE, [], []),
    (TWO, [], [{"tag": 5, "data": b"abc"}]),
]

# Responses to these clients, whose frames are otherwise irrelevant.
BROKER_TAGS = [("a", b"withheld"), ("b", b"\xff")]
WHEN = datetime(2026, 11, 22, tzinfo=UTC)


def test_an_answer_has_the_columns_that_it_says(answers: dict[str, DataFrame]) -> None:
    for name, answer in answers.items():
        expected = spark_schema(schema_of(OURS[name].columns))
        assert answer.schema.simpleString() == expected.simpleString()
        assert {one.name for one in OURS[name].shown_columns()} <= {*answer.columns}
        OURS[name].ordered(answer)


def test_record_headers(answers: dict[str, DataFrame]) -> None:
    found = {(row.client_id, row.key): row.asDict() for row in answers["headers"].collect()}
    assert found.keys() == {("shop", "trace"), ("shop", "n"), (None, "�")}
    shop = {"topic": "orders", "source": "produce", "client_id": "shop"}
    # The three records take 6, 1 and 4 bytes, and their headers 8, 10, 5 and 11: 45 in total.
    assert found["shop", "trace"] == shop | {
        "key": "trace",
        "records": 2,
        "record_share": pytest.approx(2 / 3),
        "headers": 3,
        "null_values": 1,
        "least_bytes": 3,
        "mean_bytes": 4.5,
        "most_bytes": 6,
        "total_bytes": 24,
        "payload_share": pytest.approx(24 / 45),
        "judged": 2,
        "reads_as": "utf-8",
    }
    assert found["shop", "n"]["reads_as"] == "kip-82"
    assert (found["shop", "n"]["total_bytes"], found["shop", "n"]["records"]) == (10, 1)
    other = found[None, "�"]
    assert (other["topic"], other["source"], other["judged"]) == ("AAAA", "fetch", 0)
    assert (other["record_share"], other["payload_share"], other["reads_as"]) == (1, 1, None)


@pytest.mark.long
def test_tagged_fields(answers: dict[str, DataFrame]) -> None:
    rows = answers["tagged_fields"].collect()
    found = {(row.is_header, row.tag): row for row in rows if row.sender == "client"}
    assert found.keys() == {(False, 0), (False, 99), (True, 5)}
    assert [row.tag for row in rows if row.sender == "broker"] == [6]
    known, unknown, header = found[False, 0], found[False, 99], found[True, 5]
    assert (known.name, known.is_known, known.messages, known.times) == ("clusterId", True, 2, 2)
    assert (known.bytes, known.byte_share, known.message_bytes) == (None, None, 200)
    assert known.message_share == pytest.approx(2 / 3)
    assert (unknown.path, unknown.name, unknown.is_known) == ("topics[]", None, False)
    assert (unknown.messages, unknown.times, unknown.bytes) == (1, 2, 7)
    assert unknown.byte_share == pytest.approx(7 / 100)
    assert (unknown.client_software_name, unknown.client_software_version) == OLD
    # The body of one of the two frames could not be decoded.
    assert (header.client_software_name, header.bytes, header.message_share) == (NEW[0], 7, 1)
    assert (header.messages, header.times, header.message_bytes) == (2, 2, 200)
    assert {(row.message, row.sender, tuple(row.versions)) for row in found.values()} == {
        ("FetchRequest", "client", (16,))
    }


@pytest.mark.long
def test_header_tags(answers: dict[str, DataFrame]) -> None:
    found = {(row.tag, row.client_id): row.asDict() for row in answers["header_tags"].collect()}
    assert found.keys() == {(5, "a"), (6, "a"), (6, "b")}
    one = found[5, "a"]
    assert (one["sender"], one["client_software_name"], one["api_names"]) == (
        "client",
        NEW[0],
        ["Fetch"],
    )
    # One kind of client software sent two requests. Another kind sent three without a tag.
    assert (one["messages"], one["message_share"]) == (2, 1)
    assert (one["values"], bytes(one["value"]), one["value_bytes"]) == (2, b"abc", 7)
    assert one["first_time"] == one["last_time"] == WHEN.replace(tzinfo=None)
    # Withheld values are counted, but not shown.
    broker = found[6, "a"]
    assert (broker["sender"], broker["messages"], broker["values"]) == ("broker", 1, None)
    assert (broker["value"], broker["value_bytes"]) == (None, None)
    # Three heartbeats contained no tag.
    assert broker["message_share"] == pytest.approx(1 / 4)
    assert (found[6, "b"]["values"], bytes(found[6, "b"]["value"])) == (1, b"\xff")


@pytest.mark.long
def test_the_facts_and_both_answers_count_the_same_tags_in_headers(
    answers: dict[str, DataFrame],
) -> None:
    sums = TaggedFieldSums()
    sums.add(pa.RecordBatch.from_pylist(every_frame(), FRAMES_TABLE))
    facts = {(one.message, one.tag): (one.times, one.bytes) for one in sums.facts()}
    headers = {"client": "RequestHeader", "broker": "ResponseHeader"}
    assert facts == {("RequestHeader", 5): (2, 7), ("ResponseHeader", 6): (2, 1)}
    found: dict[str, dict[Any, tuple[int, int]]] = {"tagged_fields": {}, "header_tags": {}}
    for name, counted in found.items():
        for row in answers[name].collect():
            if name == "header_tags" or row.is_header:
                size = row.value_bytes if name == "header_tags" else row.bytes
                times, before = counted.get((headers[row.sender], row.tag), (0, 0))
                told = times + row.messages, before + (size or 0)
                counted[headers[row.sender], row.tag] = told
    assert found == {"tagged_fields": facts, "header_tags": facts}
    # Each row names the versions of its message.
    assert [one.versions for one in sums.facts()] == [(2,), (1,)]


@pytest.mark.long
def test_sizes(answers: dict[str, DataFrame]) -> None:
    found = {(row.message, row.version): row for row in answers["sizes"].collect()}
    beats, requests = found["HeartbeatResponse", 4], found["FetchRequest", 16]
    # Length 4, correlation id 4, tag count 1; throttle time 4, error code 2, tag count 1.
    assert (beats.messages, beats.measured, beats.sent_bytes, beats.clients) == (4, 4, 64, 2)
    # 14 bytes without the two tag counts; the draft has an optional field buffer in both places.
    assert (beats.fixed_bytes, beats.flexible_bytes) == (4 * 14, 64)
    assert (beats.interleaved_bytes, beats.optional_buffers_bytes) == (64, 64)
    # A code of 0 is omitted, which saves 2 bytes. A code of 25 also needs a tag and a size.
    assert (beats.error_tags_bytes, beats.error_share) == (3 * 14 + 18, 0.25)
    assert (beats.margin_bytes, beats.fixed_gain_share) == (0, 1)
    # "b" sent one message with an error, and therefore loses bytes.
    assert beats.error_tags_gain_share == 0.5
    # No body was decoded.
    assert (requests.messages, requests.measured, requests.sent_bytes) == (4, 0, 400)
    assert (requests.fixed_bytes, requests.margin_bytes, requests.error_share) == (None,) * 3


@pytest.mark.long
def test_a_client_gains_by_kip_636_what_kip_482_alone_does_not_save(spark: SparkSession) -> None:
    name = "ProduceRequest"
    body = decode_messages(name, pa.array([message(name)().encode(3)]), 3).to_pylist()[0]
    told = {"message": name, "api_name": "Produce", "api_key": 0, "direction": "request"}
    one = heartbeats()[0] | told | {"api_version": 3, "body_version": 3, "body": body}
    sent = tables_of(spark, frames=[one], records=[], messages={name: [one]})
    (row,) = OURS["sizes"].ask(sent).collect()
    # The request becomes flexible because its response has errors, and is smaller for that reason.
    assert (row.error_tags_bytes, row.flexible_gain_share) == (row.flexible_bytes, 1)
    assert row.error_tags_gain_share == 0


@pytest.mark.long
def test_no_rows_give_none(empty: AnalysisTables) -> None:
    for answer in OURS.values():
        assert answer.ask(empty).collect() == []


@pytest.mark.long
def test_frames_of_request_logs_have_no_size(spark: SparkSession) -> None:
    frames = [one | {"size": None} for one in heartbeats()]
    logged = tables_of(spark, frames=frames, records=[], messages={"HeartbeatResponse": frames})
    assert OURS["sizes"].ask(logged).collect() == []


def test_blocks_of_frames_are_one_in_so_many_of_each_octave() -> None:
    ranges = BLOCKS.ranges
    assert ranges[0] == (0, 255)
    for octave in (256, 2**20, 2**30):
        inside = [(low, high) for low, high in ranges if octave <= low < 2 * octave]
        assert all(high < 2 * octave for _, high in inside)
        assert sum(high - low + 1 for low, high in inside) * 32 == octave


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> dict[str, DataFrame]:
    tables = tables_of(
        spark,
        frames=every_frame(),
        records=RECORDS_SEEN,
        messages={"FetchRequest": fetches(), "HeartbeatResponse": heartbeats()},
    )
    return {name: answer.ask(tables) for name, answer in OURS.items()}


@pytest.fixture(scope="module")
def empty(spark: SparkSession) -> AnalysisTables:
    return tables_of(spark, frames=[], records=[], messages={})


def fetches() -> list[dict[str, Any]]:
    """Return the columns of the frames and of the message tables that an answer reads."""
    return [
        {
            "message": "FetchRequest",
            "api_name": "Fetch",
            "api_key": 1,
            "api_version": 16,
            "body_version": 16,
            "direction": "request",
            "connection": connection,
            "frame_index": index,
            "client_id": "a",
            "time": WHEN,
            "client_software_name": (OLD if connection == ONE else NEW)[0],
            "client_software_version": (OLD if connection == ONE else NEW)[1],
            "header_version": 2,
            "header_unknown_tagged_fields": header,
            "tagged_fields": uses,
            "withheld_credentials": 0,
            "size": 100,
            "outcome": "decoded",
        }
        for index, (connection, uses, header) in enumerate(FIELDS_SENT)
    ]


def unread_fetches() -> list[dict[str, Any]]:
    """Return frames with a header but no readable body. The second connection is not Kafka."""
    tags = [{"tag": 5, "data": b"abcd"}]
    like = fetches()[-1] | {"body_version": None, "header_unknown_tagged_fields": tags}
    return [
        like | {"frame_index": 50, "outcome": "failed"},
        like | {"frame_index": 51, "outcome": "not Kafka"},
    ]


def every_frame() -> list[dict[str, Any]]:
    return [*fetches(), *unread_fetches(), *heartbeats(), *tagged_responses()]


def heartbeats() -> list[dict[str, Any]]:
    bodies = [message("HeartbeatResponse")(error_code=code).encode(4) for code in (0, 0, 0, 25)]
    decoded = decode_messages("HeartbeatResponse", pa.array(bodies), 4).to_pylist()
    return [
        {
            "message": "HeartbeatResponse",
            "api_name": "Heartbeat",
            "api_key": 12,
            "api_version": 4,
            "body_version": 4,
            "direction": "response",
            "connection": ONE,
            "frame_index": index,
            "client_id": "b" if index == 3 else "a",
            "header_version": 1,
            "header_unknown_tagged_fields": [],
            "tagged_fields": [],
            "withheld_credentials": 0,
            "size": 16,
            "outcome": "decoded",
            "body": body,
        }
        for index, body in enumerate(decoded)
    ]


def tagged_responses() -> list[dict[str, Any]]:
    like = heartbeats()[0] | {"message": "ListGroupsResponse", "api_name": "ListGroups"}
    return [
        like | {"client_id": one, "header_unknown_tagged_fields": [{"tag": 6, "data": data}]}
        for one, data in BROKER_TAGS
    ]


def tables_of(
    spark: SparkSession,
    *,
    frames: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    messages: dict[str, list[dict[str, Any]]],
) -> AnalysisTables:
    def table(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> DataFrame:
        made = pa.Table.from_pylist([*rows], schema)
        return spark.createDataFrame(made.to_pylist(), spark_schema(schema))

    def of_message(name: str) -> DataFrame | None:
        return table(messages[name], table_schema(name)) if name in messages else None

    return AnalysisTables(
        table(frames, FRAMES_TABLE),
        table([], CONNECTIONS_TABLE),
        table(records, RECORDS),
        of_message,
    )
