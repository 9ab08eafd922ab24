"""One analysis of a capture with every kind of traffic. Each test checks one law about tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.pandas.types import from_arrow_schema

from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS, schema_of
from flexwire.report import Facts
from flexwire.spark.analyze import Analysis, analyze
from flexwire.tables.keys import FRAME_KEY
from flexwire.tables.spec_places import RECORDS_FIELDS
from tests.spark.traffic import (
    BROKER,
    CONNECTION,
    TOPIC_ID,
    Traffic,
    framed,
    made,
    record_batch,
    request,
    response,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

PASSWORD = b"\0alice\0correct horse"
SASL_CLIENT, CUT_OFF_CLIENT = ("10.0.0.7", 7000), ("10.0.0.7", 7001)
SILENT_CLIENT, LOST_CLIENT, OLD_CLIENT = ("10.0.0.8", 8000), ("10.0.0.8", 8001), ("10.0.0.6", 6000)
GARBAGE = b"\x00\xff\xff\xff garbage"
UNKNOWN_TAG, UNKNOWN_DATA = 4711, b"from the future"


def _nested(name: str, struct: str, /, **values: Any) -> Any:
    return getattr(type(made(name)), struct)(**values)


def _metadata_response() -> Any:
    topic = _nested(
        "MetadataResponse",
        "MetadataResponseTopic",
        name="orders",
        topic_id=TOPIC_ID,
        unknown_tagged_fields={UNKNOWN_TAG: UNKNOWN_DATA},
    )
    return made("MetadataResponse", topics=[topic])


def _produce(records: bytes, *, acks: int = 1) -> Any:
    partition = _nested("ProduceRequest", "PartitionProduceData", index=3, records=records)
    topic = _nested("ProduceRequest", "TopicProduceData", name="orders", partition_data=[partition])
    return made("ProduceRequest", acks=acks, timeout_ms=100, topic_data=[topic])


def _fetch_response(records: bytes) -> Any:
    partition = _nested("FetchResponse", "PartitionData", partition_index=3, records=records)
    topic = _nested(
        "FetchResponse", "FetchableTopicResponse", topic_id=TOPIC_ID, partitions=[partition]
    )
    return made("FetchResponse", responses=[topic])


BATCH = record_batch(
    (b"k", b"value", [(b"trace", b"a1"), (b"trace", None), (b"\xff", b"")]),
    (None, None, []),
)


def _write_well_behaved(traffic: Traffic) -> None:
    """Write requests that are all answered: the requests in one file, the responses in the next."""
    one = traffic.connect()
    asked = made("ApiVersionsRequest", client_software_name="py", client_software_version="1.2")
    traffic.exchange(one, asked, made("ApiVersionsResponse"), 3, 1)
    tagged = request(made("MetadataRequest"), 12, 2, tags={42: b"header tag"})
    traffic.send(one, "request", tagged)
    traffic.send(one, "response", response(_metadata_response(), 12, 2, tags={43: b"answer"}))
    traffic.send(one, "request", request(_produce(BATCH, acks=0), 9, 3))
    traffic.exchange(one, _produce(BATCH), made("ProduceResponse"), 9, 3)
    # The correlation id is used twice more. The second pair spans both files.
    traffic.exchange(one, made("HeartbeatRequest"), made("HeartbeatResponse", error_code=1), 4, 7)
    traffic.send(one, "request", request(made("HeartbeatRequest"), 4, 7))
    traffic.send(one, "request", request(made("FetchRequest"), 13, 8))
    traffic.rotate()
    traffic.send(one, "response", response(made("HeartbeatResponse", error_code=2), 4, 7))
    traffic.send(one, "response", response(_fetch_response(BATCH + BATCH[:40]), 13, 8))
    # A third request with this correlation id, which the first two responses do not answer.
    traffic.send(one, "request", request(made("HeartbeatRequest"), 4, 7))
    one.close(timestamp_us=traffic.now_us)


def _write_ports_again(traffic: Traffic) -> None:
    """Write a new connection that reuses the first one's ports and correlation ids."""
    again = traffic.connect()
    fallback = made("ApiVersionsResponse", error_code=35)
    traffic.send(again, "request", request(made("ApiVersionsRequest"), 3, 1))
    traffic.send(again, "response", response(fallback, 0, 1))
    traffic.exchange(again, made("FetchRequest"), made("FetchResponse"), 3, 2)
    again.close(timestamp_us=traffic.now_us)


