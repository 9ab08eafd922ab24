"""Request logs that are added hour by hour result in the rows and answers of a single analysis."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers import ANSWERS
from flexwire.answers.chargeback import chargeback
from flexwire.errors import CaptureError
from flexwire.spark import request_log_job
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import audit
from flexwire.spark.answers.outputs import open_tables
from flexwire.spark.delta.output import output
from flexwire.tables.keys import ANALYSIS, BEGAN_IN
from tests.capture.request_lines import PLACE, line, real_lines
from tests.capture.rotating import LoggingBroker, live
from tests.searching import times, trying_few
from tests.spark.traffic import Traffic
from tests.tables.keyed import assert_keys_identify_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables, Answer
    from flexwire.spark.analyze import Analysis

pytestmark = pytest.mark.spark

OF_TRAFFIC = [one for one in ANSWERS if not one.asks and not one.of_logs]
FEW = {"chargeback", "latency"}
"""The answers that `make test` computes. `make long` computes all."""
HAVE_ROWS = FEW | {"connections", "topic_readers"}
TABLES = ("frames", "connections")
OF_GROWN = {ANALYSIS, BEGAN_IN, "answered_indexes"}
DATE = re.compile(rb"\d{4}-\d\d-\d\d")
MOMENT = re.compile(rb"\d\d:\d\d:\d\d,\d{3}")
INSTANCE = "AAAAAAAAAAAAAAAAAAAABw"


def once() -> Iterator[bytes]:
    """Yield lines of connections whose clients sometimes send ids, software and principals."""
    for connection in range(4):
        for number in range(12):
            sent = number == 3
            header = {
                "requestApiKey": 3,
                "requestApiVersion": 12,
                "correlationId": number,
                "clientId": f"once-{connection}" if sent or number == 9 else None,
                "clientInstanceId": INSTANCE if number == 6 + connection else None,
            }
            software = {"softwareName": f"s-{connection}", "softwareVersion": "1"}
            unknown = {"softwareName": "unknown", "softwareVersion": "unknown"}
            yield line(
                requestHeader=header,
                connection=f"10.0.0.1:9092-10.0.0.9:50000-0-{connection}",
                principal=f"User:{number}" if connection == 1 else "User:alice",
                clientInformation=software if number > 4 else unknown,
                isForwarded=number == 5 and connection == 2,
            )


def in_order(lines: Sequence[bytes]) -> list[bytes]:
    """Return lines a second apart, half of them before midnight."""
    day = 24 * 3600
    timed = []
    for number, text in enumerate(lines):
        at = day - len(lines) // 2 + number
        clock = b"%02d:%02d:%02d,%03d" % (at // 3600 % 24, at // 60 % 60, at % 60, number % 1000)
        dated = DATE.sub(b"2026-11-%d" % (22 + at // day), text, count=1)
        timed.append(MOMENT.sub(clock, dated, count=1))
    return timed


def brokers(root: Path) -> list[LoggingBroker]:
    """Return two brokers, one of which refuses requests and reports them in its server log."""
    mixed, source = [*real_lines("4.4.0")], random.Random(1)
    for text in once():
        mixed.insert(source.randrange(len(mixed)), text)
    first = in_order(mixed)
    other = in_order([*real_lines("3.9.2")])
    refused = (PLACE / "4.4.0-server.log").read_bytes().splitlines()
    return [
        LoggingBroker(root / "one", first),
        LoggingBroker(root / "two", other),
        LoggingBroker(root / "one", refused, "server.log"),
    ]


def cut_and_analyze(
    spark: SparkSession, root: Path, source: random.Random, cuts: int, form: str = "delta"
) -> list[Analysis]:
    """Analyze growing logs into ``out`` after each cut, and finally all of them into ``alone``.

    The brokers' request logs end before their server logs report the refused requests.
    """
    parts = [*sorted(source.uniform(0.1, 0.9) for _ in range(cuts)), 1]
    writing = brokers(root / "logs")
    how: dict[str, Any] = {"spark": spark, "answers": [], "format": form, "append": True}
    done = []
    for part in parts:
        live(source, writing[:2], part)
        if part == 1:
            live(source, writing[2:], part)
        done.append(analyze([root / "logs"], root / "out", **how))
    analyze([root / "logs"], root / "alone", **how)
    return done


@dataclass(frozen=True)
class Grown:
    """The same logs, analyzed in one run and in several."""

    whole: AnalysisTables
    grown: AnalysisTables
    root: Path
    done: list[Analysis]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Grown:
    root = tmp_path_factory.mktemp("grown-logs")
    with pytest.MonkeyPatch.context() as patch:
        # Each file is read by several tasks.
        patch.setattr(request_log_job, "LEAST_TASK", 30_000)
        done = cut_and_analyze(spark, root, random.Random(3), 2)
    whole, grown = (open_tables(spark, root / name) for name in ("alone", "out"))
    return Grown(whole, grown, root, done)


def rows_of(table: Any) -> list[str]:
    kept = [name for name in table.columns if name not in OF_GROWN | {"source"}]
    return sorted(without_names(repr(row)) for row in table.select(*kept).collect())


def without_names(text: str) -> str:
    """Return text without file names and numbers, whose order differs."""
    text = re.sub(r"(frame_index'?[:=,] ?)\d+", r"\1", text)
    return re.sub(r"(kafka-request|server)\.log[.\d]*(\.gz)?", "log", text)


def told(answer: Answer, tables: AnalysisTables) -> list[str]:
    rows = [row.asDict(recursive=True) for row in answer.ask(tables).collect()]
    return sorted(without_names(repr(sorted(row.items()))) for row in rows)


@pytest.mark.parametrize(
    "answer",
    trying_few(OF_TRAFFIC, FEW, name=attrgetter("name")),
    ids=lambda one: one.name,
)
def test_several_analyses_answer_what_one_does(answer: Answer, tables: Grown) -> None:
    expected = told(answer, tables.whole)
    assert told(answer, tables.grown) == expected
    # An answer without rows would prove nothing.
    assert expected or answer.name not in HAVE_ROWS


@pytest.mark.long
def test_several_analyses_have_the_rows_of_one(spark: SparkSession, tables: Grown) -> None:
    assert len({one.output.place.url for one in tables.done}) == 3
    for name in TABLES:
        expected, found = (rows_of(getattr(one, name)) for one in (tables.whole, tables.grown))
        assert found == expected != []
    names = set(output(tables.root / "alone").message_names())
    assert names == set(output(tables.root / "out").message_names())
    for name in names:
        whole, grown = (one.message(name) for one in (tables.whole, tables.grown))
        assert rows_of(grown) == rows_of(whole), name
    forwarded = [
        spark.read.parquet(*files(tables.root / place, "forwarded_requests"))
        for place in ("alone", "out")
    ]
    assert rows_of(forwarded[1]) == rows_of(forwarded[0]) != []


def files(out: Path, name: str) -> list[str]:
    return [str(out / entry.name) for entry in output(out).files(name)]


@pytest.mark.long
def test_the_requests_of_a_chargeback_are_those_of_the_frames(tables: Grown) -> None:
    requests = tables.grown.frames.where("direction = 'request'").count()
    charged = chargeback(tables.grown).agg(F.sum("requests")).first()
    topics = chargeback(tables.grown).where("topic is not null or topic_id is not null")
    assert charged is not None
    assert topics.count()
    logs = [one.facts.request_logs for one in tables.done]
    written = sum(one.requests + one.refused for one in logs if one is not None)
    assert requests == written
    assert charged[0] >= requests


@pytest.mark.long
def test_a_key_identifies_rows(tables: Grown) -> None:
    grown = output(tables.root / "out")
    found = assert_keys_identify_rows({name: grown.table(name) for name in grown.names})
    assert {"frames", "connections", "forwarded_requests"} <= found


@pytest.mark.long
def test_an_audit_is_that_of_one_analysis(spark: SparkSession, tables: Grown) -> None:
    expected, found = (
        sorted(map(repr, audit(spark, tables.root / out, ["4.0"]).collect()))
        for out in ("alone", "out")
    )
    assert found == expected != []


def test_lines_without_ids_have_those_of_their_connection(tables: Grown) -> None:
    rows = tables.grown.frames.where("client like '10.0.0.9%' and direction = 'request'").collect()
    assert {row.client_instance_id for row in rows} == {INSTANCE}
    named = [row for row in rows if row.client_id is not None]
    assert 0 < len(named) < len(rows)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(times(1)))
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_after_any_cut_each_answer_is_that_of_one_analysis(
    seed: int, form: str, spark: SparkSession, tmp_path: Path
) -> None:
    source = random.Random(seed)
    cut_and_analyze(spark, tmp_path, source, source.randrange(1, 5), form)
    whole, grown = (open_tables(spark, tmp_path / place) for place in ("alone", "out"))
    for name in TABLES:
        assert rows_of(getattr(grown, name)) == rows_of(getattr(whole, name))
    for answer in OF_TRAFFIC:
        assert told(answer, grown) == told(answer, whole), answer.name


def one_log(path: Path, first: int, last: int) -> Path:
    """Write the lines of one connection, with these correlation ids."""
    header = {"requestApiKey": 3, "requestApiVersion": 12, "clientId": "c"}
    lines = in_order([line(requestHeader=header | {"correlationId": at}) for at in range(60)])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(text + b"\n" for text in lines[first:last]))
    return path


@pytest.mark.long
def test_an_hour_is_added_skipped_and_told(spark: SparkSession, tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "logs" / "kafka-request.log"
    how: dict[str, Any] = {"spark": spark, "answers": [], "format": "delta", "append": True}
    one_log(path, 0, 10)
    assert analyze([path], out, **how).is_new
    assert not analyze([path], out, **how).is_new
    path.rename(path.with_name("kafka-request.log.1"))
    one_log(path, 10, 20)
    done = analyze([path.parent], out, **how)
    assert "1 file is already in" in " ".join(done.notes)
    one_log(path, 10, 15)
    shrunk = analyze([path.parent], out, **how)
    assert not shrunk.is_new
    assert "it is shorter than the part that was read" in " ".join(shrunk.notes)
    frames = open_tables(spark, out).frames.where("direction = 'request'").collect()
    assert sorted(row.correlation_id for row in frames) == [*range(20)]


@pytest.mark.long
def test_captures_and_request_logs_are_not_mixed(spark: SparkSession, tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "capture")
    traffic.connect().close(timestamp_us=traffic.now_us)
    traffic.close()
    path = one_log(tmp_path / "logs" / "kafka-request.log", 0, 3)
    how: dict[str, Any] = {"spark": spark, "answers": [], "format": "delta", "append": True}
    for first, second, text in (
        (tmp_path / "capture", path, "holds captures"),
        (path, tmp_path / "capture", "holds request logs"),
    ):
        out = tmp_path / text.replace(" ", "-")
        analyze([first], out, **how)
        with pytest.raises(CaptureError, match=f"{text}, and a request in both"):
            analyze([second], out, **how)
