"""Reads brokers' request logs for an analysis, and writes the traffic tables from their lines.

```
files ─▶ what they are ─▶ pieces, some a task ─▶ frames, messages/<Message>, forwarded_requests
                             └─▶ sums, and what lines say of connections ─▶ connections, packets
```
A task reads its pieces line by line (`flexwire.logs.request_log`) and writes its part of each table
(`flexwire.tables.request_logs`). A task can read each line independently of the others, except for
facts about its connection. The driver combines the facts about connections from all tasks.

A line can lack a client id that another line of its connection contains, and no task knows such an
id before all tasks have read their lines. If such ids are found, all tasks read the lines again
with these ids.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from flexwire.errors import CaptureError
from flexwire.facts.facts import ListenerFacts, RequestLogFacts
from flexwire.facts.units import plural
from flexwire.logs.request_log import BadLine, LoggedRequest, RequestLogReader, read_lines
from flexwire.logs.request_log.lines import RequestLogFile, RequestLogPiece, pieces_of
from flexwire.logs.request_log.positions import FIRST_TIME, first_time, times_of
from flexwire.measures.analysis import PACKETS, AnalysisSums
from flexwire.measures.audit_rows import CONNECTIONS, replica_rows
from flexwire.measures.evidence import REPLICAS_MESSAGE
from flexwire.spark.capture_job import ALWAYS, SummedFiles, merged_sums, sums_number
from flexwire.spark.publishing.commit import MOST_TASKS, run_tasks
from flexwire.spark.publishing.compaction import compact, remove_parts
from flexwire.spark.publishing.manifest import settle
from flexwire.spark.request_log_growth import LOGGED_STATE, SeenConnections
from flexwire.survey.survey import AnalysisRequest
from flexwire.tables.parquet import TableWriter
from flexwire.tables.request_log_bodies import structures
from flexwire.tables.request_logs import FORWARDED, FileItem, RequestLogCounts, RequestLogRows
from flexwire.tables.schema import CONNECTIONS_TABLE, FORWARDED_TABLE, PACKETS_TABLE
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from flexwire.logs.request_log import Zone
    from flexwire.logs.request_log.lines import Line
    from flexwire.spark.publishing.manifest import CommittedTask
    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.spark.request_log_growth import RequestLogGrowth
    from flexwire.tables.request_logs import LoggedIds


LEAST_TASK: Final = 16 << 20
"""The smallest number of bytes that a task reads, if the logs are large enough. Reading them takes
a few seconds.
"""
MOST_TASK: Final = 512 << 20
MOST_CONNECTIONS: Final = 200_000
"""The largest number of connections for which missing ids are filled in. Each task holds the ids of
all these connections, which take 300 bytes each.
"""
# To find the end of a gzip-compressed file, the whole file must be read.
_LEAST_SPAN_US: Final = 600_000_000


@dataclass(frozen=True, slots=True)
class RequestLogPlan:
    """The plan for the tasks of a request log analysis.

    ``span_us`` is approximately the time from the first line to the last.
    """

    files: tuple[RequestLogFile, ...]
    works: tuple[tuple[RequestLogPiece, ...], ...]
    digest: str
    span_us: int

    @property
    def total(self) -> int:
        """The approximate number of bytes of lines."""
        return sum(file.weight for file in self.files)


def check_request_logs(files: Sequence[RequestLogFile]) -> None:
    """Raise `CaptureError` if all files contain logs of another kind."""
    if files and all(file.is_server_log for file in files):
        reason = "add the request log: the server log of a broker shows only refused requests"
        raise CaptureError(reason, source=files[0].source.name)


def plan_request_logs(
    files: Sequence[RequestLogFile], tasks_at_once: int, zone: Zone
) -> RequestLogPlan:
    """Plan how request logs are read."""
    total = sum(file.weight for file in files)
    size = max(LEAST_TASK, min(MOST_TASK, total // (2 * max(1, tasks_at_once))))
    size = max(size, -(-total // (MOST_TASKS // 2)))
    works = tuple(map(tuple, _works(pieces_of(files, size), size)))
    digest = AnalysisRequest(tuple(file.source for file in files)).digest
    return RequestLogPlan(tuple(files), works, digest, _span_us(files, zone))


def undivided_note(files: Sequence[RequestLogFile]) -> tuple[str, ...]:
    """Return a note on large files that are read by a single task, if any, with the reason."""
    large = [
        file
        for file in files
        if (file.is_gzipped or file.is_enveloped) and file.weight >= 2 * LEAST_TASK
    ]
    if not large:
        return ()
    largest = max(large, key=lambda file: file.weight)
    others = f" and {len(large) - 1:,} more" if len(large) > 1 else ""
    text = (
        f"{largest.source.name}{others}: one task reads each file, because a gzipped file can "
        "only be read from its start, and a container log can split a line into several "
        "envelopes. Many tasks can read a large file if you unpack it and it has no envelopes."
    )
    return (text,)


def _works(pieces: Iterable[RequestLogPiece], size: int) -> Iterator[list[RequestLogPiece]]:
    work: list[RequestLogPiece] = []
    bytes_held = 0
    for piece in pieces:
        if work and bytes_held + piece.weight > size:
            yield work
            work, bytes_held = [], 0
        work.append(piece)
        bytes_held += piece.weight
    if work:
        yield work


def _span_us(files: Sequence[RequestLogFile], zone: Zone) -> int:
    times: list[int] = []
    for file in files:
        if file.is_server_log:
            continue
        if (first := first_time(file, zone)) is not None:
            times.append(first)
        end = file.source.size if file.end is None else file.end
        if not (file.is_gzipped or file.is_enveloped) and end:
            last = RequestLogPiece(file, max(file.start, end - FIRST_TIME))
            times += [*times_of(last, zone)][-1:]
    span = max(times) - min(times) if times else 0
    is_sure = not any(file.is_gzipped or file.is_enveloped for file in files)
    return span if is_sure else max(span, _LEAST_SPAN_US)


# A batch ends after this number of lines, or once their bodies reach this weight.
_LINES: Final = 20_000
_HEAVIEST: Final = 32 << 20
# The approximate size of a structure in columns. In the line, an empty structure takes three bytes.
_STRUCTURE: Final = 64
# The largest number of reasons that are counted separately, and of listeners that are listed.
_SHOWN: Final = 50


@dataclass(slots=True)
class _LineCounts:
    """For each file that a task read: the number of lines, and how many it did not use."""

    requests: RequestLogCounts = field(default_factory=RequestLogCounts)
    lines: Counter[str] = field(default_factory=Counter)
    unused: Counter[tuple[str, str]] = field(default_factory=Counter)

    def merge(self, other: _LineCounts) -> None:
        self.requests.merge(other.requests)
        self.lines.update(other.lines)
        self.unused.update(other.unused)


def write_request_log_tables(
    spark: SparkSession,
    plan: RequestLogPlan,
    task_output: TaskOutput,
    zone: Zone,
    *,
    show_credentials: bool = False,
    growth: RequestLogGrowth | None = None,
) -> tuple[RequestLogFacts, AnalysisSums, tuple[str, ...]]:
    """Write the tables to ``task_output``; return the facts, the sums of the rows, and notes.

    If the tables grow, connections continue from the previous analysis, and the state for the next
    analysis is written too.
    """
    reading = _Reading(plan, zone, show_credentials)
    if growth is not None:
        reading = replace(reading, ids=growth.ids, origins=growth.origins)
    committed, sums = _run(spark, reading, task_output)
    ids, notes = _ids_of_lines_without(sums)
    if ids:
        known = ids if growth is None else growth.with_ids(ids)
        again = replace(reading, ids=known, first=len(committed))
        committed, sums = _run(spark, again, task_output)
    counts = _LineCounts(lines=Counter({file.source.name: 0 for file in plan.files}))
    for task in committed:
        counts.merge(task.value)
    written_files = compact(spark, committed, task_output)
    remove_parts(task_output.directory)
    settle(task_output.directory, task_output.count_files(written_files))
    # The table of connections can be written only now, because it combines facts about each
    # connection from several tasks.
    notes += _write_connections(task_output, sums.audit.logged(), growth)
    packets = _packets(counts)
    sums.add(PACKETS, packets)
    _write(task_output, PACKETS, PACKETS_TABLE, [packets])
    return _facts(plan, zone, counts), sums, notes


def _write_connections(
    task_output: TaskOutput, rows: Iterable[pa.RecordBatch], growth: RequestLogGrowth | None
) -> tuple[str, ...]:
    """Write the table of connections and, if tables grow, the state for the next analysis."""
    if growth is None:
        _write(task_output, CONNECTIONS, CONNECTIONS_TABLE, rows)
        return ()
    seen = SeenConnections(growth.run)
    _write(task_output, CONNECTIONS, CONNECTIONS_TABLE, seen.watched(map(growth.continued, rows)))
    state, notes = seen.state(growth)
    task_output.directory.write(LOGGED_STATE, state)
    return notes


def _run(
    spark: SparkSession, reading: _Reading, task_output: TaskOutput
) -> tuple[list[CommittedTask[_LineCounts]], AnalysisSums]:
    """Read all lines in tasks; return the committed tasks, and the sums of their rows."""
    plan = reading.plan
    committed = run_tasks(spark, max(1, len(plan.works)), reading.read, task_output)
    count, first = len(committed), sums_number(reading.first)
    return committed, merged_sums(task_output.directory, plan.span_us, count, first=first)


def _ids_of_lines_without(sums: AnalysisSums) -> tuple[dict[str, LoggedIds], tuple[str, ...]]:
    """Return the missing ids by connection, and a note if too many connections need ids."""
    ids: dict[str, LoggedIds] = {}
    beyond = 0
    for some in sums.audit.ids_of_lines_without():
        ids |= some
        if len(ids) > MOST_CONNECTIONS:
            # The choice of connections that lose their ids must not depend on the order of the
            # lines.
            last = sorted(ids)[MOST_CONNECTIONS:]
            beyond += len(last)
            for name in last:
                del ids[name]
    if not beyond:
        return ids, ()
    note = (
        f"some lines of {plural(beyond, 'connection')} remain without a client id: to fill in "
        f"missing ids, flexwire remembers the ids of at most {MOST_CONNECTIONS:,} connections"
    )
    return ids, (note,)


def _write(
    task_output: TaskOutput, table: str, schema: pa.Schema, rows: Iterable[pa.RecordBatch]
) -> None:
    """Write a table as one file, or as one file for each day if tables grow."""
    with tempfile.TemporaryDirectory() as scratch:
        local = Path(scratch, f"{table}.parquet")
        with TableWriter(local, schema, task_output.constants) as writer:
            for batch in rows:
                writer.write(batch)
        task_output.put(local, table, local.name, writer.rows)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The work of the tasks: their input, and the ids of connections whose lines lack ids.

    ``first`` is the number in the names of the first task's files. The logs are read twice, and
    each reading writes different bytes. The two readings therefore use different file names, so
    that a late attempt of the first reading cannot replace a file of the second reading.
    ``origins`` lists the analyses in which connections began, if tables grow.
    """

    plan: RequestLogPlan
    zone: Zone
    shows_credentials: bool
    ids: dict[str, LoggedIds] = field(default_factory=dict)
    first: int = 0
    origins: dict[str, str] | None = None

    def read(self, number: int, task_output: TaskOutput) -> _LineCounts:
        """Read the pieces of one task, and write their rows."""
        begin_task()
        plan, counts = self.plan, _LineCounts()
        rows = RequestLogRows(show_credentials=self.shows_credentials, ids=self.ids)
        is_part = len(plan.works) > 1
        place = self.first + number
        with SummedFiles(task_output, plan.digest, place, plan.span_us, is_part=is_part) as files:
            files.origins = self.origins
            if number == 0:
                for table, columns in {**ALWAYS, FORWARDED: FORWARDED_TABLE}.items():
                    files.begin(table, columns)
            placed = (_placed(piece, self.zone, counts) for piece in plan.works[number])
            for lines in _batches(chain.from_iterable(placed)):
                _write_rows(rows, lines, files)
        counts.requests = rows.counts
        return counts