def _write_secrets(traffic: Traffic) -> None:
    now = traffic.connect(SASL_CLIENT)
    handshake = made("SaslHandshakeRequest", mechanism="PLAIN")
    asked, answer = made("SaslAuthenticateRequest", auth_bytes=PASSWORD), "SaslAuthenticateResponse"
    traffic.exchange(now, handshake, made("SaslHandshakeResponse"), 1, 1)
    traffic.exchange(now, asked, made(answer, auth_bytes=PASSWORD), 2, 2)
    traffic.send(now, "request", request(asked, 2, 3)[:-4])
    cut_off = traffic.connect(CUT_OFF_CLIENT)
    traffic.send_raw(cut_off, "request", framed(request(asked, 2, 3))[:-1])
    old = traffic.connect(OLD_CLIENT)
    traffic.exchange(old, handshake, made("SaslHandshakeResponse"), 0, 1)
    traffic.send(old, "request", PASSWORD)
    traffic.send(old, "response", b"")
    traffic.exchange(old, made("MetadataRequest"), made("MetadataResponse"), 0, 2)


def _write_broken(traffic: Traffic) -> None:
    one = traffic.connect(SILENT_CLIENT)
    traffic.send(one, "response", response(made("HeartbeatResponse"), 4, 99))
    # This body decodes, so nothing after it belongs to authentication.
    traffic.exchange(one, made("HeartbeatRequest"), made("HeartbeatResponse"), 4, 4)
    good = request(made("MetadataRequest"), 12, 5)
    traffic.send(one, "request", good[:-3] + GARBAGE[1:])
    traffic.send(one, "request", request(made("HeartbeatRequest"), 4, 6))
    traffic.exchange(one, _produce(GARBAGE * 4), made("ProduceResponse"), 9, 7)
    traffic.send_raw(one, "request", b"\0\0\1\0" + good[:17])
    # These bytes contain neither a length nor an api key, so their meaning is unknown.
    two = traffic.connect(LOST_CLIENT)
    traffic.send(two, "request", request(made("HeartbeatRequest"), 4, 8))
    traffic.send_raw(two, "request", b"\0\0\1\0" + GARBAGE)


@dataclass(frozen=True)
class Analyzed:
    """An analysis and its input."""

    analysis: Analysis
    traffic: Traffic
    frames: list[Row]
    records: list[Row]
    session: SparkSession

    @property
    def facts(self) -> Facts:
        return self.analysis.facts

    def message(self, name: str) -> DataFrame:
        return self.session.read.parquet(str(self.analysis.tables.message(name)))

    def frames_of(self, **wanted: object) -> list[Row]:
        return [
            frame
            for frame in self.frames
            if all(frame[name] == value for name, value in wanted.items())
        ]


@pytest.fixture(scope="module")
def analyzed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analyzed:
    root = tmp_path_factory.mktemp("analyzed")
    traffic = Traffic(root / "capture")
    _write_well_behaved(traffic)
    _write_ports_again(traffic)
    _write_secrets(traffic)
    _write_broken(traffic)
    traffic.close()
    (root / "capture" / "notes.pcap").write_text("not a capture")
    heard: list[tuple[str, int, int]] = []
    analysis = analyze(
        [root / "capture"],
        root / "out",
        spark=spark,
        progress=lambda *one: heard.append(one),
        skip_unreadable=True,
    )
    assert all(done <= total for stage, done, total in heard if total), heard
    tables = analysis.tables
    frames = spark.read.parquet(str(tables.frames)).collect()
    records = spark.read.parquet(str(tables.records)).collect()
    return Analyzed(analysis, traffic, frames, records, spark)


