"""Read logs for an analysis, and write tables of their batches, record sizes, keys and samples.

```
segments ─▶ plan ─▶ pieces, some a task ─▶ log_batches, log_record_sizes, log_rewrites, log_keys
                                └─▶ runs of keys ─▶ parts of hashes, some a task ─▶ log_keys
```
A task reads its pieces of the logs once, and keeps only necessary data in memory. Keys that do not
fit in memory are written to sorted runs next to the output, until other tasks have merged them. The
task that read the batches of a sample also writes the sample in other batch sizes and codecs
(`flexwire.tables.log_samples`).
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.compute as pc

from flexwire.errors import CaptureError
from flexwire.facts.facts import LogFacts
from flexwire.logs import LogQuery
from flexwire.logs.discovery import logs_among
from flexwire.logs.follower import resume_log
from flexwire.logs.pieces import (
    Transactions,
    pieces_of,
    tasks_of,
    transactions_if_sound,
    walked_segments,
)
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.spark.publishing.commit import MOST_TASKS, run_tasks
from flexwire.spark.publishing.compaction import compact, remove_parts
from flexwire.spark.publishing.manifest import TABLES, check_listed, part_name, settle, write_there
from flexwire.spark.publishing.table_files import TableFiles
from flexwire.storage.filesystems import shown
from flexwire.storage.local import compress, decompress
from flexwire.survey.survey import AnalysisRequest
from flexwire.tables.inflation import beyond, within_allowance
from flexwire.tables.log_rows import (
    MOST_HELD,
    KeyWork,
    LogTableRows,
    LogWork,
    key_row,
    superseded_between,
)
from flexwire.tables.log_samples import SampleWindow
from flexwire.tables.log_schema import BATCHES, KEYS, LOG_SCHEMAS
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from flexwire.logs import LogPiece
    from flexwire.logs.files import Partition
    from flexwire.logs.follower import LogResumption
    from flexwire.logs.replicas import Replica
    from flexwire.spark.publishing.manifest import CommittedTask
    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory


LEAST_SAMPLE: Final = 256 << 10
"""The smallest sample of a topic, in decompressed bytes, if the topic is large enough."""
MOST_SAMPLE: Final = 16 << 20
"""The largest sample of a topic, in decompressed bytes."""
MOST_SAMPLED: Final = 256
"""The largest number of topics to sample. The largest topics are chosen."""
# All samples together contain at most this number of bytes or this fraction of the logs, whichever
# is larger.
_SAMPLED, _SAMPLED_PART = 8 << 20, 512
_WINDOW: Final = 2 << 20
# The number of bytes that can be read in the time that it takes to open a file.
_OPENING: Final = 1 << 20
_LEAST_TASK, _MOST_TASK = 64 << 20, 1 << 30
# Most of the time for finding the end of a log is spent waiting for the store.
_AT_ONCE: Final = 16


Walk = tuple[tuple[int, "Replica"], ...]


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The plan for the tasks of a log analysis.

    Attributes:
        partitions: every partition, by its number in the works.
        segments: the segments that are read.
        left_out: partition directories that are not read, because another directory contains the
            same partition.
        growth: how each partition continues the data in the tables, if these grow.
        walks: the logs that are read, each with the number of its partition. For each group of
            logs, one task finds the transactions.
    """

    works: tuple[LogWork, ...]
    partitions: tuple[Partition, ...]
    segments: tuple[InputFile, ...]
    left_out: tuple[str, ...]
    digest: str
    growth: dict[Partition, LogResumption] = field(default_factory=dict)
    walks: tuple[Walk, ...] = ()


