"""`flexwire analyze`: captures in, tables and a report out, on Spark.

```
capture files ─▶ segments ─▶ frames ─▶ requests ⋈ responses ─▶ messages/<Message> ─▶ records
                                                  └────────────────┴─▶ frames ─▶ facts ─▶ report
```
What lies between two jobs is Parquet in a working directory below the output, so that nothing is
computed twice and every body is decoded once. All is written there, and published in the end.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.arguments import to_flag, to_int, to_list, to_text
from flexwire.capture.brokers import Brokers
from flexwire.errors import CaptureError
from flexwire.report import render
from flexwire.report.audit_files import audit_csv, audit_json
from flexwire.schema.catalog import catalog
from flexwire.spark.answers import audit_table, gather_audit, tables_to_audit
from flexwire.spark.batches import BATCH_BYTES, BATCH_ROWS, spark_schema
from flexwire.spark.bodies import decode_bodies
from flexwire.spark.connections import connections_table
from flexwire.spark.facts import QUERIES, Measured, gather_facts
from flexwire.spark.failures import SPARK_ERRORS, explained
from flexwire.spark.frames import PACKETS, assemble_frames
from flexwire.spark.outcomes import SOFTWARE, SOFTWARE_MESSAGE, frames_table, software_of
from flexwire.spark.pairs import pair_frames, with_payloads
from flexwire.spark.paths import capture_files
from flexwire.spark.progress import Steps, silent, watched_tasks
from flexwire.spark.records import (
    RECORDS,
    carried_records,
    decode_records,
    name_topics,
)
from flexwire.spark.segments import read_captures
from flexwire.spark.session import session
from flexwire.spark.staging import AUDIT_CSV, AUDIT_JSON, FACTS, REPORT, staging
from flexwire.spark.tables import Tables, mark, write_table
from flexwire.storage.private import write_private_text
from flexwire.tables.message_schema import OUTCOMES
from flexwire.tables.record_places import RECORDS_FIELDS, TOPIC_NAMES_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from flexwire.report.audit_facts import Audit
    from flexwire.report.facts import Facts
    from flexwire.spark.progress import Progress
    from flexwire.spark.staging import Staging

# A small job is mostly waiting for Spark to plan and commit it.
JOBS_AT_ONCE = 4
# What our tasks rely on, whatever the session's owner has set.
_CONF = {
    "spark.sql.session.timeZone": "UTC",
    # Without it mapInArrow takes columns by position, whatever they are called.
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    # The default is INT96, which readers take for nanoseconds without a time zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Rows alone do not bound a batch: a frame may have 100 MiB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
}
_LARGE_CONF = {
    # The vectorized reader holds 4,096 payloads at once, whatever their size.
    "spark.sql.parquet.enableVectorizedReader": "false",
    # Spark takes a table for small by its compressed size, and broadcasts all that is in it.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
# Below so many bytes of captures, compiling takes longer than running what was compiled.
SMALL_BYTES = 64 * 1024 * 1024
# Of a compressed file's size, about what is in it.
_INFLATION = 10
_SMALL_CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# One compiler, and a collector without threads of its own: half the processor time of a start.
# With one compiler Java would keep 48 MB for code, which the queries of a few analyses fill.
SMALL_JAVA = {
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:ReservedCodeCacheSize=240m"
}


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis wrote, its facts, and the seconds that each stage took."""

    tables: Tables
    report: Path
    facts_file: Path
    facts: Facts
    seconds: dict[str, float] = field(compare=False)


