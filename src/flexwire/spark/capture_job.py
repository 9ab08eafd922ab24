"""Write the tables of a capture with Spark: tasks survey it, decode its ranges and sum up the rows.

```
files looked at ─▶ in order, cut in pieces ─▶ survey of each piece ─▶ fold: each is proven, or
  by some tasks             one task              a task each             read again; one task
```
If there are few files, the task that plans the pieces examines them itself. One task surveys a
small capture from start to end. One task also surveys a capture whose pieces cannot be verified
(`flexwire.survey.fold`). If files must be merged, the connections are divided among tasks
(`flexwire.spark.share_job`).

```
capture files ─▶ survey ─▶ ranges ─▶ frames, messages/<Message>, records        one task a range
                   └─────────────────▶ connections, packets
small files of a table ─▶ joined                                                `compaction`
```
A task reads the bytes of its range, converts them to columns, and writes its part of each table
itself (`flexwire.tables`). Only range numbers and file names pass through Spark.

The driver merges the sums of all tasks, which takes about ten milliseconds for each task.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from flexwire.facts.answers import moment_notes
from flexwire.facts.units import human_bytes, plural
from flexwire.measures.analysis import PACKETS, AnalysisSums
from flexwire.measures.audit_rows import CONNECTIONS
from flexwire.spark.publishing.commit import MOST_TASKS, run_tasks
from flexwire.spark.publishing.compaction import compact, remove_parts
from flexwire.spark.publishing.manifest import check_listed, part_name, settle, write_there
from flexwire.spark.publishing.table_files import TableFiles, fetch_files
from flexwire.spark.share_job import survey_shares
from flexwire.spark.survey_entries import (
    KEPT,
    PLAN,
    SurveyPlan,
    entry_name,
    get_entry,
    keep_entry,
    put_entry,
    read_kept,
)
from flexwire.storage.local import compress, decompress
from flexwire.survey.fold import Fold
from flexwire.survey.piece_merger import OverlapError
from flexwire.survey.piece_survey import has_kernels, survey_piece
from flexwire.survey.pieces import COMPRESSED, cut_into_pieces
from flexwire.survey.ranges import FRAMES, RECORDS, decode_range_rows, read_origins
from flexwire.survey.request import look_at_files
from flexwire.survey.state import LateError, UnprovenError
from flexwire.survey.survey import (
    RANGE_BYTES,
    STATE,
    Survey,
    Surveyor,
    is_overlap_likely,
    look_at_readable_files,
    survey_after,
)
from flexwire.survey.surveyed_files import NO_MARKS, CaptureMarks, UnreadableFiles
from flexwire.tables import schema
from flexwire.tables.frames import TOPIC_NAMES, connection_rows, packet_rows, topic_name_rows
from flexwire.tables.inflation import InflationMeter, within_allowance
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from flexwire.facts.facts import Facts
    from flexwire.records.inflation import Inflation
    from flexwire.spark.publishing.manifest import CommittedTask
    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.spark.share_job import SharedSurvey
    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.survey.pieces import Piece
    from flexwire.survey.request import FileLook
    from flexwire.survey.survey import AnalysisRequest
    from flexwire.tables.records import Rows

    Write = Callable[[AnalysisRequest, Survey, dict[str, bytes], TaskOutput], None]


LEAST_BYTES: Final = 1 << 30
"""One task surveys a smaller capture in two seconds. Cutting such a capture would save no time."""

LOOKED_BY_TASK: Final = 1000
"""The number of files that one task examines, which takes about twenty seconds in a store."""
MOST_LOOKING: Final = 256
"""The largest number of tasks that examine files, because the driver lists the files for each."""


@dataclass(frozen=True, slots=True)
class SurveySummary:
    """The summary of a survey for the driver.

    ``packets`` counts all packets in the files. ``reason`` explains why the first file without
    usable packets has none, and ``source`` is its name. ``unreadable`` lists files without packets.
    ``went_on`` is the number of connections that continue from an earlier analysis. If no
    connection continues, ``begins_anew`` is the reason. ``held_bytes`` is the number of bytes in
    frames that continue in a later capture. If ``overlaps`` is true, nothing is surveyed yet,
    because files must be merged.
    """

    ranges: int
    packets: int
    span_us: int
    unreadable: UnreadableFiles
    reason: str | None = None
    source: str = ""
    marks: CaptureMarks = NO_MARKS
    went_on: int = 0
    held_bytes: int = 0
    begins_anew: str | None = None
    overlaps: bool = False


def survey_capture(
    spark: SparkSession,
    request: AnalysisRequest,
    task_output: TaskOutput,
    total: int,
    write: Write,
    shares: int = 1,
) -> CommittedTask[SurveySummary]:
    """Survey a capture of ``total`` bytes. If it fits in a range, the same task decodes it.

    If files must be merged, the connections are divided into at most ``shares`` parts.
    """
    is_whole = total <= request.range_bytes
    summary: CommittedTask[SurveySummary]
    look_tasks = _look_at_files(spark, request, task_output)
    if is_whole or total < LEAST_BYTES or not has_kernels():
        (summary,) = run_tasks(
            spark, 1, partial(_survey, request, look_tasks, is_whole, write), task_output
        )
        return summary
    pieces: CommittedTask[int]
    # A piece is half of a range, and the fold joins two pieces. Smaller pieces keep all processors
    # busy.
    size = max(-(-request.range_bytes // 2), -(-total // MOST_TASKS))
    (pieces,) = run_tasks(spark, 1, partial(_plan, request, look_tasks, size), task_output)
    run_tasks(spark, pieces.value, partial(_survey_piece, replace(request, files=())), task_output)
    fold = partial(_fold, request, look_tasks, pieces.value, shares > 1, write)
    (folded,) = run_tasks(spark, 1, fold, task_output)
    if not folded.value.overlaps:
        return folded
    shared = survey_shares(spark, request, shares, task_output)
    join = partial(_join, request, look_tasks, shared, write)
    (summary,) = run_tasks(spark, 1, join, task_output)
    return summary


def _look_at_files(spark: SparkSession, request: AnalysisRequest, task_output: TaskOutput) -> int:
    """Have tasks examine the files if there are many. Return the number of these tasks."""
    files = request.files
    size = max(LOOKED_BY_TASK, -(-len(files) // MOST_LOOKING))
    if len(files) <= size:
        return 0
    # Each task gets its own list. With one list for all, every task would read the whole list.
    starts = range(0, len(files), size)
    for number, start in enumerate(starts):
        put_entry(task_output.directory, entry_name("files", number), files[start : start + size])
    run_tasks(spark, len(starts), _look, task_output)
    return len(starts)


def _look(number: int, task_output: TaskOutput) -> None:
    put_entry(
        task_output.directory,
        entry_name("looks", number),
        look_at_files(get_entry(task_output.directory, entry_name("files", number))),
    )


def _read_looks(directory: OutputDirectory, look_tasks: int) -> list[FileLook] | None:
    """Return the tasks' results for all files, in order, or None if no task has examined them."""
    if not look_tasks:
        return None
    return [
        look
        for number in range(look_tasks)
        for look in get_entry(directory, entry_name("looks", number))
    ]


