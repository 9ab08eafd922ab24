"""Implements `flexwire analyze`: reads captures and logs, and writes tables and a report, on Spark.

```
capture files ─▶ survey ─▶ ranges ─▶ tables ─▶ facts ─▶ report
                                        └─▶ answers ─┘
```
Each task handles one range (`flexwire.spark.capture_job`): it writes its part of each table, and
sums up the figures for the report. Answers are computed from the tables. Everything is written
below a staging directory and published at the end.
"""

from __future__ import annotations

import json
import time
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from flexwire import answers as answer_room
from flexwire.answers.asking.internal_logs import check_moment
from flexwire.answers.asking.labels import to_labels
from flexwire.answers.asking.results import (
    AnswerResult,
    are_named,
    find_unanswerable,
    with_internal,
)
from flexwire.answers.state.log import to_as_of
from flexwire.arguments import (
    DEFAULT_MEMORY,
    DEFAULT_ZONE,
    PARQUET,
    to_flag,
    to_list,
    to_text,
)
from flexwire.errors import ArgumentError, CaptureError, FlexwireError, short
from flexwire.extras import require
from flexwire.facts.answers import UnansweredQuestion
from flexwire.facts.captures import part_columns
from flexwire.inputs import Inputs, input_sources
from flexwire.logs.request_log import Zone
from flexwire.measures.analysis import AnalysisSums, facts_of
from flexwire.records import MAX_INFLATED
from flexwire.records.inflation import MAX_RATIO, Inflation
from flexwire.report import render
from flexwire.report.audit_files import audit_csv, audit_json
from flexwire.report.limits import bounded
from flexwire.spark.answers import audit_rows, gather_audit
from flexwire.spark.answers.outputs import ask_or_explain, rows_asked, tables_of, write_answers
from flexwire.spark.archive import with_archive
from flexwire.spark.capture_job import (
    LEAST_RANGE_BYTES,
    MOST_CLUSTER_RANGE_BYTES,
    MOST_RANGE_BYTES,
    answer_notes,
    continuation_notes,
    gzip_note,
    range_bytes_for,
    weight,
    write_tables,
)
from flexwire.spark.delta.request_logs import GivenRequestLogs
from flexwire.spark.external_tables import check_session, register_tables, registration_note
from flexwire.spark.failures import explain_failures
from flexwire.spark.inputs import (
    begin_output,
    output_directory,
    output_notes,
    to_key_logs,
    with_tls,
)
from flexwire.spark.log_job import plan_logs, write_log_tables
from flexwire.spark.options import (
    AnalysisOptions,
    AnswerOptions,
    ReadingOptions,
    ReportOptions,
    to_answers,
    to_asked,
    to_flags,
    to_range_bytes,
    to_releases,
)
from flexwire.spark.progress import StageClock, silent, watch_tasks
from flexwire.spark.publishing.commit import MOST_TASKS
from flexwire.spark.publishing.manifest import TABLES
from flexwire.spark.publishing.output import (
    AUDIT_CSV,
    AUDIT_JSON,
    FACTS,
    REPORT,
    to_format,
)
from flexwire.spark.publishing.table_files import write_one_file
from flexwire.spark.rehearsal_job import rehearsal_facts
from flexwire.spark.request_log_job import (
    check_request_logs,
    plan_request_logs,
    undivided_note,
    write_request_log_tables,
)
from flexwire.spark.session import SessionStart, is_local, session_for_job, tasks_at_once
from flexwire.spark.settings import (
    SMALL_CAPTURE_BYTES,
    SMALL_JAVA,
    are_small,
    set_for_analysis,
    set_for_answers,
)
from flexwire.spark.share_job import count_merging
from flexwire.spark.tables import Tables
from flexwire.spark.tls_job import count_shares, open_captures
from flexwire.survey.request import read_marks
from flexwire.survey.surveyed_files import CaptureMarks, UnreadableFiles
from flexwire.tables.schema import TABLES as TRAFFIC_TABLES
from flexwire.tables.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.answers.asking.answer import Answer
    from flexwire.answers.state.log import Moment
    from flexwire.capture.tls import OpenedCaptures
    from flexwire.facts.audit import Audit
    from flexwire.facts.facts import Facts, LogFacts, RequestLogFacts
    from flexwire.logs.request_log.lines import RequestLogFile
    from flexwire.spark.capture_job import SurveySummary
    from flexwire.spark.progress import Progress
    from flexwire.spark.publishing.catalogs import IcebergCatalog
    from flexwire.spark.publishing.output import Staging
    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.tables.output import Output