def analyze(  # noqa: PLR0913 - each is an option of the command, and given by name
    paths: Iterable[str | Path],
    out: str | Path,
    *,
    spark: SparkSession | None = None,
    progress: Progress = silent,
    memory: str = "2g",
    worker_memory: str | None = None,
    show_credentials: bool = False,
    title: str = "Kafka traffic",
    ports: Iterable[int] = (),
    brokers: Iterable[str] = (),
    releases: Iterable[str] = (),
    captured_release: str | None = None,
) -> Analysis:
    """Decode captures to ``OUT/tables``, and measure them: ``report.html`` and ``facts.json``.

    ``paths`` are files, directories and patterns. What does not decode is a row with the reason
    and its bytes, and the job goes on. Credentials are withheld, and so are bytes that may hold
    some, unless ``show_credentials``. An earlier analysis in ``out`` is replaced as a whole, once
    this one is complete; where this one fails or is ended, that one stays. What is written is for
    its owner alone to read. ``memory`` is Java's, at least "512m", and ``worker_memory`` that of
    each Python worker, at least "1g", unless a session runs already.
    ``ports`` and ``brokers`` ("10.0.0.1:9092", "[::1]:9092") say which ends of connections are
    brokers: only connections with such an end are Kafka then. Without them those are in which
    something reads as Kafka; the table of connections says of each why it is, or is not.
    ``releases`` are those that the audit is about ("4.0" is the newest 4.0 in the catalog); without
    any it is every major from the captured brokers' on. ``captured_release`` is the one that these
    brokers run, where that is known: versions that it laid out otherwise than later releases are
    read as it wrote them.

    Raises `CaptureError` when the paths give no capture or a broker is not an address,
    `FlexwireError` when ``out`` holds tables that are not flexwire's or another analysis writes
    there, `JavaError` when there is no Java to run Spark on, `AnalysisError` when Spark fails.
    """
    to_flag(show_credentials, "show_credentials")
    to_text(title, "title")
    given = _given(ports, brokers)
    audited = tuple(_release(one) for one in to_list(releases, "releases", "a list of releases"))
    captured = None if captured_release is None else _release(captured_release)
    files = capture_files(to_list(paths, "paths", "a list of paths"))
    is_small = sum(map(_size, files)) < SMALL_BYTES
    is_ours = spark is None and SparkSession.getActiveSession() is None
    clock = _Clock()
    bounds = (memory, worker_memory) if is_ours else (None, None)
    explain = partial(explained, lambda: clock.current, *bounds)
    with staging(Path(out).absolute()) as place:
        with explain(), clock.stage("Starting Spark"):
            running = spark or _session(memory, worker_memory, is_small=is_small)
        with (
            _stopped(running) if is_ours else nullcontext(),
            explain(),
            _configured(running, is_small=is_small),
        ):
            job = _Job(running, place, progress, clock, show_credentials, given, captured)
            job.write_tables([str(one) for one in files])
            facts = job.measure(title, audited)
        with clock.stage("Writing the report"):
            _publish(place, facts, files)
    return _analysis(place.out, facts, clock)


def _session(memory: str, worker_memory: str | None, *, is_small: bool) -> SparkSession:
    conf = SMALL_JAVA if is_small else None
    return session(memory=memory, worker_memory=worker_memory, conf=conf)


def _given(ports: Iterable[int], brokers: Iterable[str]) -> Brokers:
    return Brokers.parse(
        [to_int(port, "ports") for port in to_list(ports, "ports", "a list of ports")],
        [to_text(one, "brokers") for one in to_list(brokers, "brokers", "a list of addresses")],
    )


def _release(asked: str) -> str:
    return catalog().release(to_text(asked, "a release"))


def _analysis(out: Path, facts: Facts, clock: _Clock) -> Analysis:
    return Analysis(Tables(out / "tables"), out / REPORT, out / FACTS, facts, clock.seconds)


def _size(file: Path) -> int:
    return file.stat().st_size * (_INFLATION if file.suffix == ".gz" else 1)


@contextmanager
def _stopped(spark: SparkSession) -> Iterator[None]:
    # A session that the caller has goes on after us, and does not come here.
    try:
        yield
    finally:
        # Where Java has ended by itself there is nothing to stop.
        with suppress(*SPARK_ERRORS):
            spark.stop()


def _publish(place: Staging, facts: Facts, files: list[Path]) -> None:
    texts = {
        FACTS: json.dumps(facts.to_json(), indent=1) + "\n",
        REPORT: render(facts),
        AUDIT_CSV: audit_csv(facts.audit),
        AUDIT_JSON: audit_json(facts.audit),
    }
    for name, text in texts.items():
        write_private_text(place.new / name, text)
    mark(Tables(place.new / "tables"), map(str, files))
    place.publish()