def _survey(
    request: AnalysisRequest,
    look_tasks: int,
    is_whole: bool,  # noqa: FBT001 - bound by partial, the only way to configure a task
    write: Write,
    _number: int,
    task_output: TaskOutput,
) -> SurveySummary:
    begin_task()
    states: dict[str, bytes] = {}
    keep = states.__setitem__ if is_whole else partial(keep_entry, task_output.directory)
    looks = _read_looks(task_output.directory, look_tasks)
    survey = survey_after(
        request, lambda asked, before: Surveyor(asked, keep, looks, before=before).run()
    )
    return _written(survey, request, states, write, task_output)


def _written(
    survey: Survey,
    request: AnalysisRequest,
    states: dict[str, bytes],
    write: Write,
    task_output: TaskOutput,
) -> SurveySummary:
    """Write the result of a survey, and the state for a later analysis."""
    if survey.ranges:
        write(request, survey, states, task_output)
        if survey.state is not None:
            write_there(task_output.directory, STATE, survey.state)
    return _summary_of(survey)


def _plan(
    request: AnalysisRequest, look_tasks: int, size: int, _number: int, task_output: TaskOutput
) -> int:
    """Cut the capture into pieces of about ``size`` bytes, and return how many there are.

    The number is 0 if files seem to overlap.
    """
    survey = Survey()
    looks = look_at_readable_files(request, survey, _read_looks(task_output.directory, look_tasks))
    files = None if looks is None else [look.source for look in looks]
    pieces = (
        [] if files is None or is_overlap_likely(request, files) else cut_into_pieces(files, size)
    )
    put_entry(task_output.directory, PLAN, SurveyPlan(looks, pieces, survey))
    for number, piece in enumerate(pieces):
        put_entry(task_output.directory, entry_name("piece", number), piece)
    return len(pieces)