@pytest.fixture(scope="module")
def shown(analyzed: Analyzed, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """Analyze the same captures with credentials, in the way used for large captures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flexwire.spark.analyze.SMALL_CAPTURE_BYTES", 0)
        return analyze(
            sorted(analyzed.traffic.directory.iterdir(), reverse=True),
            tmp_path_factory.mktemp("shown"),
            spark=analyzed.session,
            show_credentials=True,
            skip_unreadable=True,
        )


def test_every_frame_is_in_the_table_once_and_no_byte_is_lost(analyzed: Analyzed) -> None:
    places = {(one.connection, one.direction, one.frame_index) for one in analyzed.frames}
    assert len(places) == len(analyzed.frames) == analyzed.traffic.sent
    assert sum(one.size for one in analyzed.frames) == analyzed.traffic.bytes


def test_every_message_and_record_is_joined_with_its_frame(analyzed: Analyzed) -> None:
    tables = analyzed.analysis.tables
    frames = analyzed.session.read.parquet(str(tables.frames))
    known = frames.select(*FRAME_KEY, F.struct("message", "time", "client_id").alias("frame"))
    records = analyzed.session.read.parquet(str(tables.records))
    messages = [part for one in RECORDS_FIELDS for part in (F.lit(one.source), F.lit(one.message))]
    message = F.create_map(*messages)[F.col("source")]
    joined = records.withColumn("message", message).join(known, [*FRAME_KEY]).collect()
    assert len(joined) == len(analyzed.records) > 0
    for name in ("FetchResponse", "ProduceRequest"):
        rows = analyzed.message(name).join(known, [*FRAME_KEY]).collect()
        assert len(rows) == analyzed.message(name).count() > 0
        joined += rows
    for one in joined:
        assert (one.message, one.time, one.client_id) == tuple(one.frame)


def test_the_figures_of_the_facts_add_up(analyzed: Analyzed) -> None:
    facts, totals = analyzed.facts, analyzed.facts.totals
    outcomes = {one.outcome: 0 for one in analyzed.frames}
    for one in analyzed.frames:
        outcomes[one.outcome] += 1
    assert totals.frames == totals.requests + totals.responses == len(analyzed.frames)
    assert totals.bytes == sum(bucket.request_bytes for bucket in facts.timeline.buckets) + sum(
        bucket.response_bytes for bucket in facts.timeline.buckets
    )
    assert totals.frames == sum(bucket.frames for bucket in facts.timeline.buckets)
    assert totals.frames == sum(source.frames for source in facts.sources)
    assert totals.unpaired_responses == outcomes["unpaired"] == 1
    assert totals.decode_failures == sum(count.count for count in facts.failure_counts)
    assert len(facts.failures) == totals.decode_failures == outcomes["failed"] + 1
    named = [one for one in analyzed.frames if one.api_key is not None]
    assert len(named) == sum(api.requests + api.responses for api in facts.apis)
    assert totals.clients == len(facts.clients)
    latencies = [one.latency_us for one in analyzed.frames if one.latency_us is not None]
    assert len(latencies) == sum(api.latency.count for api in facts.apis if api.latency)
    for api in facts.apis:
        if api.latency is not None:
            assert api.latency.count == sum(bucket.count for bucket in api.latency.histogram)


def test_times_are_microseconds_in_utc_for_every_reader(analyzed: Analyzed) -> None:
    tables = analyzed.analysis.tables
    for table, column in ((tables.frames, "time"), (tables.records, "timestamp")):
        assert pq.read_schema(next(table.glob("*.parquet"))).field(column).type == pa.timestamp(
            "us", tz="UTC"
        )


def test_a_pair_may_lie_over_two_files(analyzed: Analyzed) -> None:
    (asked,) = analyzed.frames_of(message="FetchRequest", api_version=13)
    (answer,) = analyzed.frames_of(message="FetchResponse", api_version=13)
    assert asked.source != answer.source
    assert asked.connection == answer.connection == CONNECTION
    assert asked.answered is True
    # The frames are a millisecond apart, and the Heartbeat's response is between these two.
    assert answer.latency_us == 2000
    assert answer.client_id == "tests"


def test_a_correlation_id_used_again_pairs_in_order(analyzed: Analyzed) -> None:
    rows = analyzed.message("HeartbeatResponse").where("correlation_id = 7").orderBy("frame_index")
    assert [row.body.error_code for row in rows.collect()] == [1, 2]
    asked = analyzed.frames_of(message="HeartbeatRequest", correlation_id=7)
    asked.sort(key=lambda row: row.frame_index)
    assert [one.answered for one in asked] == [True, True, False]
    answers = analyzed.frames_of(message="HeartbeatResponse", correlation_id=7)
    assert sorted(one.latency_us for one in answers) == [1000, 2000]


def test_a_produce_with_acks_0_is_not_waited_for(analyzed: Analyzed) -> None:
    first, second = sorted(
        analyzed.frames_of(message="ProduceRequest", correlation_id=3),
        key=lambda row: row.frame_index,
    )
    assert (first.answered, second.answered) == (None, True)
    (answer,) = analyzed.frames_of(message="ProduceResponse", correlation_id=3)
    assert answer.latency_us == 1000


def test_a_request_without_response_is_counted(analyzed: Analyzed) -> None:
    unanswered = [one for one in analyzed.frames if one.answered is False]
    assert analyzed.facts.totals.unanswered_requests == len(unanswered)
    assert ("HeartbeatRequest", 6) in {(one.message, one.correlation_id) for one in unanswered}


def test_a_response_without_request_is_a_row_with_the_reason(analyzed: Analyzed) -> None:
    (row,) = analyzed.frames_of(outcome="unpaired")
    assert row.error == (
        "the capture contains no request with correlation id 99 on this connection"
    )
    # It is unknown which request this response answers, so the response may contain credentials.
    assert (row.bytes, row.withheld_credentials) == (None, 1)
    assert row.message is None


def test_a_body_that_does_not_decode_is_a_row_with_its_bytes_and_the_reason(
    analyzed: Analyzed,
) -> None:
    (row,) = analyzed.message("MetadataRequest").where("error is not null").collect()
    assert row.error.startswith("MetadataRequest v12 at ")
    assert bytes(row.bytes).endswith(GARBAGE[1:])
    assert row.body is None
    (frame,) = analyzed.frames_of(
        connection=row.connection, direction="request", frame_index=row.frame_index
    )
    assert (frame.error, frame.bytes) == (row.error, row.bytes)
    # The other parts of the message still decode.
    assert analyzed.message("MetadataRequest").where("body is not null").count() == 2


def test_bytes_that_are_no_whole_frame_are_a_row_too(analyzed: Analyzed) -> None:
    cut_off, lost = sorted(
        analyzed.frames_of(outcome="failed", broker="10.0.0.1:9092"), key=lambda row: row.time
    )[-2:]
    assert "ended after 21 of a frame's 260 bytes" in cut_off.error
    assert bytes(cut_off.bytes) == request(made("MetadataRequest"), 12, 5)[:17]
    # The header is whole, so the sender and the API are known.
    assert (cut_off.message, cut_off.client_id) == ("MetadataRequest", "tests")
    assert cut_off.answered is None
    assert (lost.message, lost.client_id, lost.size) == (None, None, 4 + len(GARBAGE))
    assert (lost.bytes, lost.withheld_credentials) == (None, 1)


def test_ports_used_again_are_another_connection(analyzed: Analyzed) -> None:
    again = analyzed.frames_of(connection=f"{CONNECTION}#2")
    assert len(again) == 4
    assert {one.client for one in again} == {"10.0.0.9:50000"}
    assert {one.broker for one in again} == {"10.0.0.1:9092"} == {f"{BROKER[0]}:{BROKER[1]}"}
    assert {one.outcome for one in again} == {"decoded"}


def test_apiversions_answered_in_version_0_decodes(analyzed: Analyzed) -> None:
    (row,) = analyzed.frames_of(message="ApiVersionsResponse", connection=f"{CONNECTION}#2")
    assert (row.api_version, row.body_version, row.outcome) == (3, 0, "decoded")


def test_the_software_holds_for_the_whole_connection_and_no_other(analyzed: Analyzed) -> None:
    for one in analyzed.frames:
        software = ("py", "1.2") if one.connection == CONNECTION else (None, None)
        assert (one.client_software_name, one.client_software_version) == software


def test_unknown_tagged_fields_are_in_the_tables_and_the_facts(analyzed: Analyzed) -> None:
    (row,) = analyzed.message("MetadataResponse").where("header_version = 1").collect()
    (topic,) = row.body.topics
    (field,) = topic.unknown_tagged_fields
    assert (field.tag, bytes(field.data)) == (UNKNOWN_TAG, UNKNOWN_DATA)
    (asked,) = analyzed.frames_of(message="MetadataRequest", connection=CONNECTION)
    assert [(one.tag, bytes(one.data)) for one in asked.header_unknown_tagged_fields] == [
        (42, b"header tag")
    ]
    seen = {(one.message, one.path, one.tag): one for one in analyzed.facts.tagged_fields}
    unknown = seen["MetadataResponse", "topics[]", UNKNOWN_TAG]
    assert (unknown.name, unknown.versions, unknown.times, unknown.bytes) == (None, (12,), 1, 15)
    assert seen["RequestHeader", "", 42].bytes == len(b"header tag")
    assert seen["ResponseHeader", "", 43].bytes == len(b"answer")


def test_fields_of_other_versions_are_null(analyzed: Analyzed) -> None:
    old, new = analyzed.message("FetchRequest").orderBy("api_version").collect()
    assert (old.api_version, new.api_version) == (3, 13)
    assert old.body.isolation_level is None
    assert new.body.isolation_level == 0


def test_records_have_their_headers_and_the_facts_of_their_batch(analyzed: Analyzed) -> None:
    fetched = [one for one in analyzed.records if one.source == "fetch" and one.offset is not None]
    first, second = sorted(fetched, key=lambda row: row.offset)
    assert (first.topic, first.partition, first.offset) == ("orders", 3, 100)
    assert (bytes(first.key), bytes(first.value)) == (b"k", b"value")
    assert [tuple(map(_plain, header)) for header in first.headers] == [
        (b"trace", b"a1"),
        (b"trace", None),
        (b"\xff", b""),
    ]
    assert (second.key, second.value, second.headers) == (None, None, [])
    assert first.timestamp.isoformat() == "2023-11-14T22:13:20"
    assert (first.magic, first.compression, first.batch_size) == (2, "none", len(BATCH))
    assert (first.producer_id, first.is_control, first.batch_records) == (-1, False, 2)


def test_the_table_of_records_has_the_types_of_columns(analyzed: Analyzed) -> None:
    table = analyzed.session.read.parquet(str(analyzed.analysis.tables.records)).schema
    shared = [name for name in table.names if name in RECORD_COLUMNS | BATCH_COLUMNS]
    # The schema without nullability, which Spark's files do not preserve.
    found = [table[name].dataType.simpleString() for name in shared]
    assert found == [one.dataType.simpleString() for one in from_arrow_schema(schema_of(shared))]
    assert len(shared) > len(RECORD_COLUMNS)


def _plain(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def test_every_record_that_was_sent_is_in_the_table(analyzed: Analyzed) -> None:
    offsets = [(one.source, one.offset) for one in analyzed.records if one.offset is not None]
    assert sorted(offsets) == [
        ("fetch", 100), ("fetch", 101),
        ("produce", 100), ("produce", 100), ("produce", 101), ("produce", 101),
    ]  # fmt: skip
    produced, fetched = sorted(analyzed.facts.topics, key=lambda topic: topic.side, reverse=True)
    assert (produced.topic, produced.records, produced.batches) == ("orders", 4, 2)
    assert (fetched.records, fetched.batches, fetched.null_values) == (2, 1, 1)
    assert (fetched.key_bytes, fetched.value_bytes) == (1, 5)
    assert (fetched.first_offset, fetched.last_offset) == (100, 101)


def test_bytes_that_are_no_records_are_rows_with_the_reason(analyzed: Analyzed) -> None:
    broken, partial = sorted(
        (one for one in analyzed.records if one.error is not None), key=lambda row: row.source,
        reverse=True,
    )  # fmt: skip
    assert bytes(broken.bytes) == GARBAGE * 4
    assert broken.error.startswith("record batch at byte 0: ")
    assert partial.error == f"partial batch: 40 of {len(BATCH)} bytes"
    assert bytes(partial.bytes) == BATCH[:40]
    # A full Fetch that ends within a batch is not a failure.
    assert [one.message for one in analyzed.facts.failures].count("ProduceRequest") == 1
    assert "FetchResponse" not in [one.message for one in analyzed.facts.failures]


def test_record_headers_are_measured(analyzed: Analyzed) -> None:
    headers = {one.key: one for one in analyzed.facts.record_headers}
    assert sorted(headers) == ["trace", "�"]
    trace = headers["trace"]
    assert (trace.records, trace.null_values, trace.empty_values) == (3, 3, 0)
    assert (trace.topics, trace.min_length, trace.max_length) == (("orders",), 2, 2)
    assert (trace.distinct_values, trace.utf8_share) == (1, 1.0)


def test_no_credential_is_in_any_table_or_the_report(analyzed: Analyzed) -> None:
    out = analyzed.analysis.report.parent
    rows = [one.asDict(recursive=True) for one in analyzed.frames]
    for name in analyzed.analysis.tables.message_names():
        rows += [one.asDict(recursive=True) for one in analyzed.message(name).collect()]
    secret = PASSWORD[1:]
    assert not [row for row in rows if any(secret in data for data in _all_bytes(row))]
    for path in (analyzed.analysis.report, analyzed.analysis.facts_file):
        text = path.read_bytes()
        assert b"correct horse" not in text
        assert secret.hex().encode() not in text
    assert sorted(one.name for one in out.iterdir()) == [
        "audit.csv", "audit.json", "facts.json", "report.html", "tables",
    ]  # fmt: skip


def test_what_is_withheld_is_counted(analyzed: Analyzed) -> None:
    tokens = analyzed.frames_of(outcome="token")
    assert [one.bytes for one in tokens] == [None, None]
    assert {one.connection for one in tokens} == {"10.0.0.6:6000>10.0.0.1:9092"}
    asked = analyzed.message("SaslAuthenticateRequest").where("error is null").collect()
    assert [bytes(row.body.auth_bytes) for row in asked] == [b"withheld"]
    broken = analyzed.message("SaslAuthenticateRequest").where("error is not null").collect()
    assert [row.bytes for row in broken] == [None]
    failures = analyzed.facts.failures
    assert [one.sample_hex for one in failures].count("withheld") == 3
    # On the connection with tokens, the broker's token is empty. Two frames are not authentication.
    assert analyzed.facts.withheld_credentials == 7
    # After the tokens, requests are ordinary requests again.
    (metadata,) = analyzed.frames_of(message="MetadataResponse", api_version=0)
    assert metadata.outcome == "decoded"


def test_credentials_are_shown_to_who_asks(analyzed: Analyzed, shown: Analysis) -> None:
    def read(path: Path) -> list[Row]:
        return analyzed.session.read.parquet(str(path)).collect()

    asked = read(shown.tables.message("SaslAuthenticateRequest"))
    assert PASSWORD in [bytes(row.body.auth_bytes) for row in asked if row.body]
    tokens = [one for one in read(shown.tables.frames) if one.outcome == "token"]
    assert sorted(bytes(one.bytes) for one in tokens) == [b"", PASSWORD]
    assert shown.facts.withheld_credentials == 0


def test_facts_do_not_depend_on_how_spark_runs(analyzed: Analyzed, shown: Analysis) -> None:
    one, other = _comparable(analyzed.facts), _comparable(shown.facts)
    assert one.keys() == other.keys()
    for name in one:
        assert one[name] == other[name], name


def _comparable(facts: Facts) -> dict[str, Any]:
    told = facts.to_json()
    # The time of the analysis, and the fields that differ if credentials are shown.
    for name in ("made_at_us", "withheld_credentials", "failures"):
        del told[name]
    return {name: _sorted(value) for name, value in told.items()}


def _sorted(value: Any) -> Any:
    return sorted(value, key=repr) if isinstance(value, list | tuple) else value


def test_versions_that_a_release_refuses_are_told(analyzed: Analyzed) -> None:
    # The client asks for the broker's versions, and the broker's list is empty.
    uses = {(one.api_name, one.version): one for one in analyzed.facts.version_uses}
    fetch = uses["Fetch", 3]
    assert (fetch.verdict, fetch.client.client_id) == ("cannot say", "tests")
    assert fetch.last_accepted_in is not None
    assert fetch.removed_in is not None
    assert uses["Fetch", 13].verdict == "read"


def test_a_file_that_is_no_capture_is_told_and_stops_nothing(analyzed: Analyzed) -> None:
    path = str(analyzed.analysis.tables.packets)
    rows = analyzed.session.read.parquet(path).collect()
    wrong = [row for row in rows if row.reason is not None]
    assert [row.source.rsplit("/", 1)[1] for row in wrong] == ["notes.pcap"]
    packets = {row.source.rsplit("/", 1)[1]: row.packets for row in rows if row.reason is None}
    assert packets.keys() == {"tap-00001.pcapng", "tap-00002.pcapng", "notes.pcap"}
    assert packets["notes.pcap"] == 0


def test_the_report_and_its_facts_are_written(analyzed: Analyzed) -> None:
    written = json.loads(analyzed.analysis.facts_file.read_text())
    assert Facts.from_json(written) == analyzed.facts
    assert "<html" in analyzed.analysis.report.read_text()


def _all_bytes(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes | bytearray):
        yield bytes(value)
    elif isinstance(value, str):
        yield value.encode()
    elif isinstance(value, dict):
        for one in value.values():
            yield from _all_bytes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _all_bytes(one)