TITLE, TITLE_OF_LOGS = "Kafka traffic", "Kafka logs"
_NO_OBJECTS = "by_objects no longer has an effect; leave it out"
# The audit's table is a single file, which the driver writes.
_AUDIT_DIRECTORY = f"{TABLES}/audit"
# The tables that remain empty in an analysis without captures.
_TRAFFIC = {
    table.place: schema_of(table.columns)
    for table in TRAFFIC_TABLES
    if table.place in {"frames", "connections", "records", "packets"}
}


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of an analysis: its files, its facts, and the seconds of each stage.

    ``output`` reads the result, on this machine or in a store. If the output is on this machine,
    its paths are available too. ``is_new`` is false if the tables already contained the input, so
    that nothing had to be done. ``notes`` are messages for the user about the run.
    """

    output: Output
    facts: Facts
    seconds: dict[str, float] = field(compare=False)
    is_new: bool = True
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> Tables:
        """The path of the tables; raises `FlexwireError` if they are in a store."""
        return Tables(self._path("tables"))

    @property
    def report(self) -> Path:
        """The path of the report; raises `FlexwireError` if it is in a store."""
        return self._path(REPORT)

    @property
    def facts_file(self) -> Path:
        """The path of the facts; raises `FlexwireError` if they are in a store."""
        return self._path(FACTS)

    def _path(self, name: str) -> Path:
        if self.output.place.path is None:
            raise FlexwireError(
                f"{self.output.where(name)} is in an object store and has no local path; "
                "use `output` instead"
            )
        return Path(self.output.where(name))


def analyze(  # noqa: PLR0913 - each is an option of the command, and is passed by name
    paths: Iterable[str | Path],
    out: str | Path,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    progress: Progress = silent,
    memory: str = DEFAULT_MEMORY,
    worker_memory: str | None = None,
    show_credentials: bool = False,
    title: str = TITLE,
    ports: Iterable[int] = (),
    brokers: Iterable[str] = (),
    releases: Iterable[str] = (),
    captured_release: str | None = None,
    record_bytes: bool = False,
    by_objects: bool = False,
    skip_unreadable: bool = False,
    format: str = PARQUET,  # noqa: A002 - the option has this name
    append: bool = False,
    iceberg_catalog: str | IcebergCatalog | None = None,
    register: str | None = None,
    answers: str | Iterable[str | Answer] | None = None,
    labels: str | Path | None = None,
    timezone: str = DEFAULT_ZONE,
    keys: Iterable[str | Path] = (),
    as_of: Moment | None = None,
    max_inflated: int = MAX_INFLATED,
    max_ratio: int = MAX_RATIO,
    range_bytes: int | None = None,
) -> Analysis:
    """Decode captures to ``OUT/tables``, and measure them: ``report.html`` and ``facts.json``.

    ``paths`` are files, directories and patterns; ``out`` is a directory or a URL. Logs become
    tables named "log_…"; request logs (local times in ``timezone``) fill capture tables. Other
    files cause errors, unless ``skip_unreadable`` is true. ``show_credentials`` shows credentials.
    An earlier analysis in ``out`` is replaced, or extended with ``append``. ``iceberg_catalog`` is
    the catalog of Iceberg tables. ``register`` ("spark_catalog.kafka") adds other tables to Spark's
    catalog. The session is ``spark``, or a new session on ``master`` (default: that of
    `spark-submit`) with ``memory``, and ``worker_memory`` per worker. All machines must see the
    same paths. Only connections with an endpoint in ``ports`` or ``brokers`` ("10.0.0.1:9092") are
    Kafka. Without these, a connection is Kafka if its content decodes as Kafka. The audit is for
    ``releases``, by default every major release since the brokers' ``captured_release``.
    ``record_bytes`` keeps records in messages. ``keys`` decrypt TLS. ``by_objects`` has no effect.
    One task decodes ``range_bytes`` of a capture. ``answers`` are "all", "none", names in
    `flexwire.answers.ANSWERS`, or your own (default: those about logs). ``labels`` name teams.
    ``as_of`` is a time, or offsets ({"__consumer_offsets-3": 17}), instead of the end of logs.
    docs/limits.md describes ``max_inflated`` and ``max_ratio``. Raises `CaptureError` (file or
    address), `StorageError`, `JavaError`, `AnalysisError` (Spark), `FlexwireError` (``out``).
    """
    _warn_of_objects(by_objects)
    flags = to_flags(show_credentials, record_bytes, skip_unreadable)
    asked = to_asked(flags, ports, brokers, captured_release, Inflation(max_inflated, max_ratio))
    reading = ReadingOptions(Zone(timezone), to_key_logs(keys), to_range_bytes(range_bytes))
    report = ReportOptions(to_text(title, "title"), to_releases(releases), to_labels(labels))
    asks = AnswerOptions(to_answers(answers, labels), are_named(answers), to_as_of(as_of))
    start = _start(spark, master, memory, worker_memory)
    to = to_format(format, append, iceberg_catalog, register)
    options = AnalysisOptions(asked, reading, report, asks, to)
    return _run(paths, out, spark, progress, start, options)


def _warn_of_objects(by_objects: object) -> None:
    if to_flag(by_objects, "by_objects"):
        warnings.warn(_NO_OBJECTS, DeprecationWarning, stacklevel=3)


def _start(
    spark: SparkSession | None, master: str | None, memory: str, worker_memory: str | None
) -> SessionStart:
    if spark is not None and master is not None:
        raise ArgumentError(
            f"the given Spark session already has a master, so leave out {short(master)}"
        )
    where = None if master is None else to_text(master, "master")
    return SessionStart(where, memory, worker_memory)


def _run(
    paths: Iterable[str | Path],
    out: str | Path,
    spark: SparkSession | None,
    progress: Progress,
    start: SessionStart,
    options: AnalysisOptions,
) -> Analysis:
    require("an analysis", "spark", "jinja2", "vl_convert")  # the report, which is written last
    to, (files, logs, request_logs) = output_directory(out), _inputs(paths)
    check_moment(options.answering.as_of, logs)
    files_read = [*files, *(log.source for log in request_logs), *logs]
    is_small = sum(map(weight, files_read)) < SMALL_CAPTURE_BYTES
    is_ours = spark is None and SparkSession.getActiveSession() is None
    clock = StageClock()
    explain = partial(
        explain_failures, lambda: clock.current, *(start.memories() if is_ours else (None, None))
    )
    given = GivenRequestLogs(request_logs, options.reading.zone) if request_logs else None
    with begin_output(to, files, options.output, logs, given) as staging:
        if staging.known_run:
            facts = staging.known_facts()
            notes = (*staging.log_notes, *staging.notes)
            return Analysis(staging.published, facts, clock.seconds, is_new=False, notes=notes)
        left_out = staging.known_files | staging.growing_files
        files = [file for file in files if file.name not in left_out]
        files_read = [file for file in files_read if file.name not in left_out]
        with explain(), clock.stage("Starting Spark"):
            running = spark or SparkSession.getActiveSession()
            running = running or start.session(with_archive(SMALL_JAVA if is_small else {}))
        with (
            session_for_job(running, is_ours=is_ours) as own,
            explain(),
            set_for_analysis(own, is_small=is_small),
            _AnalysisJob(own, staging, progress, clock, options).opened(to, files) as opening,
        ):
            job, captures, opened = opening
            job.check_registration(is_ours=is_ours)
            facts, notes = job.of_traffic(files, captures, opened, request_logs)
            if logs:
                is_alone = not (files or request_logs)
                title = (
                    facts.title if not is_alone or options.report.title != TITLE else TITLE_OF_LOGS
                )
                facts = replace(facts, logs=job.write_logs(logs), title=title)
            facts = job.answer(facts, logs, start.memory if is_ours else None)
            notes += (*answer_notes(facts), *job.publish_and_register(facts, files_read, running))
        if options.output.register is None:
            job.publish(facts, files_read)
    return Analysis(staging.published, facts, clock.seconds, notes=notes + output_notes(staging))


def _inputs(paths: Iterable[str | Path]) -> Inputs:
    """Return the captures, the files of logs, and the request logs of these paths."""
    inputs = input_sources(to_list(paths, "paths", "a list of paths"))
    check_request_logs(inputs.request_logs)
    return inputs


def _write_report(staging: Staging, facts: Facts, files: list[InputFile]) -> None:
    texts = {
        FACTS: json.dumps(bounded(facts).to_json(), indent=1) + "\n",
        REPORT: render(facts),
        AUDIT_CSV: audit_csv(facts.audit, facts.sampled),
        AUDIT_JSON: audit_json(facts.audit, facts.sampled, facts.added_tags),
    }
    for name, text in texts.items():
        staging.files.write(name, text.encode())
    staging.mark([file.name for file in files])


@dataclass(frozen=True, slots=True)
class _AnalysisJob:
    """One analysis: its stages in order. Each stage reads the output of the previous stage."""

    spark: SparkSession
    staging: Staging
    progress: Progress
    clock: StageClock
    options: AnalysisOptions

    def check_registration(self, *, is_ours: bool) -> None:
        """Raise `FlexwireError` if the tables could not be registered at the end."""
        if (place := self.options.output.register) is not None:
            check_session(self.spark, place, self.options.output.format, is_ours=is_ours)

    @contextmanager
    def opened(
        self, out: OutputDirectory, files: list[InputFile]
    ) -> Iterator[tuple[_AnalysisJob, list[InputFile], OpenedCaptures | None]]:
        """Provide the job, the captures to read, and the opened connections until the block ends.

        With key logs, the captures to read are the decrypted copies.
        """
        keys = self.options.reading.keys
        if not keys:
            yield self, files, None
            return
        total = sum(map(weight, files))
        shares = count_shares(total, self._tasks_at_once(total))
        with ExitStack() as until:
            with self._stage("Opening TLS connections"):
                captures, opened = until.enter_context(
                    open_captures(self.spark, out, files, keys, shares)
                )
            yield self, captures, opened

    def publish(self, facts: Facts, files: list[InputFile]) -> None:
        """Write the report and the files next to it, and publish everything."""
        with self.clock.stage("Writing the report"):
            _write_report(self.staging, facts, files)
            self.staging.publish()

    def publish_and_register(
        self, facts: Facts, files: list[InputFile], caller: SparkSession
    ) -> tuple[str, ...]:
        """If tables are to be registered, publish everything while Spark still runs; return notes.

        The session of the ``caller`` registers the tables, because this session may have cached a
        list that contains files that no longer exist.
        """
        if (place := self.options.output.register) is None:
            return ()
        self.publish(facts, files)
        with self.clock.stage("Registering tables"):
            names = register_tables(caller, self.staging.out.url, str(place))
        return (registration_note(caller, place, names),)

    def write_tables(
        self, files: list[InputFile]
    ) -> tuple[AnalysisSums, UnreadableFiles, CaptureMarks, tuple[str, ...]]:
        """Write all tables except the audit's; return the sums of rows, and the skipped files.

        The result also includes the marks in the files, and notes for the user on connections that
        continue.
        """
        if not files:
            for table, columns in _TRAFFIC.items():
                self._write_table(pa.RecordBatch.from_pylist([], columns), f"{TABLES}/{table}")
            return AnalysisSums(0), UnreadableFiles(), CaptureMarks(), ()
        summary, sums = self._write(files)
        return sums, summary.unreadable, summary.marks, continuation_notes(summary)

    def _write(self, files: list[InputFile]) -> tuple[SurveySummary, AnalysisSums]:
        total = sum(map(weight, files))
        at_once = self._tasks_at_once(total)
        size = self._range_bytes(total, at_once)
        # Connections that were decrypted with key logs are not continued, because decrypting a
        # connection requires its first bytes.
        continuation = None if self.options.reading.keys else self.staging.continuation
        request = replace(
            self.options.asked, files=tuple(files), range_bytes=size, continuation=continuation
        )
        with self._stage("Decoding captures"):
            summary, sums = write_tables(
                self.spark,
                request,
                self.staging.task_output,
                total,
                count_merging(files, count_shares(total, at_once)),
            )
        summary.unreadable.check(len(files), skip=self.options.asked.skip_unreadable)
        if not summary.packets and summary.reason is not None:
            raise CaptureError(summary.reason, source=summary.source)
        return summary, sums

    def _range_bytes(self, total: int, at_once: int) -> int:
        if (given := self.options.reading.range_bytes) is not None:
            return max(given, -(-total // MOST_TASKS))
        most = MOST_RANGE_BYTES if is_local(self.spark) else MOST_CLUSTER_RANGE_BYTES
        return range_bytes_for(total, at_once, most)

    def _tasks_at_once(self, total: int) -> int:
        # On Spark Connect and on a cluster, this number can only be found by running a job. For
        # small inputs, the number makes no difference.
        return 1 if total <= 2 * LEAST_RANGE_BYTES else tasks_at_once(self.spark)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        with self.clock.stage(name), watch_tasks(self.spark, self.progress, name):
            yield

    def measure(self, sums: AnalysisSums) -> Facts:
        """Run the audit, and combine all facts."""
        brokers = (self.options.asked.release,) if self.options.asked.release else ()
        made_at_us = time.time_ns() // 1000
        with self._stage("Measuring"):
            title, releases, labels = self.options.report
            audit = gather_audit(sums.audit, releases, brokers, labels=labels)
            parts = sums.parts(self.options.asked.brokers)
            facts = facts_of(parts, audit, title=title, made_at_us=made_at_us)
        self._write_audit(facts.audit)
        return facts

    def write_logs(self, files: list[InputFile]) -> LogFacts:
        """Write the log tables next to the existing traffic tables."""
        with self._stage("Reading logs"):
            total = sum(file.size for file in files)
            plan = plan_logs(files, self._tasks_at_once(total), self.staging.next_offsets)
            self.staging.read_until.update(
                {partition: log.next_offset for partition, log in plan.growth.items()}
            )
            return write_log_tables(
                self.spark, plan, self.staging.task_output, self.options.asked.inflation
            )

    def of_captures(self, files: list[InputFile]) -> tuple[Facts, tuple[str, ...], CaptureMarks]:
        """Write the capture tables and measure them.

        Return the facts, notes for the user, and the marks in the files.
        """
        sums, unreadable, marks, continued = self.write_tables(files)
        notes = (*continued, *gzip_note(files), *marks.notes())
        return marks.add_to(unreadable.add_to(self.measure(sums))), notes, marks

    def of_traffic(
        self,
        files: list[InputFile],
        captures: list[InputFile],
        opened: OpenedCaptures | None,
        request_logs: list[RequestLogFile],
    ) -> tuple[Facts, tuple[str, ...]]:
        """Write the tables of request logs or captures; return the facts, and notes for the user.

        The ``captures`` are the ``files``, or their decrypted copies.
        """
        if read_logs := self.staging.of_logs(request_logs, self.options.reading.zone):
            return self.of_request_logs(read_logs)
        facts, notes, marks = self.of_captures(captures)
        if opened is not None:
            # An analysis that reads only new logs does not change the facts about captures.
            marks = CaptureMarks.of(read_marks(files))
            facts = marks.add_to(with_tls(facts, opened, files))
            notes += (*marks.notes(), *opened.counts.lines())
        facts, rehearsed_notes = self.rehearse(facts, files, marks.rehearsed)
        return facts, notes + rehearsed_notes

    def rehearse(
        self, facts: Facts, files: list[InputFile], rehearsed: Iterable[tuple[str, str]]
    ) -> tuple[Facts, tuple[str, ...]]:
        """Add the actions of any taps that rehearsed a release; return facts and notes."""
        release_of = dict(rehearsed)
        captures = [file for file in files if file.name in release_of]
        if not captures:
            return facts, ()
        with self._stage("Reading rehearsals"), set_for_answers(self.spark, is_small=True):
            rehearsal = rehearsal_facts(
                self.spark,
                captures,
                tuple(sorted(set(release_of.values()))),
                lambda: tables_of(self.spark, self.staging.staged).frames,
                self.staging.task_output,
            )
        return replace(facts, rehearsal=rehearsal), (rehearsal.sentence,)

    def of_request_logs(self, files: list[RequestLogFile]) -> tuple[Facts, tuple[str, ...]]:
        """Return the facts and notes of the traffic tables that come from request logs."""
        logs, sums, notes = self._write_request_logs(files)
        return replace(self.measure(sums), request_logs=logs), (*undivided_note(files), *notes)

    def _write_request_logs(
        self, files: list[RequestLogFile]
    ) -> tuple[RequestLogFacts, AnalysisSums, tuple[str, ...]]:
        with self._stage("Reading request logs"):
            zone = self.options.reading.zone
            total = sum(file.weight for file in files)
            plan = plan_request_logs(files, self._tasks_at_once(total), zone)
            shows = self.options.asked.show_credentials
            return write_request_log_tables(
                self.spark,
                plan,
                self.staging.task_output,
                zone,
                show_credentials=shows,
                growth=self.staging.growth,
            )

    def _write_audit(self, audit: Audit) -> None:
        self._write_table(audit_rows(audit), _AUDIT_DIRECTORY)

    def _write_table(self, rows: pa.RecordBatch, directory: str) -> None:
        """Write a table that consists of one file."""
        name = f"{directory.rpartition('/')[2]}.parquet"
        constants = self.staging.task_output.constants
        write_one_file(self.staging.files, f"{directory}/{name}", rows.schema, [rows], constants)

    def answer(self, facts: Facts, logs: list[InputFile], memory: str | None) -> Facts:
        """Compute the answers from the tables and write them; return the facts with the results."""
        answers = self.options.answering.asked
        if answers is None:
            answers = (
                (*answer_room.LOG_ANSWERS, *answer_room.STATE_ANSWERS)
                if facts.logs is not None
                else ()
            )
        lacking = find_unanswerable(answers, logs, are_named=self.options.answering.are_named)
        answers = tuple(answer for answer in answers if answer.name not in lacking)
        unasked = tuple(question for question in lacking.values() if question is not None)
        if not answers:
            return replace(facts, unanswered=unasked)
        staged = self.staging.staged
        is_small = are_small(staged)
        with self._stage("Answering"), set_for_answers(self.spark, is_small=is_small):
            base_rows = rows_asked(self.spark, staged, is_small=is_small)
            with with_internal(
                base_rows.tables, self.spark, logs, self.options.answering.as_of
            ) as tables:
                asked = base_rows.with_internal(tables).ask
                results = [ask_or_explain(answer, asked, memory) for answer in answers]
        answered = [result for result in results if isinstance(result, AnswerResult)]
        part = part_columns(facts.sampled)
        write_answers(
            self.staging.files, answered, grows=self.options.output.format != PARQUET, part=part
        )
        return replace(
            facts,
            answers=tuple(result.facts(self.options.answering.as_of.text) for result in answered),
            unanswered=(
                *(result for result in results if isinstance(result, UnansweredQuestion)),
                *unasked,
            ),
        )