def _survey_piece(request: AnalysisRequest, number: int, task_output: TaskOutput) -> None:
    begin_task()
    piece: Piece = get_entry(task_output.directory, entry_name("piece", number))
    goes_on = request.continuation is not None and request.continuation.before is not None
    summary = survey_piece(request, piece, is_first=number == 0 and not goes_on)
    put_entry(task_output.directory, entry_name("summary", number), summary)


def _fold(
    request: AnalysisRequest,
    look_tasks: int,
    pieces: int,
    may_divide: bool,  # noqa: FBT001 - bound by partial, the only way to configure a task
    write: Write,
    _number: int,
    task_output: TaskOutput,
) -> SurveySummary:
    """Fold the surveys of the pieces, unless the connections are to be divided among tasks."""
    begin_task()
    keep, directory = partial(keep_entry, task_output.directory), task_output.directory
    plan: SurveyPlan = get_entry(directory, PLAN)
    files = [look.source for look in plan.looks or ()]

    def merge(asked: AnalysisRequest, before: bytes | None) -> Survey:
        if may_divide:
            raise OverlapError
        return _in_turn(asked, directory, look_tasks, before, overlapping=True)

    def fold(asked: AnalysisRequest, before: bytes | None) -> Survey:
        if not plan.pieces:
            return merge(asked, before)
        summaries = (
            get_entry(directory, entry_name("summary", number)) for number in range(pieces)
        )
        known = replace(plan.survey, notes=list(plan.survey.notes))
        try:
            return Fold(asked, keep, files, known, before).run(plan.pieces, summaries)
        except LateError:
            raise
        except OverlapError:
            return merge(asked, before)
        except UnprovenError:
            return _in_turn(asked, directory, look_tasks, before)

    try:
        found = plan.survey if plan.looks is None else survey_after(request, fold)
    except OverlapError:
        return SurveySummary(0, 0, 0, UnreadableFiles(), overlaps=True)
    return _written(found, request, {}, write, task_output)


def _join(
    request: AnalysisRequest,
    look_tasks: int,
    shared: SharedSurvey,
    write: Write,
    _number: int,
    task_output: TaskOutput,
) -> SurveySummary:
    """Join the surveys of all shares of the connections."""
    begin_task()
    directory = task_output.directory

    def join(asked: AnalysisRequest, before: bytes | None) -> Survey:
        try:
            return shared.join(asked, directory, before)
        except LateError:
            raise
        except UnprovenError:
            return _in_turn(asked, directory, look_tasks, before, overlapping=True)

    return _written(survey_after(request, join), request, {}, write, task_output)


def _in_turn(
    request: AnalysisRequest,
    directory: OutputDirectory,
    look_tasks: int,
    before: bytes | None,
    *,
    overlapping: bool = False,
) -> Survey:
    """Survey the whole capture in this task."""
    looks, keep = _read_looks(directory, look_tasks), partial(keep_entry, directory)
    return Surveyor(request, keep, looks, overlapping=overlapping, before=before).run()


def _summary_of(survey: Survey) -> SurveySummary:
    packets = sum(capture.packets for capture in survey.notes)
    unreadable = UnreadableFiles.of(survey.unreadable)
    summary = SurveySummary(
        survey.ranges,
        packets,
        survey.span_us,
        unreadable,
        marks=CaptureMarks.of(survey.marks),
        went_on=sum(connection.began_in is not None for connection in survey.connections),
        held_bytes=survey.held_bytes,
        begins_anew=survey.begins_anew,
    )
    if not packets:
        # No file contains packets, so this is the first file by name.
        for capture in sorted(survey.notes, key=lambda capture: capture.file):
            for reason in capture.unused().packets:
                return replace(summary, reason=reason, source=capture.file)
    return summary


# The sums of tasks: those of ranges, and those of the survey.
_SUMS: Final = "_sums/0"


def keep_sums(directory: OutputDirectory, number: int, sums: AnalysisSums) -> None:
    """Store the sums of a task. Later jobs use larger numbers for their tasks."""
    data = pickle.dumps(sums, pickle.HIGHEST_PROTOCOL)
    write_there(directory, f"{_SUMS}/{number:06d}", compress(data))


