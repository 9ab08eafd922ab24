"""From the segments that were given to the works of tasks, and where samples are taken."""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.errors import CaptureError
from flexwire.logs import LogQuery
from flexwire.logs.finding import logs_among
from flexwire.logs.following import resumed
from flexwire.logs.planning import pieces_of, tasks_of, walked
from flexwire.spark.publishing.commit import MOST_TASKS
from flexwire.storage.filesystems import shown
from flexwire.survey.survey import Asked
from flexwire.tables.log_rewriting import Window
from flexwire.tables.log_rows import LogWork

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexwire.logs import LogPiece
    from flexwire.logs.files import Partition
    from flexwire.logs.following import Resumed
    from flexwire.logs.replicas import Replica
    from flexwire.storage.source import Source

LEAST_SAMPLE: Final = 256 << 10
"""A topic's sample has so many bytes, inflated, where it has as many."""
MOST_SAMPLE: Final = 16 << 20
"""And so many at the most."""
MOST_SAMPLED: Final = 256
"""Of so many topics, the largest, there is a sample."""
# All samples together have so many bytes, or one part in so many of the logs.
_SAMPLED, _SAMPLED_PART = 8 << 20, 512
_WINDOW: Final = 2 << 20
# A file takes as long to open as so many bytes to read (`capture.logs.planning`).
_OPENING: Final = 1 << 20
_LEAST_TASK, _MOST_TASK = 64 << 20, 1 << 30
# To find where a log ends is mostly waiting for the store.
_AT_ONCE: Final = 16


Walk = tuple[tuple[int, "Replica"], ...]


@dataclass(frozen=True, slots=True)
class LogPlan:
    """What the tasks of an analysis of logs do, and what it is about.

    Attributes:
        partitions: every partition, by its number in the works.
        segments: the segments that are read.
        left_out: directories of partitions that another directory is read for.
        growth: how each partition goes on from what is in the tables, where these grow.
        walks: the logs that are read, each with the number of its partition; those together whose
            transactions one task finds.
    """

    works: tuple[LogWork, ...]
    partitions: tuple[Partition, ...]
    segments: tuple[Source, ...]
    left_out: tuple[str, ...]
    digest: str
    growth: dict[Partition, Resumed] = field(default_factory=dict)
    walks: tuple[Walk, ...] = ()


def plan_logs(
    files: Sequence[Source], tasks_at_once: int, known: Mapping[Partition, int] | None = None
) -> LogPlan:
    """Plan the reading of logs, whose segments and indexes ``files`` are.

    Of several directories with one partition the one is read that Kafka would go on with
    (`flexwire.logs.replicas`). Where tables grow, ``known`` are the offsets to go on with,
    and each log is read up to its last whole batch. Raises `CaptureError` where there is no log
    among them.
    """
    everything = logs_among(files, LogQuery(replicas="all"))
    logs = logs_among(files, LogQuery())
    if not logs:
        reason = "no log segment that a broker would read, among files with the names of such"
        raise CaptureError(reason, source=files[0].name)
    segments = tuple(segment.log for log in logs for segment in log.segments)
    size = task_bytes(sum(one.size + _OPENING for one in segments), tasks_at_once)
    numbers = {log.partition: number for number, log in enumerate(logs)}
    left_out = _left_out(everything, logs)
    growth: dict[Partition, Resumed] = {}
    if known is None:
        query = LogQuery(piece_bytes=size)
        pieces = [piece for log in logs for piece in pieces_of(log, query)]
    else:
        growth = _growth(logs, known, size)
        pieces = [piece for one in growth.values() for piece in one.pieces]
        segments = tuple({piece.log: None for piece in pieces})
    digest = Asked(segments).digest
    works = _works(tasks_of(pieces, size), numbers, int(digest[:16], 16))
    read = {one.partition for one in pieces}
    walks = _walks([log for log in logs if log.partition in read], numbers, size)
    return LogPlan(works, tuple(numbers), segments, left_out, digest, growth, walks)