def plan_logs(
    files: Sequence[InputFile],
    tasks_at_once: int,
    known_offsets: Mapping[Partition, int] | None = None,
) -> LogPlan:
    """Plan how logs are read. ``files`` are their segments and indexes.

    If several directories contain the same partition, the directory with which Kafka would continue
    is read (`flexwire.logs.discovery`). If tables grow, ``known_offsets`` contains the offsets at
    which reading continues, and each log is read up to its last whole batch. Raises `CaptureError`
    if there is no log among ``files``.
    """
    everything = logs_among(files, LogQuery(replicas="all"))
    logs = logs_among(files, LogQuery())
    if not logs:
        reason = (
            "the files are named like log segments, but a broker would not read any of these files"
        )
        raise CaptureError(reason, source=files[0].name)
    segments = tuple(segment.log for log in logs for segment in log.segments)
    size = task_bytes(sum(segment.size + _OPENING for segment in segments), tasks_at_once)
    numbers = {log.partition: number for number, log in enumerate(logs)}
    left_out = _left_out(everything, logs)
    growth: dict[Partition, LogResumption] = {}
    if known_offsets is None:
        query = LogQuery(piece_bytes=size)
        pieces = [piece for log in logs for piece in pieces_of(log, query)]
    else:
        growth = _growth(logs, known_offsets, size)
        pieces = [piece for resumed in growth.values() for piece in resumed.pieces]
        segments = tuple({piece.log: None for piece in pieces})
    digest = AnalysisRequest(segments).digest
    works = _works(tasks_of(pieces, size), numbers, int(digest[:16], 16))
    partitions = {piece.partition for piece in pieces}
    walks = _walks([log for log in logs if log.partition in partitions], numbers, size)
    return LogPlan(works, tuple(numbers), segments, left_out, digest, growth, walks)


def _walks(
    logs: Sequence[Replica], numbers: Mapping[Partition, int], size: int
) -> tuple[Walk, ...]:
    """Group logs for tasks. Each task reads the headers of about ``size`` bytes."""
    walks: list[list[tuple[int, Replica]]] = []
    weight = size
    for log in logs:
        if weight >= size:
            walks.append([])
            weight = 0
        walks[-1].append((numbers[log.partition], log))
        weight += sum(segment.log.size for segment in walked_segments(log))
    return tuple(map(tuple, walks))


def _growth(
    logs: Sequence[Replica], known_offsets: Mapping[Partition, int], size: int
) -> dict[Partition, LogResumption]:
    def go_on(log: Replica) -> LogResumption:
        return resume_log(log, known_offsets.get(log.partition), size)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="flexwire-logs") as pool:
        return dict(zip((log.partition for log in logs), pool.map(go_on, logs), strict=True))


