"""Answers about traffic have known results, because the test generates the traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers import ANSWERS
from flexwire.answers.asking.labels import read_labels
from flexwire.answers.chargeback import chargeback
from flexwire.answers.connections import connections
from flexwire.answers.errors import errors
from flexwire.answers.latency import SLOWEST_COLUMNS, latency, slowest
from flexwire.errors import ArgumentError
from flexwire.protocol.error_codes import ERROR_NAMES, RETRIABLE
from flexwire.schema.catalog import catalog
from flexwire.tables.schema import schema_of
from flexwire.tables.spec_places import error_places
from flexwire.tasks import spark_schema
from tests.spark.told import SECOND, START_US, Told

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

DAY = 86_400 * SECOND
APP, OTHER = "10.0.0.9:50000", "[2001:db8::1]:6000"
ORDERS_ID, UNKNOWN_ID, NO_ID = "b" * 21 + "A", "c" * 21 + "A", "A" * 22
HOSTILE = "<script>'\"\\%_*\u0000é"
COUNTED = ("requests", "sent_bytes", "received_bytes")


def _produce(*topics: tuple[str | None, str | None, list[int | None]]) -> dict[str, Any]:
    return {
        "topic_data": [
            {"name": name, "topic_id": number,
             "partition_data": [{"index": at, "records_size": size}
                                for at, size in enumerate(sizes)]}
            for name, number, sizes in topics
        ]
    }  # fmt: skip


def _fetched(
    *topics: tuple[str | None, str | None, list[int | None]], code: int = 0
) -> dict[str, Any]:
    return {
        "responses": [
            {"topic": name, "topic_id": number,
             "partitions": [{"partition_index": at, "records_size": size, "error_code": code,
                             "high_watermark": 9}
                            for at, size in enumerate(sizes)]}
            for name, number, sizes in topics
        ]
    }  # fmt: skip


_MINE = [one for one in ANSWERS if one.ask in {chargeback, latency, errors, connections}]
WAITS = {"max_wait_ms": 500, "min_bytes": 10}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> AnalysisTables:
    told = Told()
    told.connection(APP, 0, 100 * SECOND)
    told.connection("10.0.0.9:50001", 0, 3 * SECOND, closed_by="broker", reset=True)
    told.connection("10.0.0.9:50002", 70 * SECOND, 70 * SECOND + 400_000)
    told.connection(OTHER, 0, 10 * SECOND, closed_by=None, seen_from_start=False)
    told.connection("10.0.0.8:1", 0, 9 * SECOND)  # nothing is sent over this connection
    told.connection("10.0.0.7:1", 0, 9 * SECOND, is_kafka=False)
    names = {
        "topics": [{"name": "orders", "topic_id": ORDERS_ID, "error_code": 0, "partitions": []}]
    }
    told.exchange(("app", APP), "Metadata", 10_000, 4_000, {}, names, sizes=(40, 60))
    # Two topics, one of them named by its id, and a partition without records.
    both = _produce(("orders", NO_ID, [300, None]), (None, ORDERS_ID, [20]), (HOSTILE, None, [50]))
    told.exchange(("app", APP), "Produce", 20_000, 9_000, both, {}, sizes=(500, 30))
    # Four fetches: one returns records after 2 ms, one no records after the whole wait, one no
    # records but early, and one a few records but late.
    got = _fetched((None, ORDERS_ID, [200]), (None, UNKNOWN_ID, [70]))
    told.exchange(("app", APP), "Fetch", 30_000, 2_000, WAITS, got, sizes=(80, 400))
    told.exchange(("app", APP), "Fetch", 40_000, 500_000, WAITS, _fetched(("orders", None, [0])))
    told.exchange(("app", APP), "Fetch", 600_000, 1_000, WAITS, _fetched(("orders", None, [None])))
    # A fetch that ends after its max wait, with as many bytes as requested.
    told.exchange(("app", APP), "Fetch", 700_000, 600_000, WAITS, _fetched(("orders", None, [10])))
    longest = {"max_wait_ms": 2**31 - 1, "min_bytes": 2**31 - 1}
    told.exchange(("app", "10.0.0.9:50003"), "Fetch", 0, 1_000, longest, {}, sizes=(0, 0))
    # A fetch across midnight UTC (START_US is 22:13:20) that fails for two partitions.
    midnight = DAY - START_US % DAY
    told.exchange(
        ("app", APP), "Fetch", midnight - 500, 1_000, WAITS,
        _fetched(("orders", None, [40, None]), code=6), sizes=(10, 90),
    )  # fmt: skip
    # Authentication, a request, and authentication again.
    for at, api in enumerate(("SaslHandshake", "SaslAuthenticate", "Metadata", "SaslHandshake")):
        told.exchange((None, OTHER), api, at * 100_000, 1_000, {}, {"error_code": 0})
    told.exchange((None, OTHER), "SaslAuthenticate", 5 * SECOND, 1_000, {}, {"error_code": 58})
    # An unknown code, and no answer on a connection that the broker closes.
    told.exchange(("app", "10.0.0.9:50001"), "Heartbeat", 0, 1_000, {}, {"error_code": 9999})
    told.exchange(("app", "10.0.0.9:50001"), "Heartbeat", SECOND, None)
    told.exchange(("app", "10.0.0.9:50002"), "Heartbeat", 70 * SECOND + 100, 1_000)
    told.frames.append(told.frames[0] | {"outcome": "not Kafka", "client_id": None})
    return told.tables(spark)


def _rows(found: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, found.select(*names).collect()), key=repr)


@pytest.mark.long
@pytest.mark.spark
def test_the_bytes_of_topics_and_of_what_has_none_are_those_of_the_frames(
    tables: AnalysisTables, tmp_path: Path
) -> None:
    file = tmp_path / "labels.csv"
    file.write_text('client_id,team\r\nap?,"Billing, Inc"\n')
    found = chargeback(tables, file).collect()
    kafka = [one for one in tables.frames.collect() if one.outcome != "not Kafka"]
    for side, direction in (("sent_bytes", "request"), ("received_bytes", "response")):
        whole = sum(one.size for one in kafka if one.direction == direction)
        assert sum(one[side] for one in found) == whole > 0
    assert {(one.client_id, one.team) for one in found} == {("app", "Billing, Inc"), (None, None)}
    days = sorted({one.day for one in found})
    topics = {
        (days.index(one.day), one.topic, one.topic_id): tuple(one[name] for name in COUNTED)
        for one in found
        if one.client_id == "app"
    }
    # The requests are two Produce requests, by name and by id, and the fetches with 200 and 10
    # bytes.
    assert topics.pop((0, "orders", None)) == (4, 320, 210)
    assert topics.pop((0, HOSTILE, None)) == (1, 50, 0)
    assert topics.pop((0, None, UNKNOWN_ID)) == (1, 0, 70)
    # The fetch across midnight was sent on one day, but counts on the day of its records.
    assert topics.pop((1, "orders", None)) == (1, 0, 40)
    assert topics.pop((1, None, None)) == (0, 0, 50)
    # Metadata, three fetches without records, three heartbeats.
    sent, received = 40 + 500 + 80 + 3 * 100 + 10 + 3 * 100, 60 + 30 + 400 + 3 * 50 + 2 * 50
    assert topics == {(0, None, None): (7, sent - 370, received - 280)}


@pytest.mark.long
@pytest.mark.spark
def test_bytes_that_a_request_log_does_not_say_are_not_known(spark: SparkSession) -> None:
    """Every message has records. A known size is counted; an unknown size makes the sum unknown."""
    told, log = Told(), (None, None)
    produced = {"a": 300, "b": None}
    for name, size in produced.items():
        told.exchange(("app", APP), "Produce", 0, 9, _produce((name, None, [size])), {}, sizes=log)
    told.exchange(("app", APP), "Fetch", 0, 9, {}, _fetched(("a", None, [70, 5])), sizes=log)
    told.exchange(("app", APP), "Fetch", 0, 9, {}, _fetched(("c", None, [70, None])), sizes=log)
    shared = _fetched((None, ORDERS_ID, [None]))
    for _ in range(3):
        told.exchange(("app", APP), "ShareFetch", 0, 9, {}, shared, sizes=log)
    told.exchange(("app", APP), "Heartbeat", 0, 9, sizes=log)
    found = _rows(chargeback(told.tables(spark)), "topic", "topic_id", *COUNTED, "bytes")
    assert found == sorted([
        ("a", None, 2, 300, 75, 375),
        ("b", None, 1, None, 0, None),
        ("c", None, 1, 0, None, None),
        (None, ORDERS_ID, 3, 0, None, None),
        (None, None, 1, None, None, None),
    ], key=repr)  # fmt: skip


@pytest.mark.long
@pytest.mark.spark
def test_error_codes_are_counted_wherever_a_spec_has_them(tables: AnalysisTables) -> None:
    found = _rows(
        errors(tables), "client_id", "api_name", "topic", "error_code", "error_name",
        "is_retriable", "field", "errors", "responses",
    )  # fmt: skip
    assert found == [
        ("app", "Fetch", "orders", 6, "NOT_LEADER_OR_FOLLOWER", True,
         "responses[].partitions[].error_code", 2, 1),
        ("app", "Heartbeat", None, 9999, None, None, "error_code", 1, 1),
        (None, "SaslAuthenticate", None, 58, "SASL_AUTHENTICATION_FAILED", False, "error_code",
         1, 1),
    ]  # fmt: skip
    (late,) = errors(tables).where("api_name = 'Fetch'").collect()
    assert late.time.timestamp() % 60 == 0


@pytest.mark.long
@pytest.mark.spark
def test_latencies_are_those_that_were_told_and_a_wait_is_none_of_them(
    tables: AnalysisTables,
) -> None:
    found = {(one.api_name, one.client_id, one.waited): one for one in latency(tables).collect()}
    fetch, waited = found["Fetch", "app", False], found["Fetch", "app", True]
    assert (fetch.responses, fetch.p50_us, fetch.max_us) == (5, 1_000, 600_000)
    assert (fetch.slowest_connection, fetch.slowest_frame_index) == (f"{APP}>10.0.0.1:9092", 5)
    assert fetch.slowest_time.timestamp() * SECOND == START_US + 1_300_000
    assert (waited.responses, waited.p99_us, waited.max_us) == (1, None, 500_000)
    assert found["SaslHandshake", None, False].address == "[2001:db8::1]"
    assert sum(one.responses for one in found.values()) == 15
    first = slowest(tables, 2).where("api_name = 'Fetch' and not waited").orderBy("rank").collect()
    assert [(one.rank, one.latency_us) for one in first] == [(1, 600_000), (2, 2_000)]


@pytest.mark.long
@pytest.mark.spark
def test_connections_are_told_by_who_opens_and_closes_them(tables: AnalysisTables) -> None:
    found = {(one.client_id, one.address): one.asDict() for one in connections(tables).collect()}
    app = found.pop(("app", "10.0.0.9"))
    midnight = DAY - START_US % DAY
    # Silence on the first connection from 1.3 s to midnight, on the second until its end.
    pauses = (midnight - 500 - 1_300_000) + 2 * SECOND
    assert app.pop("idle_us") == pauses
    assert app.pop("longest_pause_us") == midnight - 500 - 1_300_000
    assert app == {
        "client_id": "app", "address": "10.0.0.9", "brokers": 1, "connections": 3, "opened": 3,
        "opened_per_minute": 1.8, "most_opened_per_minute": 2, "short_lived": 2, "silent": 0,
        "lifetime_us": 3 * SECOND, "open_us": 103_400_000, "closed_by_client": 2,
        "closed_by_broker": 1, "reset_by_client": 0, "reset_by_broker": 1, "not_closed": 0,
        "closed_unanswered": 1, "reauthentications": 0,
    }  # fmt: skip
    other = found.pop((None, "[2001:db8::1]"))
    assert (other["reauthentications"], other["not_closed"], other["opened"]) == (1, 1, 0)
    assert (other["longest_pause_us"], other["lifetime_us"]) == (10 * SECOND - 5_001_000, None)
    silent = found.pop((None, "10.0.0.8"))
    assert (silent["silent"], silent["idle_us"], silent["most_opened_per_minute"]) == (
        1, 9 * SECOND, 1,
    )  # fmt: skip
    assert found == {}


@pytest.mark.long
@pytest.mark.spark
def test_answers_have_their_columns(spark: SparkSession, tables: AnalysisTables) -> None:
    empty = Told().tables(spark)
    for answer in _MINE:
        for given in (tables, empty):
            assert _types(answer.ask(given)) == _types_of(answer.columns)
        names = {one.name for one in answer.columns}
        assert {one.name for one in answer.shown_columns()} <= names
        assert {one.removeprefix("-") for one in answer.order} <= names
    assert _types(slowest(tables)) == _types_of(SLOWEST_COLUMNS)


@pytest.mark.spark
@pytest.mark.cluster
def test_nothing_gives_no_row(spark: SparkSession) -> None:
    empty = Told().tables(spark)
    for answer in _MINE:
        assert answer.ordered(answer.ask(empty)).isEmpty()


def _types(found: DataFrame) -> list[tuple[str, str]]:
    return [(one.name, one.dataType.simpleString()) for one in found.schema]


def _types_of(columns: Any) -> list[tuple[str, str]]:
    return [(one.name, one.dataType.simpleString()) for one in spark_schema(schema_of(columns))]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ":1: expected the header client_id,team, got an empty file"),
        ("client,team\n", r":1: expected the header client_id,team, got 'client,team'"),
        ("client_id,team\na,b\na,b,c\n", ":3: expected a client id and its team, got 'a,b,c'"),
        ("client_id,team\na, \n", ":2: expected a client id and its team, got 'a, '"),
        ("client_id,team\na,b\n\na,c\n", ":4: expected one team for 'a', got 'b' and 'c'"),
        (
            'client_id,team\n"a,b\n',
            ": cannot be read as a CSV label file: unexpected end of data",
        ),
    ],
)
def test_labels_that_do_not_read_say_where(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(text)
    with pytest.raises(ArgumentError, match=reason):
        read_labels(file)
    with pytest.raises(ArgumentError, match="No such file"):
        read_labels(tmp_path / "missing.csv")


def test_labels_are_read_as_a_spreadsheet_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_bytes(b'\xef\xbb\xbfclient_id,team\r\napp-*,"Billing, Inc"\r\n\r\n other , Ops \r\n')
    assert read_labels(file) == {"app-*": "Billing, Inc", "other": "Ops"}


def test_every_error_code_of_a_response_has_a_place() -> None:
    for name in catalog().names():
        entry = catalog().entry(name)
        codes = {
            one.attribute
            for spec in entry.all_specs()
            for one in spec.walk()
            if name.endswith("Response") and one.name.endswith("ErrorCode")
        }
        assert {place.path[-1] for place in error_places(name)} == codes
    (metadata,) = (one for one in error_places("MetadataResponse") if len(one.path) == 3)
    assert metadata.topic == ("topics", "name")
    assert metadata.topic_id == ("topics", "topic_id")


def test_error_codes_are_those_of_kafka() -> None:
    assert ERROR_NAMES[-1] == "UNKNOWN_SERVER_ERROR"
    assert (ERROR_NAMES[0], ERROR_NAMES[35]) == ("NONE", "UNSUPPORTED_VERSION")
    assert ERROR_NAMES[136] == "CONTROLLER_ID_NOT_REGISTERED"
    assert len(ERROR_NAMES) == len(set(ERROR_NAMES.values())) == 138
    assert {ERROR_NAMES[code] for code in RETRIABLE} >= {
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_COORDINATOR",
    }
    assert 0 not in RETRIABLE