def _write_rows(rows: RequestLogRows, lines: list[FileItem], files: SummedFiles) -> None:
    replicas: Counter[str] = Counter()
    for table, batch in rows.of(lines):
        if table:
            files.write(table, batch)
        else:
            files.sums.audit.add_logged(batch)
            _count_replicas(rows, batch, replicas)
        if table.endswith(f"/{REPLICAS_MESSAGE}"):
            replicas.update(replica_rows(batch)["connection"].to_pylist())


def _placed(piece: RequestLogPiece, zone: Zone, counts: _LineCounts) -> Iterator[FileItem]:
    """Yield the content of the lines of a piece, and count them."""
    file = piece.file
    name, reader = file.source.name, RequestLogReader(zone)
    if file.waits_at is not None and piece.start == file.start:
        reader.wait_after(next(read_lines(RequestLogPiece(file, file.waits_at))))

    def counted() -> Iterator[Line]:
        for line in read_lines(piece):
            counts.lines[name] += not line.is_next
            yield line

    for item in reader.read(counted()):
        if isinstance(item, BadLine):
            counts.unused[name, item.reason] += 1
        elif item is not None:
            yield FileItem(file, item)


def _batches(lines: Iterator[FileItem]) -> Iterator[list[FileItem]]:
    batch: list[FileItem] = []
    heavy = 0
    for line in lines:
        batch.append(line)
        heavy += _weight(line)
        if len(batch) >= _LINES or heavy >= _HEAVIEST:
            yield batch
            batch, heavy = [], 0
    if batch:
        yield batch