def sums_number(number: int) -> int:
    """Return the number under which the sums for a task's files are stored.

    The number of the survey's files is -1.
    """
    return number + 1


def merged_sums(
    directory: OutputDirectory, span_us: int, count: int, *, first: int = 0
) -> AnalysisSums:
    """Merge the sums of ``count`` tasks, in the order of their numbers, and remove them.

    Sums with a number below ``first`` belong to an earlier job, and are kept. Raises `StorageError`
    if fewer than ``count`` sums are listed, because the result would be incorrect without all
    parts.
    """
    files = sorted((entry.name, entry.size) for entry in directory.entries(f"{_SUMS}/"))
    files = [file for file in files if file[0] >= f"{_SUMS}/{first:06d}"]
    check_listed(directory, _SUMS, len(files), count)
    sums = AnalysisSums(span_us, spills=True)
    for data in fetch_files(directory, files):
        # The tasks of this analysis wrote these bytes, in the analysis's own directory.
        sums.merge(pickle.loads(decompress(data)))  # noqa: S301 - we wrote these bytes ourselves
    directory.remove(name for name, _ in files)
    return sums


# The approximate ratio of the size of a compressed file's content to the size of the file.
_INFLATION: Final = 10

# The number of bytes below which reading the files in one task takes no extra time.
_NOTED_BYTES: Final = LEAST_BYTES


def weight(file: InputFile) -> int:
    """Return approximately how many bytes a file contains after decompression."""
    return file.size * (_INFLATION if file.name.endswith(COMPRESSED) else 1)


def gzip_note(files: Sequence[InputFile]) -> tuple[str, ...]:
    """Return a note about large gzipped files, which cannot be split among tasks."""
    large = [
        file for file in files if file.name.endswith(COMPRESSED) and weight(file) >= _NOTED_BYTES
    ]
    if not large:
        return ()
    largest = max(large, key=lambda file: file.size)
    others = f" and {len(large) - 1:,} more" if len(large) > 1 else ""
    text = (
        f"{largest.name}{others}: one task reads each file, because a gzipped file can only be "
        "read from its start."
    )
    return (f"{text} Many tasks can read a large file if you unpack it.",)


def continuation_notes(summary: SurveySummary) -> tuple[str, ...]:
    """Return notes on connections that continue from the last analysis, or why none continues."""
    notes = []
    if summary.begins_anew is not None:
        notes.append(f"{summary.begins_anew[:1].upper()}{summary.begins_anew[1:]}.")
    elif summary.went_on:
        who = plural(summary.went_on, "connection continues", "connections continue")
        notes.append(f"{who} from the previous analysis.")
    if summary.held_bytes:
        held = human_bytes(summary.held_bytes)
        notes.append(f"{held} of unfinished frames are left for the next analysis.")
    return tuple(notes)


def answer_notes(facts: Facts) -> tuple[str, ...]:
    """Return notes on omissions in the audit, and on dated, failed and shortened answers."""
    failed = (f"Not answered: {question.reason}" for question in facts.unanswered)
    cut = (
        f"The {answer.name} answer has {answer.rows:,} rows; its table and CSV file contain the "
        f"first {answer.rows - answer.left_out:,}."
        for answer in facts.answers
        if answer.left_out
    )
    left_out = facts.audit.left_out.sentence
    return (*((left_out,) if left_out else ()), *moment_notes(facts.answers), *failed, *cut)


LEAST_RANGE_BYTES: Final = 64 << 20
"""The smallest range in bytes. A smaller range decodes faster than a task starts."""
MOST_RANGE_BYTES: Final = 4 << 30
"""The largest range in bytes. Decoding such a range takes a minute, and a failed task must start
over.
"""
MOST_CLUSTER_RANGE_BYTES: Final = 512 << 20
"""The largest range on a cluster, in bytes. A cluster can lose and add executors.

The ranges of a lost executor are decoded again, and the number of executors can change.
"""

# The survey writes its files before any range does.
_OF_SURVEY: Final = -1
# The tables that every analysis includes, whatever its input.
ALWAYS = {FRAMES: schema.FRAMES_TABLE, RECORDS: schema.RECORDS}