class _Clock:
    """How long each stage took, and which one is the latest."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.current = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.current = name
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


@contextmanager
def _configured(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    conf = _CONF | (_SMALL_CONF if is_small else _LARGE_CONF)
    before = {name: spark.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@dataclass(frozen=True, slots=True)
class _Job:
    """One analysis: its stages in order, each from what the one before wrote."""

    spark: SparkSession
    place: Staging
    progress: Progress
    clock: _Clock
    show_credentials: bool
    brokers: Brokers
    captured_release: str | None

    @property
    def tables(self) -> Tables:
        return Tables(self.place.new / "tables")

    def write_tables(self, files: list[str]) -> None:
        wire = self._read_captures(files)
        frames = self._pair(wire)
        self._decode_messages(frames)
        with self._stage("Writing records and frames"):
            self._together([self._write_records, partial(self._write_frames, frames)])

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        with self.clock.stage(name), watched_tasks(self.spark, self.progress, name):
            yield

    def _together(self, actions: list[Callable[[], None]]) -> None:
        """Run actions a few at once; raises what the first of them to fail raised."""
        with ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
            try:
                for future in [pool.submit(action) for action in actions]:
                    future.result()
            except BaseException:
                # Of no use any more, and somebody waits.
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _read_captures(self, files: list[str]) -> DataFrame:
        with self._stage("Reading captures"):
            segments = read_captures(self.spark, files, show_credentials=self.show_credentials)
            frames = assemble_frames(
                segments, show_credentials=self.show_credentials, brokers=self.brokers
            )
            wire = self._through(frames, "wire", "kind")
            packets = wire.where(F.col("kind") == PACKETS)
            noted = packets.select(
                "source",
                F.col("error").alias("reason"),
                F.col("size").alias("packets"),
                F.col("payload").alias("sample"),
            )
            connections = connections_table(wire)
            self._together(
                [
                    partial(write_table, noted.coalesce(1), self.tables.packets),
                    partial(write_table, connections.coalesce(1), self.tables.connections),
                ]
            )
        self._check_readable()
        return wire

    def _check_readable(self) -> None:
        """Raise what was wrong with the first file when no file gave a packet."""
        packets = self._table(self.tables.packets).orderBy(F.desc("packets"), "source")
        if not packets.where("packets > 0").take(1):
            for row in packets.where("reason is not null").take(1):
                raise CaptureError(row.reason, source=row.source)

    def _pair(self, wire: DataFrame) -> DataFrame:
        with self._stage("Pairing requests and responses"):
            frames = with_payloads(pair_frames(wire), wire, show_credentials=self.show_credentials)
            # One directory a message, so that its job reads nothing else; rebalanced, so that a
            # small capture has one file in each and a large one has files of the usual size.
            return self._through(frames.hint("rebalance", "body"), "frames", "body")

    def _through(self, rows: DataFrame, name: str, partition: str) -> DataFrame:
        """The same rows, from a file in the working directory."""
        write_table(rows, self.place.work / name, partition)
        return self.spark.read.schema(rows.schema).parquet(str(self.place.work / name))

    def _decode_messages(self, frames: DataFrame) -> None:
        stage = "Decoding messages"
        with self.clock.stage(stage):
            counted = frames.where("body is not null").groupBy("body")
            sizes = counted.agg(F.sum("size").alias("bytes")).collect()
            # The largest first: the last to finish should be a small one.
            names = [row.body for row in sorted(sizes, key=lambda row: -row.bytes)]
            steps = Steps(self.progress, stage, len(names))
            self._together([partial(self._decode_message, frames, name, steps) for name in names])

    def _decode_message(self, frames: DataFrame, name: str, steps: Steps) -> None:
        carried = frames.where(F.col("body") == name)
        decoded = decode_bodies(
            carried, name, show_credentials=self.show_credentials, release=self.captured_release
        )
        write_table(decoded, self.tables.message(name))
        steps.finish()

    def _write_records(self) -> None:
        names = self.tables.message_names()
        carried = [
            carried_records(self._message(where.message), where)
            for where in RECORDS_FIELDS
            if where.message in names
        ]
        if carried:
            named = name_topics(reduce(DataFrame.unionByName, carried), self._metadata())
            write_table(decode_records(named), self.tables.records)
        else:
            write_table(self._empty(RECORDS), self.tables.records)

    def _metadata(self) -> DataFrame | None:
        known = TOPIC_NAMES_MESSAGE in self.tables.message_names()
        return self._message(TOPIC_NAMES_MESSAGE) if known else None

    def _write_frames(self, frames: DataFrame) -> None:
        if SOFTWARE_MESSAGE in self.tables.message_names():
            software = software_of(self._message(SOFTWARE_MESSAGE))
        else:
            software = self._empty(SOFTWARE)
        write_table(frames_table(frames, self._outcomes(), software), self.tables.frames)

    def _message(self, name: str) -> DataFrame:
        return self._table(self.tables.message(name))

    def _outcomes(self) -> DataFrame:
        names = self.tables.message_names()
        if not names:
            return self._empty(OUTCOMES)
        paths = [str(self.tables.message(name)) for name in names]
        return self.spark.read.schema(spark_schema(OUTCOMES)).parquet(*paths)

    def _empty(self, schema: pa.Schema) -> DataFrame:
        return self.spark.createDataFrame([], spark_schema(schema))

    def _table(self, path: Path) -> DataFrame:
        return self.spark.read.parquet(str(path))

    def measure(self, title: str, releases: tuple[str, ...]) -> Facts:
        stage = "Measuring"
        steps = Steps(self.progress, stage, QUERIES)
        with self.clock.stage(stage):
            measured = Measured(
                frames=self._table(self.tables.frames),
                connections=self._table(self.tables.connections),
                records=self._table(self.tables.records),
                packets=self._table(self.tables.packets),
                outcomes=self._outcomes(),
                audit=self._audited(releases),
                given=self.brokers,
            )
            made_at_us = time.time_ns() // 1000
            facts = gather_facts(measured, title=title, made_at_us=made_at_us, steps=steps)
            write_table(audit_table(self.spark, facts.audit).coalesce(1), self.tables.audit)
            return facts

    def _audited(self, releases: tuple[str, ...]) -> Callable[[], Audit]:
        tables = tables_to_audit(self.spark, self.tables)
        brokers = (self.captured_release,) if self.captured_release else ()
        return partial(gather_audit, tables, self.tables.message_names(), releases, brokers)
