"""``spark.read.format("kafka-capture")``: its options, its tasks, and its results."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import types as T  # noqa: N812 - as PySpark's own examples call it

import flexwire
from flexwire.capture.pairing.pairing import Hindsight
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.errors import (
    ArgumentError,
    CaptureError,
    FlexwireError,
    SpecError,
    UnknownMessageError,
)
from flexwire.schema.catalog import Catalog, using_packed_catalog
from flexwire.spark import register
from flexwire.spark.settings import BATCH_ROWS
from flexwire.spark.sources import kafka_capture, kafka_capture_plan
from flexwire.spark.sources.kafka_capture import (
    CaptureReader,
    CaptureRows,
    CaptureStreamReader,
    KafkaCapture,
)
from flexwire.spark.sources.kafka_capture_plan import RangeTask, SurveyStore, WholeTask, plan
from flexwire.spark.sources.requests import KINDS, CaptureOptions
from flexwire.storage.file_search import list_captures
from flexwire.storage.local import decompress
from flexwire.survey.ranges import decode_range
from flexwire.survey.survey import (
    AnalysisRequest,
    RangeContext,
    Survey,
    Surveyor,
    range_context_name,
    range_start_name,
)
from flexwire.tables.frames import Introductions, connection_rows, packet_rows
from flexwire.tables.message_schema import table_schema
from flexwire.tasks import spark_schema
from tests.activity.made import CAPTURES, capture_files, listed
from tests.capture.interleaved import SHAPES, write_capture
from tests.schema.own import own_catalog
from tests.searching import in_make_long
from tests.spark.traffic import Traffic, made, nested

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

Rows = dict[str, list[dict[str, Any]]]


def options(path: Path | str, **given: str) -> CaptureOptions:
    return CaptureOptions.parse({"path": str(path), **given})


def rows_of(path: Path | str, **given: str) -> list[dict[str, Any]]:
    """Return the results of tasks that run as in Spark, but without Spark."""
    return rows_asked(options(path, **given))


def rows_asked(asked: CaptureOptions) -> list[dict[str, Any]]:
    reader = CaptureReader(asked, spark_schema(asked.schema()))
    found = []
    for task in reader.partitions():
        sent = pickle.loads(pickle.dumps(task))  # noqa: S301 - as Spark sends it
        for batch in reader.read(sent):
            assert batch.schema == asked.schema()
            assert len(batch) <= BATCH_ROWS
            found += batch.to_pylist()
    return in_order(found)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def analyzed(path: Path, **how: Any) -> Rows:
    """Return the tables of an analysis."""
    asked, kept = AnalysisRequest(tuple(list_captures([path])), **how), dict[str, bytes]()
    survey = Surveyor(asked, kept.__setitem__).run()
    found: Rows = defaultdict(list)
    for table, rows in decode_range(asked, 0, kept.__getitem__):
        found[table] += rows.to_pylist()
    found["connections"] = connection_rows(survey.connections).to_pylist()
    found["packets"] = packet_rows(survey.notes).to_pylist()
    return {table: in_order(rows) for table, rows in found.items()}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("capture")
    write_capture(directory, 1, replace(SHAPES["EVERYTHING"], connections=8))
    return directory


@pytest.mark.long
@pytest.mark.slow
def test_rows_are_those_of_an_analysis(capture: Path) -> None:
    tables = analyzed(capture)
    assert rows_of(capture) == tables["frames"]
    for kind in ("frames", "records"):
        assert len(plan(options(capture, rows=kind, maxPartitionBytes="10k"))) > 1
        assert rows_of(capture, rows=kind, maxPartitionBytes="10k") == tables[kind], kind
    for kind in ("connections", "packets"):
        assert rows_of(capture, rows=kind) == tables[kind], kind
    for name in ("ProduceRequest", "MetadataResponse"):
        rows = rows_of(capture, rows="messages", message=name)
        assert rows == tables[f"messages/{name}"]
    with_bytes = analyzed(capture, record_bytes=True)["messages/ProduceRequest"]
    named = {"rows": "messages", "message": "ProduceRequest", "includeRecordBytes": "true"}
    assert rows_of(capture, **named) == with_bytes


@pytest.mark.long
@pytest.mark.slow
def test_messages_of_all_kinds_have_a_variant_and_the_same_facts(capture: Path) -> None:
    tables = analyzed(capture)
    expected = [
        row for name, rows in tables.items() if name.startswith("messages/") for row in rows
    ]
    rows = rows_of(capture, rows="messages")
    assert len({row["message"] for row in rows}) > 10
    for row in (*rows, *expected):
        assert (row.pop("body") is None) == (row["body_version"] is None)
    assert in_order(rows) == in_order(expected)
    two = rows_of(capture, rows="messages", message="ProduceRequest, FetchRequest")
    assert {row["message"] for row in two} == {"ProduceRequest", "FetchRequest"}


@pytest.mark.long
@pytest.mark.slow
def test_options_narrow_what_is_read(capture: Path) -> None:
    frames, records = analyzed(capture)["frames"], analyzed(capture)["records"]
    times = sorted(row["time"].timestamp() for row in frames)
    low, high = (int(times[len(times) * part // 3] * 1000) for part in (1, 2))
    client = next(row["client_id"] for row in frames if row["client_id"])
    given = {"startingTimestamp": str(low), "endingTimestamp": str(high), "clientId": f"x,{client}"}

    def is_wanted(row: dict[str, Any]) -> bool:
        at = row["time"].timestamp() * 1000
        return bool(low <= at < high and row["client_id"] == client)

    assert rows_of(capture, **given) == [row for row in frames if is_wanted(row)] != []
    assert rows_of(capture, rows="records", **given) == list(filter(is_wanted, records))
    some = [row for row in records if row["topic"] == "orders"]
    assert rows_of(capture, rows="records", topic="orders") == some != []
    some = [row for row in frames if row["message"] == "FetchRequest"]
    assert rows_of(capture, message="FetchRequest") == some != []


def test_times_begin_with_their_millisecond_and_end_before_it(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    connection, heartbeat = traffic.connect(), (made("HeartbeatRequest"), made("HeartbeatResponse"))
    for number in range(2):
        traffic.exchange(connection, *heartbeat, 4, number)
    traffic.close()
    last = traffic.now_us // 1000
    rows = rows_of(tmp_path, startingTimestamp=str(last - 2), endingTimestamp=str(last))
    assert [int(row["time"].timestamp() * 1000) for row in rows] == [last - 2, last - 1]


def test_every_option_says_what_it_says() -> None:
    asked = options(
        "/a", rows="MESSAGES", message="FetchRequest", clientId="a, b", ports="9092,9094-9095",
        brokers="[::1]:9092", capturedRelease="3.9.2", includeRecordBytes="true",
        showCredentials="TRUE", skipUnreadable="true", maxPartitionBytes="1m",
        maxBytesPerTrigger="2m", maxFilesPerTrigger="3", failOnDataLoss="false",
        acceptSampled="true",
    )  # fmt: skip
    how = asked.request
    assert how.brokers == BrokerEnds.parse([9092, 9094, 9095], ["[::1]:9092"])
    assert how.takes_sampled
    assert not options("/a").request.takes_sampled
    assert (how.release, how.show_credentials, how.skip_unreadable) == ("3.9.2", True, True)
    assert (how.record_bytes, how.range_bytes) == (True, 1 << 20)
    assert asked.row_filter.client_ids == {"a", "b"}
    assert (asked.bytes_per_trigger, asked.files_per_trigger) == (2 << 20, 3)
    assert (asked.kind, asked.message, asked.fails_on_loss) == ("messages", "FetchRequest", False)
    assert asked.schema() == table_schema("FetchRequest", "3.9.2", record_bytes=True)
    assert options("/a").schema().names[:2] == ["time", "connection"]
    names = {kind: options("/a", rows=kind).schema().names for kind in KINDS}
    assert names["messages"][-1] == "body"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"rows": "packages"}, r"rows: expected frames or messages or records or connections or"),
        ({"message": "FetchRequests"}, "no message 'FetchRequests'"),
        ({"topic": "a"}, "topic filters only records, not frames"),
        ({"rows": "packets", "clientId": "a"}, "clientId filters only frames, messages, records"),
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger: expected 1 or more, got 0"),
        ({"capturedRelease": "0.1"}, "0.1"),
        ({"brokers": "kafka:9092"}, "expected the address and port of a broker"),
        ({"ports": "70000"}, "a port must be from 1 to 65535, got 70000"),
        ({"opt": "1"}, "there is no option opt; choose one of: acceptSampled, brokers"),
    ],
)
def test_what_an_option_does_not_take_is_refused(given: dict[str, str], reason: str) -> None:
    with pytest.raises(FlexwireError, match=reason):
        options("/a", **given)


def test_a_schema_chooses_columns_in_its_order(capture: Path) -> None:
    source = KafkaCapture({"path": str(capture)})
    fields = [T.StructField("size", T.LongType()), T.StructField("message", T.StringType())]
    reader = source.reader(T.StructType(fields))
    (task,) = reader.partitions()
    found = pa.Table.from_batches(reader.read(task))
    assert found.schema.names == ["size", "message"]
    for wrong in (T.StructField("size", T.IntegerType()), T.StructField("sizes", T.LongType())):
        with pytest.raises(ArgumentError, match="column"):
            source.reader(T.StructType([wrong]))
    for kind in ("connections", "packets"):
        asked = options(capture, rows=kind)
        with pytest.raises(ArgumentError, match="a stream has no end"):
            CaptureStreamReader(asked, spark_schema(asked.schema()))


def carried(tasks: Sequence[Any]) -> list[int]:
    """Return the bytes sent with each task: none for a task that reads the whole capture."""
    return [sum(map(len, one.states.values())) for one in tasks if isinstance(one, RangeTask)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bound"), [("EVERYTHING", "MOST_OF_TASK"), *in_make_long(("HOSTS", "MOST_OF_PLAN"))]
)
def test_what_goes_with_tasks_has_bounds_and_one_survey_finds_them(
    name: str, bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_capture(tmp_path, 1, replace(SHAPES[name], connections=4, compressed=0.0))
    expected, surveys = rows_of(tmp_path), 0
    run = Surveyor.run

    def counted(self: Surveyor) -> Survey:
        nonlocal surveys
        surveys += 1
        return run(self)

    asked = options(tmp_path)
    asked = replace(asked, request=replace(asked.request, range_bytes=2000, chunk_bytes=1000))
    first = before = plan(asked)
    assert len(before) > 4
    while sizes := carried(before):
        most = (sum(sizes) if bound == "MOST_OF_PLAN" else max(sizes)) - 1
        monkeypatch.setattr(kafka_capture_plan, bound, most)
        surveys = 0
        with monkeypatch.context() as patched:
            patched.setattr(Surveyor, "run", counted)
            tasks = plan(asked)
        assert surveys == 1
        assert len(tasks) < len(before) or isinstance(tasks[0], WholeTask)
        now = carried(tasks)
        assert (sum(now) if bound == "MOST_OF_PLAN" else max(now, default=0)) <= most
        if before is first:
            assert rows_asked(asked) == expected
        before = tasks
    assert isinstance(before[0], WholeTask)


@pytest.mark.parametrize("name", ["EVERYTHING", "HOSTS"])
def test_what_goes_with_tasks_is_the_same_each_time(name: str, tmp_path: Path) -> None:
    """The bytes of a task do not depend on addresses in the survey's memory."""
    write_capture(tmp_path, 1, replace(SHAPES[name], connections=4, compressed=0.0))
    asked = options(tmp_path)
    asked = replace(asked, request=replace(asked.request, range_bytes=5000, chunk_bytes=2500))
    assert plan(asked) == plan(asked)


