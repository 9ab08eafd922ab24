"""`flexwire analyze`: captures in, tables and a report out, on Spark.

```
capture files ─▶ survey ─▶ ranges ─▶ tables ─▶ facts ─▶ report
```
Tasks write the tables, each its part of a range (`flexwire.spark.ranges`); queries over the tables
are what the report says. All is written below a staging directory, and published in the end.
"""

from __future__ import annotations

import json
import shutil
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from flexwire.arguments import to_flag, to_int, to_list, to_text
from flexwire.capture.brokers import Brokers
from flexwire.errors import CaptureError
from flexwire.report import render
from flexwire.report.audit_files import audit_csv, audit_json
from flexwire.schema.catalog import catalog
from flexwire.spark.answers import audit_table, gather_audit, tables_to_audit
from flexwire.spark.batches import BATCH_BYTES, BATCH_ROWS
from flexwire.spark.by_objects import ObjectTables
from flexwire.spark.facts import QUERIES, Measured, gather_facts
from flexwire.spark.failures import SPARK_ERRORS, explained
from flexwire.spark.parts import facts_of
from flexwire.spark.paths import capture_sources, local_files, output_directory
from flexwire.spark.progress import Clock, Steps, silent, watched_tasks
from flexwire.spark.ranges import range_bytes, write_tables
from flexwire.spark.session import session
from flexwire.spark.staging import AUDIT_CSV, AUDIT_JSON, FACTS, REPORT, staging
from flexwire.spark.tables import Tables, mark, outcomes_of, write_table
from flexwire.storage.private import make_private_directory, write_private_text
from flexwire.tables.survey import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from flexwire.report.audit_facts import Audit
    from flexwire.report.facts import Facts
    from flexwire.spark.progress import Progress
    from flexwire.spark.staging import Staging
    from flexwire.spark.sums.analysis import AnalysisSums
    from flexwire.spark.surveying import Surveyed
    from flexwire.spark.unreadable import Unreadable
    from flexwire.storage.source import Source

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
# Below so many bytes of captures, compiling takes longer than running what was compiled: where
# Spark reads all of it, and where it only does the audit.
SMALL_BYTES = 64 * 1024 * 1024
SMALL_COLUMN_BYTES = 4 * 1024 * 1024 * 1024
# Where nobody says how many tasks run at once.
_TASKS_AT_ONCE = 8
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
    record_bytes: bool = False,
    by_objects: bool = False,
    skip_unreadable: bool = False,
) -> Analysis:
    """Decode captures to ``OUT/tables``, and measure them: ``report.html`` and ``facts.json``.

    ``paths`` are files, directories and patterns, here or by URL (`flexwire.storage`); ``out`` is a
    directory here. A file that is not a capture fails the analysis; with ``skip_unreadable`` the
    report says which were left out. What does not decode is a row with the reason and its bytes.
    Credentials are withheld, and so are bytes that may hold some, unless ``show_credentials``. An
    earlier analysis in ``out`` is replaced as a whole, once this one is complete. What is written
    is for its owner alone to read. ``memory`` is Java's, at least "512m", and ``worker_memory``
    that of each Python worker, at least "1g", unless a session runs already.

    ``ports`` and ``brokers`` ("10.0.0.1:9092", "[::1]:9092") say which ends of connections are
    brokers: only connections with such an end are Kafka then, else those in which something reads
    as Kafka. ``releases`` are those that the audit is about; without any it is every major from the
    captured brokers' on. ``captured_release`` is the one that these brokers run: versions that it
    laid out otherwise than later releases are read as it wrote them. With ``record_bytes`` the
    messages that carried records have their bytes, and else how many there were. ``by_objects``
    reads as the reference does, in many times the time, and only files here.

    Raises `CaptureError` when the paths give no capture, a file is not one or a broker is not an
    address, `StorageError` when files cannot be listed or ``out`` is a URL, `FlexwireError` when
    ``out`` is not flexwire's or in use, `JavaError` without Java, `AnalysisError` when Spark fails.
    """
    how = _How(
        to_flag(show_credentials, "show_credentials"),
        to_flag(record_bytes, "record_bytes"),
        to_flag(by_objects, "by_objects"),
        to_flag(skip_unreadable, "skip_unreadable"),
        _given(ports, brokers),
        None if captured_release is None else _release(captured_release),
        tuple(_release(one) for one in to_list(releases, "releases", "a list of releases")),
        to_text(title, "title"),
    )
    return _run(paths, out, spark, progress, (memory, worker_memory), how)


@dataclass(frozen=True, slots=True)
class _How:
    """What `analyze` was asked."""

    show_credentials: bool
    record_bytes: bool
    by_objects: bool
    skip_unreadable: bool
    brokers: Brokers
    captured_release: str | None
    releases: tuple[str, ...]
    title: str


def _run(
    paths: Iterable[str | Path],
    out: str | Path,
    spark: SparkSession | None,
    progress: Progress,
    memory: tuple[str, str | None],
    how: _How,
) -> Analysis:
    to, files = output_directory(out), _files(paths, by_objects=how.by_objects)
    is_small = sum(map(_size, files)) < (SMALL_BYTES if how.by_objects else SMALL_COLUMN_BYTES)
    is_ours = spark is None and SparkSession.getActiveSession() is None
    clock = Clock()
    explain = partial(explained, lambda: clock.current, *(memory if is_ours else (None, None)))
    with staging(to) as place:
        with explain(), clock.stage("Starting Spark"):
            running = spark or _session(*memory, is_small=is_small)
        with (
            _stopped(running) if is_ours else nullcontext(),
            explain(),
            configured(running, is_small=is_small),
        ):
            job = _Job(running, place, progress, clock, how)
            sums, unreadable = job.write_tables(files)
            facts = unreadable.told(job.measure(sums))
        with clock.stage("Writing the report"):
            _publish(place, facts, files)
    return _analysis(place.out, facts, clock)