def _walks(
    logs: Sequence[Replica], numbers: Mapping[Partition, int], size: int
) -> tuple[Walk, ...]:
    """Return logs for tasks that each read the headers of about ``size`` bytes."""
    walks: list[list[tuple[int, Replica]]] = []
    weight = size
    for log in logs:
        if weight >= size:
            walks.append([])
            weight = 0
        walks[-1].append((numbers[log.partition], log))
        weight += sum(one.log.size for one in walked(log))
    return tuple(map(tuple, walks))


def _growth(
    logs: Sequence[Replica], known: Mapping[Partition, int], size: int
) -> dict[Partition, Resumed]:
    def go_on(log: Replica) -> Resumed:
        return resumed(log, known.get(log.partition), size)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="flexwire-logs") as pool:
        return dict(zip((one.partition for one in logs), pool.map(go_on, logs), strict=True))


def task_bytes(total: int, tasks_at_once: int) -> int:
    """How many bytes of logs a task is to read: two rounds of tasks, as far as that goes."""
    wanted = total // (2 * max(1, tasks_at_once))
    return max(_LEAST_TASK, min(_MOST_TASK, wanted), -(-total // (MOST_TASKS // 2)))


def _left_out(everything: Sequence[Replica], logs: Sequence[Replica]) -> tuple[str, ...]:
    read = {segment.log.url.rpartition("/")[0] for one in logs for segment in one.segments}
    return tuple(shown(one.directory) for one in everything if one.directory not in read)


def _works(
    tasks: Sequence[Sequence[LogPiece]], numbers: dict[Partition, int], seed: int
) -> tuple[LogWork, ...]:
    seen = Counter(
        number for pieces in tasks for number in {numbers[one.partition] for one in pieces}
    )
    windows: dict[int, dict[int, tuple[Window, ...]]] = defaultdict(dict)
    for task, place, several in _windows(tasks):
        windows[task][place] = several
    return tuple(
        LogWork(
            tuple((numbers[one.partition], one) for one in pieces),
            frozenset(number for one in pieces if seen[number := numbers[one.partition]] > 1),
            windows[task],
            seed,
        )
        for task, pieces in enumerate(tasks)
    )


def _windows(
    tasks: Sequence[Sequence[LogPiece]],
) -> Iterator[tuple[int, int, tuple[Window, ...]]]:
    """Give where samples begin, evenly over each topic: the task, which of its pieces, windows."""
    topics: dict[str, list[_Placed]] = defaultdict(list)
    for task, pieces in enumerate(tasks):
        for place, one in enumerate(pieces):
            topics[one.partition.topic].append(_Placed(task, place, one))
    sizes = {topic: sum(one.size for one in pieces) for topic, pieces in topics.items()}
    total = sum(sizes.values())
    budget = max(_SAMPLED, total // _SAMPLED_PART)
    largest = sorted(sizes, key=lambda topic: (-sizes[topic], topic))[:MOST_SAMPLED]
    for topic in largest:
        share = budget * sizes[topic] // max(total, 1)
        yield from _of_topic(topics[topic], max(LEAST_SAMPLE, min(MOST_SAMPLE, share)))


class _Placed(NamedTuple):
    """A piece, its task, and its place there."""

    task: int
    place: int
    piece: LogPiece

    @property
    def size(self) -> int:
        return self.piece.stop - self.piece.start


def _of_topic(
    pieces: Sequence[_Placed], wanted: int
) -> Iterator[tuple[int, int, tuple[Window, ...]]]:
    total = sum(one.size for one in pieces)
    if total <= wanted:
        # All of it.
        for one in pieces:
            yield one.task, one.place, (Window(one.piece.start, wanted),)
        return
    count = -(-wanted // _WINDOW)
    each, at = wanted // count, 0
    middles = [total * (2 * one + 1) // (2 * count) for one in range(count)]
    for one in pieces:
        inside = [middle - at for middle in middles if at <= middle < at + one.size]
        if inside:
            starts = (max(0, min(middle - each // 2, one.size - each)) for middle in inside)
            windows = tuple(Window(one.piece.start + start, each) for start in starts)
            yield one.task, one.place, windows
        at += one.size