def task_bytes(total: int, tasks_at_once: int) -> int:
    """Return how many bytes of logs one task reads. If possible, the tasks run in two rounds."""
    target = total // (2 * max(1, tasks_at_once))
    return max(_LEAST_TASK, min(_MOST_TASK, target), -(-total // (MOST_TASKS // 2)))


def _left_out(everything: Sequence[Replica], logs: Sequence[Replica]) -> tuple[str, ...]:
    directories = {segment.log.url.rpartition("/")[0] for log in logs for segment in log.segments}
    return tuple(shown(log.directory) for log in everything if log.directory not in directories)


def _works(
    tasks: Sequence[Sequence[LogPiece]], numbers: dict[Partition, int], seed: int
) -> tuple[LogWork, ...]:
    task_counts = Counter(
        number for pieces in tasks for number in {numbers[piece.partition] for piece in pieces}
    )
    windows: dict[int, dict[int, tuple[SampleWindow, ...]]] = defaultdict(dict)
    for task, directory, several in _windows(tasks):
        windows[task][directory] = several
    return tuple(
        LogWork(
            tuple((numbers[piece.partition], piece) for piece in pieces),
            frozenset(
                number for piece in pieces if task_counts[number := numbers[piece.partition]] > 1
            ),
            windows[task],
            seed,
        )
        for task, pieces in enumerate(tasks)
    )


def _windows(
    tasks: Sequence[Sequence[LogPiece]],
) -> Iterator[tuple[int, int, tuple[SampleWindow, ...]]]:
    """Yield the task, the piece and the windows of samples, spread evenly over each topic."""
    topics: dict[str, list[_PlacedPiece]] = defaultdict(list)
    for task, pieces in enumerate(tasks):
        for position, piece in enumerate(pieces):
            topics[piece.partition.topic].append(_PlacedPiece(task, position, piece))
    sizes = {topic: sum(piece.size for piece in pieces) for topic, pieces in topics.items()}
    total = sum(sizes.values())
    budget = max(_SAMPLED, total // _SAMPLED_PART)
    largest = sorted(sizes, key=lambda topic: (-sizes[topic], topic))[:MOST_SAMPLED]
    for topic in largest:
        share = budget * sizes[topic] // max(total, 1)
        yield from _of_topic(topics[topic], max(LEAST_SAMPLE, min(MOST_SAMPLE, share)))


class _PlacedPiece(NamedTuple):
    """A piece, its task, and its place in that task."""

    task: int
    position: int
    piece: LogPiece

    @property
    def size(self) -> int:
        return self.piece.stop - self.piece.start


def _of_topic(
    pieces: Sequence[_PlacedPiece], sample_bytes: int
) -> Iterator[tuple[int, int, tuple[SampleWindow, ...]]]:
    total = sum(placed.size for placed in pieces)
    if total <= sample_bytes:
        # The sample is the whole topic.
        for placed in pieces:
            yield placed.task, placed.position, (SampleWindow(placed.piece.start, sample_bytes),)
        return
    count = -(-sample_bytes // _WINDOW)
    each, at = sample_bytes // count, 0
    middles = [total * (2 * number + 1) // (2 * count) for number in range(count)]
    for placed in pieces:
        inside = [middle - at for middle in middles if at <= middle < at + placed.size]
        if inside:
            starts = (max(0, min(middle - each // 2, placed.size - each)) for middle in inside)
            windows = tuple(SampleWindow(placed.piece.start + start, each) for start in starts)
            yield placed.task, placed.position, windows
        at += placed.size


_KEPT: Final = "_logs"
_RUNS: Final = f"{_KEPT}/runs"
# The approximate number of keys that a task merges, in several rounds.
_KEYS_OF_TASK: Final = 8 * MOST_HELD
# The largest number of directories that the facts list.
_DIRECTORIES: Final = 200
# The number of runs of each partition is counted too.
_Merging = list[tuple["Partition", KeyWork, int]]


@dataclass(slots=True)
class _LogCounts:
    """The counts that a task computes from its rows."""

    bytes: int = 0
    batches: int = 0
    records: int = 0
    damaged: int = 0
    damaged_bytes: int = 0
    oldest_us: int | None = None
    newest_us: int | None = None
    beyond_bounds: int = 0
    is_held: bool = False
    spilled: dict[int, list[int]] = field(default_factory=dict)

    def add(self, rows: pa.RecordBatch) -> None:
        """Count a batch of rows from the table of batches."""
        self.bytes += pc.sum(rows.column("size")).as_py() or 0
        is_damage = rows.column("error").is_valid()
        damage = rows.filter(is_damage) if is_damage.true_count else rows.slice(0, 0)
        self.damaged += damage.num_rows
        self.damaged_bytes += pc.sum(damage.column("size")).as_py() or 0
        self.beyond_bounds += beyond(damage)
        self.batches += rows.num_rows - damage.num_rows
        self.records += pc.sum(rows.column("records")).as_py() or 0
        self._see(_least(rows.column("oldest_time")), _most(rows.column("newest_time")))

    def merge(self, other: _LogCounts) -> None:
        """Add the counts of another task, except its keys."""
        self.bytes += other.bytes
        self.batches += other.batches
        self.records += other.records
        self.damaged += other.damaged
        self.damaged_bytes += other.damaged_bytes
        self.beyond_bounds += other.beyond_bounds
        self._see(other.oldest_us, other.newest_us)

    def _see(self, oldest: int | None, newest: int | None) -> None:
        if oldest is not None:
            self.oldest_us = oldest if self.oldest_us is None else min(self.oldest_us, oldest)
        if newest is not None:
            self.newest_us = newest if self.newest_us is None else max(self.newest_us, newest)


def _least(times: pa.Array) -> int | None:
    least: int | None = pc.min(times).value
    return least


def _most(times: pa.Array) -> int | None:
    most: int | None = pc.max(times).value
    return most


def write_log_tables(
    spark: SparkSession, plan: LogPlan, task_output: TaskOutput, inflation: Inflation = INFLATION
) -> LogFacts:
    """Write the log tables to ``task_output``, next to existing tables, and sum up their rows.

    ``inflation`` limits the decompressed size of each record batch, and of all batches of a task.
    """
    directory = task_output.directory
    other_tables = {
        "/".join(entry.name.split("/")[1:-1]) for entry in directory.entries(f"{TABLES}/")
    }
    for number, work in enumerate(plan.works):
        _keep(directory, f"work-{number:06d}", work)
    _find_transactions(spark, plan, task_output)
    digest = partial(_digest, plan.digest, inflation, len(plan.works) > 1)
    # There is no piece for an empty log, but the analysis still includes its tables.
    tasks = run_tasks(spark, max(1, len(plan.works)), digest, task_output)
    committed: list[CommittedTask[Any]] = [*tasks]
    counts = _LogCounts()
    spilled: dict[int, list[int]] = {}
    for task in tasks:
        counts.merge(task.value)
        for partition, keys in task.value.spilled.items():
            spilled.setdefault(partition, []).extend(keys)
    merging = _merging(plan, spilled)
    for number, works in enumerate(merging):
        _keep(directory, f"keys-{number:06d}", works)
    held_tasks = frozenset(number for number, task in enumerate(tasks) if task.value.is_held)
    merge = partial(_merge, plan.digest, len(tasks), held_tasks)
    committed += run_tasks(spark, len(merging), merge, task_output)
    written_files = compact(spark, committed, task_output)
    directory.remove(entry.name for entry in directory.entries(f"{_KEPT}/"))
    remove_parts(directory)
    settle(directory, task_output.count_files(written_files), other_tables)
    return _facts(plan, counts)


def _find_transactions(spark: SparkSession, plan: LogPlan, task_output: TaskOutput) -> None:
    """Find the transactions of each log, in Spark tasks if there is much to read."""
    for number, walk in enumerate(plan.walks):
        _keep(task_output.directory, f"walk-{number:06d}", walk)
    if len(plan.walks) > 1:
        run_tasks(spark, len(plan.walks), _walk_in_task, task_output)
    elif plan.walks:
        _walk(0, task_output)


def _walk_in_task(number: int, task_output: TaskOutput) -> None:
    begin_task()
    _walk(number, task_output)


def _walk(number: int, task_output: TaskOutput) -> None:
    directory = task_output.directory
    walk: Walk = _read_kept(directory, f"walk-{number:06d}")
    for partition, log in walk:
        transactions = transactions_if_sound(log)
        if transactions != Transactions():
            _keep(directory, f"ended-{partition:08d}", transactions)


def _transactions(directory: OutputDirectory, partition: int) -> Transactions:
    name = f"ended-{partition:08d}"
    is_there = directory.exists(f"{_KEPT}/{name}")
    transactions: Transactions = _read_kept(directory, name) if is_there else Transactions()
    return transactions


def _digest(
    digest: str,
    inflation: Inflation,
    is_part: bool,  # noqa: FBT001 - bound by partial, the only way to configure a task
    number: int,
    task_output: TaskOutput,
) -> _LogCounts:
    begin_task()
    name = f"work-{number:06d}"
    is_there = task_output.directory.exists(f"{_KEPT}/{name}")
    work: LogWork = (
        _read_kept(task_output.directory, name) if is_there else LogWork((), frozenset(), {}, 0)
    )
    numbers = {number for number, _ in work.pieces}
    work = replace(
        work,
        transactions={number: _transactions(task_output.directory, number) for number in numbers},
    )
    counts = _LogCounts()

    def write(bounds: Inflation) -> None:
        nonlocal counts
        counts = _LogCounts(is_held=bounds.is_held)
        with TableFiles(task_output, part_name(digest, number, 0), is_part=is_part) as files:
            if number == 0:
                for table, columns in LOG_SCHEMAS.items():
                    files.begin(table, columns)
            spill = _RunWriter(task_output.directory, number, is_held=bounds.is_held)
            rows_of = LogTableRows(work, spill, bounds)
            for table, rows in rows_of:
                files.write(table, rows)
                if table == BATCHES:
                    counts.add(rows)
        counts.spilled = rows_of.spilled

    within_allowance(inflation, write)
    return counts


class _RunWriter:
    """Write one task's runs of keys.

    If a task is restarted, its runs are given other names.
    """

    def __init__(self, directory: OutputDirectory, number: int, *, is_held: bool) -> None:
        self._place = directory
        self._name = _run_name(number, is_held=is_held)
        self._runs = 0

    def __call__(self, partition: int, run: bytes) -> None:
        name = f"{_RUNS}/{partition:08d}/{self._name}{self._runs:06d}"
        write_there(self._place, name, run)
        self._runs += 1


def _run_name(number: int, *, is_held: bool) -> str:
    return f"{number:06d}-held-" if is_held else f"{number:06d}-"


def _is_of_last(name: str, held_tasks: frozenset[int]) -> bool:
    """Return whether a run of keys comes from the last start of its task."""
    run = name.rpartition("/")[2]
    number = int(run.partition("-")[0])
    return run.startswith(_run_name(number, is_held=True)) == (number in held_tasks)


def _merging(plan: LogPlan, spilled: dict[int, list[int]]) -> list[_Merging]:
    """Return the work of the merging tasks: partitions with several runs, or parts of these."""
    tasks: list[_Merging] = []
    keys_in_task = _KEYS_OF_TASK
    for partition, keys in sorted(spilled.items()):
        if len(keys) == 1:
            # All keys of this partition are different.
            continue
        for work in KeyWork.of(partition, sum(keys), _KEYS_OF_TASK):
            share = sum(keys) * (work.last - work.first)
            if keys_in_task >= _KEYS_OF_TASK:
                tasks.append([])
                keys_in_task = 0
            tasks[-1].append((plan.partitions[partition], work, len(keys)))
            keys_in_task += max(1, share >> 10)
    return tasks


def _merge(
    digest: str,
    reading_tasks: int,
    held_tasks: frozenset[int],
    number: int,
    task_output: TaskOutput,
) -> None:
    begin_task()
    directory = task_output.directory
    works: _Merging = _read_kept(task_output.directory, f"keys-{number:06d}")
    name = part_name(digest, reading_tasks + number, 0)
    with TableFiles(task_output, name, is_part=True) as tables:
        for partition, work, count in works:
            folder = f"{_RUNS}/{work.partition:08d}/"
            entries = sorted(directory.entries(folder))
            runs = [
                directory.source(entry) for entry in entries if _is_of_last(entry.name, held_tasks)
            ]
            check_listed(directory, folder, len(runs), count)
            superseded = superseded_between(runs, work.first, work.last)
            tables.write(KEYS, key_row(partition, superseded))


def _facts(plan: LogPlan, counts: _LogCounts) -> LogFacts:
    directories = dict.fromkeys(segment.name.rpartition("/")[0] for segment in plan.segments)
    growth = plan.growth
    behind = [str(partition) for partition, log in growth.items() if log.is_behind]
    return LogFacts(
        topics=len({partition.topic for partition in plan.partitions}),
        partitions=len(plan.partitions),
        segments=len(plan.segments),
        bytes=counts.bytes,
        batches=counts.batches,
        records=counts.records,
        damaged=counts.damaged,
        damaged_bytes=counts.damaged_bytes,
        beyond_bounds=counts.beyond_bounds,
        oldest_time_us=counts.oldest_us,
        newest_time_us=counts.newest_us,
        directories=tuple(directories)[:_DIRECTORIES],
        directory_count=len(directories),
        left_out=plan.left_out[:_DIRECTORIES],
        left_out_count=len(plan.left_out),
        known_partitions=sum(not log.pieces for log in growth.values()),
        waiting_bytes=sum(log.waiting for log in growth.values()),
        gone_partitions=sum(log.is_gone for log in growth.values()),
        behind=tuple(behind[:_DIRECTORIES]),
        behind_count=len(behind),
    )


def _keep(directory: OutputDirectory, name: str, value: object) -> None:
    directory.write(f"{_KEPT}/{name}", compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)))


def _read_kept(directory: OutputDirectory, name: str) -> Any:
    # The driver of this analysis wrote these bytes, in the analysis's own directory.
    return pickle.loads(decompress(directory.read(f"{_KEPT}/{name}")))  # noqa: S301 - we wrote these bytes ourselves