def test_a_survey_that_begins_anew_keeps_nothing_of_before() -> None:
    kept, known = SurveyStore(), pickle.dumps(RangeContext((), None, Hindsight(), Introductions()))
    for part, starts in ((b"before", 3), (b"after", 2)):
        for number in range(starts):
            kept.keep(range_start_name(number + 1), part)
    for name in ("names", *map(range_context_name, range(3))):
        kept.keep(name, known)
    found = kept.ranges(3)
    assert [decompress(found[one][range_start_name(one)]) for one in (1, 2)] == [b"after"] * 2


@pytest.mark.cluster  # creating its classes and packing all its specs takes seconds
def test_messages_of_a_catalog_of_one_s_own_are_decoded_and_only_where_it_is_named(
    tmp_path: Path,
) -> None:
    own, captures = own_catalog(tmp_path), tmp_path / "captures"
    traffic = Traffic(captures)
    connection = traffic.connect()
    with using_packed_catalog(Catalog(own).packed):
        for number in range(3):
            ping = flexwire.message("PingRequest")(text=f"hello {number}")
            traffic.exchange(connection, ping, made("PingResponse"), 0, number)
    traffic.close()
    read = {"rows": "messages", "message": "PingRequest", "catalog": str(own)}
    expected = [f"hello {number}" for number in range(3)]
    for size in ("128m", "1"):
        rows = rows_of(captures, **read, maxPartitionBytes=size)
        assert [row["body"]["text"] for row in rows] == expected
    assert {row["outcome"] for row in rows_of(captures, catalog=str(own))} == {"decoded"}
    asked = options(captures, **read)
    stream = CaptureStreamReader(asked, spark_schema(asked.schema()))
    (task,) = stream.partitions({}, stream.latestOffset({}))
    (batch,) = stream.read(task)
    assert [row["text"] for row in batch["body"].to_pylist()] == expected
    # Spark reuses its workers.
    reader = CaptureReader(options(captures), spark_schema(options(captures).schema()))
    (part,) = reader.partitions()
    with using_packed_catalog(Catalog(own).packed):
        outcomes = [one for rows in reader.read(part) for one in rows["outcome"].to_pylist()]
    assert set(outcomes) == {"not Kafka"}
    with pytest.raises(UnknownMessageError, match="PingRequest"):
        options(captures, message="PingRequest")
    with pytest.raises(SpecError, match="nowhere"):
        options(captures, catalog=str(tmp_path / "nowhere"))