def _weight(line: FileItem) -> int:
    """Return the approximate size of those parts of a line whose length a client can choose."""
    item = line.item
    if not isinstance(item, LoggedRequest):
        return 0
    texts = [text for text in (item.request, item.response) if text is not None]
    names = (item.header.client_id, item.principal, item.listener, *item.ends)
    return sum(len(text) + _STRUCTURE * structures(text) for text in texts) + sum(
        len(name or "") for name in names
    )


def _count_replicas(rows: RequestLogRows, logged: pa.RecordBatch, replicas: Counter[str]) -> None:
    """Count replica fetches by the listeners of their connections."""
    if not replicas:
        return
    of = pc.index_in(
        logged["connection"].dictionary_encode().dictionary, value_set=logged["connection"]
    )
    for row in logged.take(of).select(_OF_LISTENER).to_pylist():
        count = replicas.get(row["connection"], 0)
        if count:
            rows.counts.listeners.add_replicas((row["listener"], row["security_protocol"]), count)


_OF_LISTENER: Final = ["connection", "listener", "security_protocol"]


def _packets(counts: _LineCounts) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - above, this module needs pyarrow only for types

    rows = []
    for name, lines in sorted(counts.lines.items()):
        rows.append({"source": name, "packets": lines})
        reasons = sorted((why, count) for (of, why), count in counts.unused.items() if of == name)
        rows += [{"source": name, "reason": why, "packets": count} for why, count in reasons]
    return pa.RecordBatch.from_pylist(rows, PACKETS_TABLE)


def _facts(plan: RequestLogPlan, zone: Zone, counts: _LineCounts) -> RequestLogFacts:
    requests = counts.requests
    listener_counts = requests.listeners
    listeners = [
        ListenerFacts(*listener, requests, listener_counts.replicas[listener])
        for listener, requests in listener_counts.requests.most_common(_SHOWN)
    ]
    return RequestLogFacts(
        files=sum(not file.is_server_log for file in plan.files),
        server_logs=sum(file.is_server_log for file in plan.files),
        lines=sum(counts.lines.values()),
        requests=requests.requests,
        forwarded=requests.forwarded,
        refused=requests.refused,
        cut=requests.cut,
        text=requests.text,
        unused=sum(counts.unused.values()),
        left_out_fields=requests.left_out,
        only_deprecated=bool(requests.requests)
        and requests.deprecated == requests.requests + requests.forwarded,
        timezone=zone.name,
        listeners=tuple(listeners),
        listener_count=len(listener_counts.requests),
        requests_beyond=listener_counts.beyond,
    )