def _files(paths: Iterable[str | Path], *, by_objects: bool) -> list[Source]:
    files = capture_sources(to_list(paths, "paths", "a list of paths"))
    if by_objects:
        local_files(files, "expected a file on this machine, which by_objects alone reads")
    return files


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


def _analysis(out: Path, facts: Facts, clock: Clock) -> Analysis:
    return Analysis(Tables(out / "tables"), out / REPORT, out / FACTS, facts, clock.seconds)


def _tasks_at_once(spark: SparkSession) -> int:
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:
        # Spark Connect does not say.
        return _TASKS_AT_ONCE


def _size(file: Source) -> int:
    return file.size * (_INFLATION if file.url.endswith(".gz") else 1)


@contextmanager
def _stopped(spark: SparkSession) -> Iterator[None]:
    # A session that the caller has goes on after us, and does not come here.
    try:
        yield
    finally:
        # Where Java has ended by itself there is nothing to stop.
        with suppress(*SPARK_ERRORS):
            spark.stop()


def _publish(place: Staging, facts: Facts, files: list[Source]) -> None:
    texts = {
        FACTS: json.dumps(facts.to_json(), indent=1) + "\n",
        REPORT: render(facts),
        AUDIT_CSV: audit_csv(facts.audit),
        AUDIT_JSON: audit_json(facts.audit),
    }
    for name, text in texts.items():
        write_private_text(place.new / name, text)
    mark(Tables(place.new / "tables"), [one.name for one in files])
    place.publish()


@contextmanager
def configured(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    """Set what our queries rely on, and what is set for a small or large capture, meanwhile."""
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
    clock: Clock
    how: _How

    @property
    def tables(self) -> Tables:
        return Tables(self.place.new / "tables")

    def write_tables(self, files: list[Source]) -> tuple[AnalysisSums | None, Unreadable]:
        """Write all tables but that of the audit; gives sums of their rows, and what was left out.

        By columns, range by range; by objects where that is asked for, and where files overlap in
        time, which their ranges cannot. Objects sum up nothing.
        """
        if not self.how.by_objects:
            found, sums = self._write_by_columns(files)
            if found.is_ordered:
                return sums, found.unreadable
            shutil.rmtree(self.tables.root)
            make_private_directory(self.tables.root)
        return None, self._write_by_objects(files)

    def _write_by_columns(self, files: list[Source]) -> tuple[Surveyed, AnalysisSums]:
        total = sum(map(_size, files))
        asked = Asked(
            tuple(files),
            brokers=self.how.brokers,
            release=self.how.captured_release,
            show_credentials=self.how.show_credentials,
            record_bytes=self.how.record_bytes,
            range_bytes=range_bytes(total, _tasks_at_once(self.spark)),
            skip_unreadable=self.how.skip_unreadable,
        )
        with self._stage("Decoding captures"):
            found, sums = write_tables(self.spark, asked, self.place.files, total)
        found.unreadable.check(len(files), skip=self.how.skip_unreadable)
        if not found.packets and found.reason is not None:
            raise CaptureError(found.reason, source=found.source)
        return found, sums

    def _write_by_objects(self, files: list[Source]) -> Unreadable:
        paths = local_files(
            files,
            "the captures overlap in time and show the same connections; such are read only on "
            "this machine for now, so copy them here first",
        )
        stages = ObjectTables(
            self.spark,
            self.place,
            self.progress,
            self.clock,
            self.how.show_credentials,
            self.how.record_bytes,
            self.how.brokers,
            self.how.captured_release,
            self.how.skip_unreadable,
        )
        return stages.write(list(map(str, paths)))

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        with self.clock.stage(name), watched_tasks(self.spark, self.progress, name):
            yield

    def _table(self, path: Path) -> DataFrame:
        return self.spark.read.parquet(str(path))

    def measure(self, sums: AnalysisSums | None) -> Facts:
        """Do the audit, and put the facts together; without ``sums`` by queries over the tables."""
        made_at_us = time.time_ns() // 1000
        if sums is None:
            facts = self._query(made_at_us)
        else:
            with self._stage("Measuring"):
                audit = self._audited()()
                facts = facts_of(
                    sums.parts(self.how.brokers), audit, title=self.how.title, made_at_us=made_at_us
                )
        write_table(audit_table(self.spark, facts.audit).coalesce(1), self.tables.audit)
        return facts

    def _query(self, made_at_us: int) -> Facts:
        stage = "Measuring"
        steps = Steps(self.progress, stage, QUERIES)
        with self.clock.stage(stage):
            measured = Measured(
                frames=self._table(self.tables.frames),
                connections=self._table(self.tables.connections),
                records=self._table(self.tables.records),
                packets=self._table(self.tables.packets),
                outcomes=outcomes_of(self.spark, self.tables),
                audit=self._audited(),
                given=self.how.brokers,
            )
            return gather_facts(measured, title=self.how.title, made_at_us=made_at_us, steps=steps)

    def _audited(self) -> Callable[[], Audit]:
        tables = tables_to_audit(self.spark, self.tables)
        brokers = (self.how.captured_release,) if self.how.captured_release else ()
        return partial(
            gather_audit, tables, self.tables.message_names(), self.how.releases, brokers
        )