def range_bytes_for(total: int, tasks_at_once: int, most: int = MOST_RANGE_BYTES) -> int:
    """Return how many bytes of a capture of ``total`` bytes one task decodes.

    The tasks run in two rounds if this keeps files large, and otherwise in one round. The result is
    at most ``most``, unless this would require too many tasks.
    """
    processors = max(1, tasks_at_once)
    target = max(total // (2 * processors), min(RANGE_BYTES, total // processors))
    return max(LEAST_RANGE_BYTES, min(most, target), -(-total // MOST_TASKS))


def write_tables(
    spark: SparkSession,
    request: AnalysisRequest,
    task_output: TaskOutput,
    total: int,
    shares: int = 1,
) -> tuple[SurveySummary, AnalysisSums]:
    """Write the tables of a capture of ``total`` bytes to ``task_output``, and sum up their rows.

    No tables are written if files are unreadable and must not be skipped. See `survey_capture`.
    """
    directory = task_output.directory
    write_survey = partial(_write_survey, min(total, request.range_bytes))
    survey = survey_capture(spark, request, task_output, total, write_survey, shares)
    summary = survey.value
    committed: list[CommittedTask[Any]] = [survey]
    if summary.ranges and total > request.range_bytes:
        task_request = replace(request, files=())
        work = partial(_decode, task_request, request.digest, summary.span_us, summary.ranges > 1)
        committed += run_tasks(spark, summary.ranges, work, task_output)
    written_files = compact(spark, committed, task_output)
    # An abandoned survey has written nothing.
    sums_written = len(committed) if survey.files else len(committed) - 1
    sums = merged_sums(directory, summary.span_us, sums_written)
    directory.remove(entry.name for entry in directory.entries(f"{KEPT}/"))
    remove_parts(directory)
    settle(directory, task_output.count_files(written_files))
    return summary, sums


def _write_survey(
    captured: int,
    request: AnalysisRequest,
    survey: Survey,
    states: dict[str, bytes],
    task_output: TaskOutput,
) -> None:
    def write(inflation: Inflation) -> None:
        task_request, meter = (
            replace(request, inflation=inflation),
            InflationMeter(inflation, captured),
        )
        with SummedFiles(task_output, request.digest, _OF_SURVEY, survey.span_us) as writers:
            writers.write(CONNECTIONS, connection_rows(survey.connections))
            writers.write(PACKETS, packet_rows(survey.notes))
            if request.continuation is not None and survey.topic_names:
                writers.write(TOPIC_NAMES, topic_name_rows(survey.topic_names))
            if states:
                for number in range(survey.ranges):
                    writers.write_range(task_request, number, states.__getitem__, meter)

    within_allowance(request.inflation, write)


def _decode(
    request: AnalysisRequest,
    digest: str,
    span_us: int,
    is_part: bool,  # noqa: FBT001 - bound by partial, the only way to configure a task
    number: int,
    task_output: TaskOutput,
) -> None:
    begin_task()

    def write(inflation: Inflation) -> None:
        task_request, meter = (
            replace(request, inflation=inflation),
            InflationMeter(inflation, request.range_bytes),
        )
        with SummedFiles(task_output, digest, number, span_us, is_part=is_part) as writers:
            writers.write_range(
                task_request, number, partial(read_kept, task_output.directory), meter
            )

    within_allowance(request.inflation, write)


class SummedFiles(TableFiles):
    """The files that a task writes, and the sums of their rows."""

    def __init__(
        self,
        task_output: TaskOutput,
        digest: str,
        number: int,
        span_us: int,
        *,
        is_part: bool = False,
    ) -> None:
        super().__init__(task_output, part_name(digest, max(0, number), 0), is_part=is_part)
        self._place = task_output.directory
        self._number = number
        self.sums = AnalysisSums(span_us)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if error[0] is None:
            keep_sums(self._place, sums_number(self._number), self.sums)

    def write(self, table: str, rows: Rows) -> None:
        """Write rows of a table."""
        super().write(table, rows)
        self.sums.add(table, rows)

    def write_range(
        self,
        request: AnalysisRequest,
        number: int,
        read_kept: Callable[[str], bytes],
        meter: InflationMeter,
    ) -> None:
        """Write all rows of a range. The meter counts the decompressed bytes of record batches."""
        if request.continuation is not None:
            self.origins = read_origins(number, read_kept)
        if number == 0:
            for table, columns in ALWAYS.items():
                self.begin(table, columns)
        for table, rows in decode_range_rows(request, number, read_kept):
            self.write(table, rows)
            if table == RECORDS:
                meter.add(rows)
                meter.check()
