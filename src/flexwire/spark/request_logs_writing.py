"""The tables of request logs, written by tasks that each read some pieces of files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from flexwire.logs.request_log import BadLine, LoggedRequest, LogReader, read_lines
from flexwire.report.request_log_facts import ListenerFacts, RequestLogFacts
from flexwire.spark.conducts import REPLICAS_MESSAGE
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.compaction import compact, remove_parts
from flexwire.spark.publishing.manifest import TABLES, settle
from flexwire.spark.publishing.table_files import write_one_file
from flexwire.spark.ranges import ALWAYS, SummedFiles
from flexwire.spark.summing import merged_sums
from flexwire.spark.sums.analysis import CONNECTIONS, PACKETS, AnalysisSums
from flexwire.spark.sums.audit_rows import replica_rows
from flexwire.spark.tasks import begin_task
from flexwire.tables.request_log_bodies import structures
from flexwire.tables.request_logs import FORWARDED, Placed, RequestLogRows, Told
from flexwire.tables.schema import CONNECTIONS_TABLE, FORWARDED_TABLE, PACKETS_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from flexwire.logs.request_log import Zone
    from flexwire.logs.request_log.lines import Line, LogPiece
    from flexwire.spark.publishing.drop import Drop
    from flexwire.spark.publishing.places import Place
    from flexwire.spark.request_logs_planning import RequestLogPlan

# Lines are held until there are so many, or their bodies so heavy.
_LINES: Final = 20_000
_HEAVIEST: Final = 32 << 20
# What a structure becomes in columns, about: an empty one is three bytes of the line.
_STRUCTURE: Final = 64
# So many reasons are told apart, and so many listeners are named.
_SHOWN: Final = 50


@dataclass(slots=True)
class _Read:
    """What a task says of the lines that it read: of each file how many, and those not used."""

    told: Told = field(default_factory=Told)
    lines: Counter[str] = field(default_factory=Counter)
    unused: Counter[tuple[str, str]] = field(default_factory=Counter)

    def merge(self, other: _Read) -> None:
        self.told.merge(other.told)
        self.lines.update(other.lines)
        self.unused.update(other.unused)


def write_request_log_tables(
    spark: SparkSession,
    plan: RequestLogPlan,
    drop: Drop,
    zone: Zone,
    *,
    show_credentials: bool = False,
) -> tuple[RequestLogFacts, AnalysisSums]:
    """Write the tables to ``drop``, and sum up their rows."""
    work = partial(_read, plan, zone, show_credentials)
    committed = run_tasks(spark, max(1, len(plan.works)), work, drop)
    read = _Read(lines=Counter({one.source.name: 0 for one in plan.files}))
    for one in committed:
        read.merge(one.value)
    written = compact(spark, committed, drop)
    sums = merged_sums(spark, drop, plan.span_us, len(committed))
    remove_parts(drop.place)
    settle(drop.place, drop.told(written))
    # Small, and known only now: of each connection what several tasks have told.
    _write(drop.place, CONNECTIONS, CONNECTIONS_TABLE, sums.audit.logged())
    packets = _packets(read)
    sums.add(PACKETS, packets)
    _write(drop.place, PACKETS, PACKETS_TABLE, [packets])
    return _facts(plan, zone, read), sums


def _write(files: Place, table: str, schema: pa.Schema, rows: Any) -> None:
    write_one_file(files, f"{TABLES}/{table}/{table}.parquet", schema, rows)


def _read(
    plan: RequestLogPlan,
    zone: Zone,
    shows: bool,  # noqa: FBT001 - bound by partial, the one way to configure a task
    number: int,
    drop: Drop,
) -> _Read:
    begin_task()
    read = _Read()
    rows = RequestLogRows(show_credentials=shows)
    is_part = len(plan.works) > 1
    with SummedFiles(drop, plan.digest, number, plan.span_us, is_part=is_part) as files:
        if number == 0:
            for table, columns in {**ALWAYS, FORWARDED: FORWARDED_TABLE}.items():
                files.begin(table, columns)
        for lines in _batches(
            chain.from_iterable(_placed(p, zone, read) for p in plan.works[number])
        ):
            replicas: Counter[str] = Counter()
            for table, batch in rows.of(lines):
                if table:
                    files.write(table, batch)
                else:
                    files.sums.audit.add_logged(batch)
                    _count_replicas(rows, batch, replicas)
                if table.endswith(f"/{REPLICAS_MESSAGE}"):
                    replicas.update(replica_rows(batch)["connection"].to_pylist())
    read.told = rows.told
    return read


def _placed(piece: LogPiece, zone: Zone, read: _Read) -> Iterator[Placed]:
    """Give what the lines of a piece say, and count them."""
    file = piece.file
    name = file.source.name

    def counted() -> Iterator[Line]:
        for line in read_lines(piece):
            read.lines[name] += not line.is_next
            yield line

    for item in LogReader(zone).read(counted()):
        if isinstance(item, BadLine):
            read.unused[name, item.reason] += 1
        elif item is not None:
            yield Placed(file, item)


def _batches(lines: Iterator[Placed]) -> Iterator[list[Placed]]:
    held: list[Placed] = []
    heavy = 0
    for one in lines:
        held.append(one)
        heavy += _weight(one)
        if len(held) >= _LINES or heavy >= _HEAVIEST:
            yield held
            held, heavy = [], 0
    if held:
        yield held


def _weight(line: Placed) -> int:
    """About how many bytes a line takes that anybody may choose the length of."""
    one = line.item
    if not isinstance(one, LoggedRequest):
        return 0
    texts = [text for text in (one.request, one.response) if text is not None]
    names = (one.header.client_id, one.principal, one.listener, *one.ends)
    return sum(len(text) + _STRUCTURE * structures(text) for text in texts) + sum(
        len(name or "") for name in names
    )


def _count_replicas(rows: RequestLogRows, logged: pa.RecordBatch, replicas: Counter[str]) -> None:
    """Count fetches of replicas by the listener of their connection."""
    if not replicas:
        return
    of = pc.index_in(
        logged["connection"].dictionary_encode().dictionary, value_set=logged["connection"]
    )
    for row in logged.take(of).select(_OF_LISTENER).to_pylist():
        count = replicas.get(row["connection"], 0)
        if count:
            rows.told.listeners.add_replicas((row["listener"], row["security_protocol"]), count)


_OF_LISTENER: Final = ["connection", "listener", "security_protocol"]


def _packets(read: _Read) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - its types alone are needed above

    rows = []
    for name, lines in sorted(read.lines.items()):
        rows.append({"source": name, "packets": lines})
        reasons = sorted((why, count) for (of, why), count in read.unused.items() if of == name)
        rows += [{"source": name, "reason": why, "packets": count} for why, count in reasons]
    return pa.RecordBatch.from_pylist(rows, PACKETS_TABLE)


def _facts(plan: RequestLogPlan, zone: Zone, read: _Read) -> RequestLogFacts:
    told = read.told
    every = told.listeners
    listeners = [
        ListenerFacts(*one, requests, every.replicas[one])
        for one, requests in every.requests.most_common(_SHOWN)
    ]
    return RequestLogFacts(
        files=sum(not one.is_server_log for one in plan.files),
        server_logs=sum(one.is_server_log for one in plan.files),
        lines=sum(read.lines.values()),
        requests=told.requests,
        forwarded=told.forwarded,
        refused=told.refused,
        cut=told.cut,
        text=told.text,
        unused=sum(read.unused.values()),
        left_out_fields=told.left_out,
        only_deprecated=bool(told.requests) and told.deprecated == told.requests + told.forwarded,
        timezone=zone.name,
        listeners=tuple(listeners),
        listener_count=len(every.requests),
        requests_beyond=every.beyond,
    )