class Limit:
    """A replacement for the limits on a batch, which PySpark supports from 4.2 on."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most


class Every(Limit):
    """A replacement for `ReadAllAvailable`."""


def test_a_batch_has_its_limit_unless_spark_asks_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ReadMaxBytes", "ReadMaxFiles"):
        monkeypatch.setattr(kafka_capture, name, type(name, (Limit,), {}))
    monkeypatch.setattr(kafka_capture, "ReadAllAvailable", Every)
    for number in range(3):
        traffic = Traffic(tmp_path / str(number))
        traffic.exchange(
            traffic.connect(), made("HeartbeatRequest"), made("HeartbeatResponse"), 4, number
        )
        traffic.close()

    def stream(**given: str) -> Any:
        asked = options(tmp_path, **given)
        return CaptureStreamReader(asked, spark_schema(asked.schema()))

    def limit(**given: str) -> tuple[str, int | None]:
        found = stream(**given).getDefaultReadLimit()
        return type(found).__name__, found.most

    of_bytes, of_files = {"maxBytesPerTrigger": "9"}, {"maxFilesPerTrigger": "2"}
    assert limit() == ("Every", None)
    assert limit(**of_bytes) == limit(**of_bytes, **of_files) == ("ReadMaxBytes", 9)
    assert limit(**of_files) == ("ReadMaxFiles", 2)
    for asked, files in ((None, 3), (Every(), 3), (Limit(2), 2)):
        assert len(stream(**of_files).latestOffset({}, asked)) == files
    assert len(stream(**of_bytes, **of_files).latestOffset({}, Limit(9))) == 1


def test_what_is_no_capture_fails_a_query_or_is_counted(capture: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.pcap"
    good.write_bytes(next(capture.glob("*.pcap")).read_bytes())
    (tmp_path / "bad.pcap").write_bytes(b"hello, world")
    reason = "bad.pcap: neither pcap nor pcapng.*or set skipUnreadable to true to read"
    for size in ("128m", "1k"):
        with pytest.raises(CaptureError, match=reason):
            rows_of(tmp_path, maxPartitionBytes=size)
        got = rows_of(tmp_path, maxPartitionBytes=size, skipUnreadable="true")
        assert got == rows_of(good, maxPartitionBytes=size)
    packets = rows_of(tmp_path, rows="packets", skipUnreadable="true")
    [bad] = [row for row in packets if row["reason"] and "neither" in row["reason"]]
    assert (bad["source"], bad["packets"]) == (str(tmp_path / "bad.pcap"), 0)
    with pytest.raises(CaptureError, match="no such file or directory"):
        rows_of(tmp_path / "nothing")


def test_a_body_that_no_variant_holds_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.spark.functions.variant.MOST", 400)
    schema = table_schema("SaslHandshakeResponse")
    bodies = [{"error_code": 0, "mechanisms": ["x" * size]} for size in (10, 900)]
    given = pa.Table.from_pylist([{"body": one} for one in bodies], schema).to_batches()
    made_rows = CaptureRows(options("/a", rows="messages").schema()).batches(given)
    short, long = pa.Table.from_batches(made_rows).to_pylist()
    assert (short["error"], long["body"]) == (None, None)
    assert short["body"] is not None
    assert "bytes, but a Variant can hold at most 400" in long["error"]


@pytest.mark.long
@pytest.mark.spark
def test_spark_finds_the_format_and_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    topic = nested("MetadataResponse", "MetadataResponseTopic", name="orders")
    answer = made("MetadataResponse", topics=[topic])
    traffic.exchange(traffic.connect(), made("MetadataRequest"), answer, 12, 7)
    traffic.close()
    reader = spark.read.format("kafka-capture")
    rows = reader.load(str(tmp_path)).orderBy("time").collect()
    assert [(row.message, row.answered, row.latency_us) for row in rows] == [
        ("MetadataRequest", True, None),
        ("MetadataResponse", None, 1000),
    ]
    typed = reader.option("rows", "messages").option("message", "MetadataResponse")
    assert typed.load(str(tmp_path)).selectExpr("body.topics[0].name").first() == ("orders",)
    wrong = spark.read.format("kafka-capture").option("rows", "nothing")
    with pytest.raises(PySparkException, match="ArgumentError: rows: expected frames or messages"):
        wrong.load(str(tmp_path))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster  # half a minute; `tables/test_following.py` tests what a stream reads
def test_a_stream_goes_on_after_a_restart_with_what_a_tap_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    register(spark)
    captures, out = tmp_path / "captures", tmp_path / "out"
    captures.mkdir()
    batches: list[list[tuple[str, int, int | None]]] = []

    def run(**given: str) -> None:
        def keep(rows: Any, number: int) -> None:
            del number
            found = rows.orderBy("time").collect()
            batches.append([(one.direction, one.frame_index, one.latency_us) for one in found])

        stream = spark.readStream.format("kafka-capture").options(**given).load(str(captures))
        writer = stream.writeStream.foreachBatch(keep).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(out)).start()
        assert query.awaitTermination(300)
        told.append(json.loads(query.recentProgress[-1].json)["sources"][0])

    told: list[dict[str, Any]] = []
    traffic = Traffic(captures)
    connection = traffic.connect()
    asked, answer = made("HeartbeatRequest"), made("HeartbeatResponse")
    traffic.exchange(connection, asked, answer, 4, 0)
    run()
    assert list(chain(*batches)) == [("request", 0, None), ("response", 0, 1000)]
    batches.clear()
    traffic.exchange(connection, asked, answer, 4, 1)
    traffic.rotate()
    traffic.exchange(connection, asked, answer, 4, 2)
    file = max(captures.iterdir())
    whole = file.read_bytes()
    traffic.close()
    # The tap is writing the last block.
    file.write_bytes(whole[:-10])
    run()
    assert [one[:2] for one in list(chain(*batches))] == [
        ("request", 1), ("response", 1), ("request", 2),
    ]  # fmt: skip
    if tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2):
        sizes = {str(one): one.stat().st_size for one in captures.iterdir()}
        assert told[-1]["latestOffset"] == sizes
        unread = {name: size - told[-1]["endOffset"][name] for name, size in sizes.items()}
        assert unread.pop(str(file)) > 0
        assert [*unread.values()] == [0]
    batches.clear()
    file.write_bytes(whole)
    run()
    assert list(chain(*batches)) == [("response", 2, 1000)]
    batches.clear()
    run()
    assert list(chain(*batches)) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster  # half a minute; `tables/test_saved_stream.py` tests it without Spark
def test_a_stream_goes_on_from_its_state_without_the_files_that_it_has_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    register(spark)
    files = sorted(write_capture(tmp_path / "made", 3, replace(SHAPES["CLEAN"], files=3)))
    captures, states = tmp_path / "captures", tmp_path / "states"
    captures.mkdir()
    found: list[tuple[str, ...]] = []

    def keep(rows: Any, number: int) -> None:
        del number
        columns = ("connection", "direction", "frame_index", "latency_us", "outcome", "error")
        found.extend(map(tuple, rows.select(*columns).collect()))

    def run(at: Path, **given: str) -> None:
        stream = spark.readStream.format("kafka-capture").options(**given).load(str(at))
        writer = stream.writeStream.foreachBatch(keep).trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{at}-checkpoint").start()
        assert query.awaitTermination(300)

    for file in files:
        for finished in captures.iterdir():
            finished.unlink()
        (captures / file.name).write_bytes(file.read_bytes())
        run(captures, stateLocation=str(states))
    got = sorted(found, key=repr)
    found.clear()
    run(tmp_path / "made")
    assert got == sorted(found, key=repr)
    assert any(one[3] is not None for one in got)
    assert len([*states.iterdir()]) == 2


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*SHAPES} - {"UNORDERED", "HOSTS"}))
def test_rows_of_a_stream_do_not_depend_on_its_cuts_in_any_shape(name: str, tmp_path: Path) -> None:
    from tests.tables.test_following import assert_cut_as_whole  # noqa: PLC0415 - only `make cluster` needs this

    for seed in range(5):
        assert_cut_as_whole(name, seed, tmp_path / str(seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_who_lists_the_connections_that_the_source_has(name: str) -> None:
    files = capture_files(name)
    found = [row for row in rows_of(files[0].parent, rows="connections") if row["is_kafka"]]
    said = ("connection", "client", "broker", "request_bytes", "response_bytes", "closed_by")
    of_source = {(*tuple(row[column] for column in said), row["reset"]) for row in found}
    listed_rows = list(listed(files))
    of_who = {
        (*tuple(getattr(row, column) for column in said), row.is_reset) for row in listed_rows
    }
    # The table contains only connections with frames; the source also returns connections without
    # frames.
    silent = {row["connection"] for row in found if not row["captured_bytes"]}
    assert of_who == {row for row in of_source if row[0] not in silent}
    assert of_who
