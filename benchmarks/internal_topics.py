"""Measure internal topics: typed in one process, and on Spark from segments of
`__consumer_offsets`.

``python benchmarks/internal_topics.py [--records 1000000] [--partitions 5] [--rounds 5]``. Seconds
are CPU time of Java and all Python workers, the median of all rounds. On Spark they are the cost of
an additional record: the difference between all partitions and the first, to which the others are
links. All results except those of views go to a noop sink:

- "read" is only ``kafka-log``; "by rows" adds `internal_records` on whole records.
- "typed" is `InternalLog.typed`, which reads and types in one task. "prebuilt" returns the same
  batches from a file, the minimum for any source of such rows. "fields" has only the columns that
  `last_commits` uses, and "prebuilt fields" is the minimum for these.
- The others are views, by their names.

The records are commits of 1,000 groups in batches of ten, a tenth of them tombstones. A second log
has a fifth of other records: groups of ten members, tombstones of groups, and assignments of
consumers.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from kafka_log import noop, timed

from flexwire.answers.state import (
    group_members,
    groups,
    internal_records,
    lag,
    last_commits,
    open_log,
)
from flexwire.answers.state.log import LogSelection, typed_piece
from flexwire.codec import message
from flexwire.columnar import encode_record_pieces
from flexwire.logs import LogQuery, plan
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.session import session
from flexwire.tables.typed_records import TypedRecords
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.answers.state import InternalLog

    Rows = list[tuple[bytes, bytes | None]]

TOPIC = InternalTopic.CONSUMER_OFFSETS
RECORDS = ("OffsetCommit", "GroupMetadata", "ConsumerGroupCurrentMemberAssignment")
FIELDS = {
    "OffsetCommit": [
        *(f"key.{name}" for name in ("group", "topic", "partition")),
        *(f"value.{name}" for name in ("offset", "leader_epoch", "metadata")),
        *(f"value.{name}" for name in ("commit_timestamp", "expire_timestamp")),
    ]
}
COLUMNS = ("is_tombstone", "producer_id", "producer_epoch", "is_transactional")
# This many records are made one by one, and then repeated.
MADE = 10_000
READ = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"


def written(number: int, name: str, **fields: Any) -> bytes:
    """Return a key with its type in front, or a value with its version, the highest one."""
    made = message(name)
    version = made.entry.versions.highest if name.endswith("Value") else 0
    return number.to_bytes(2, "big") + made(**fields).encode(version)


def commits() -> Rows:
    rows: Rows = []
    for at in range(MADE):
        place = {"group": f"group-{at % 1000}", "topic": f"topic-{at % 300}", "partition": at % 32}
        value = written(
            4, "OffsetCommitValue", offset=at, leader_epoch=3, commit_timestamp=1_700_000_000_000
        )
        rows.append((written(1, "OffsetCommitKey", **place), value if at % 10 else None))
    return rows


def mixed() -> Rows:
    """Return four commits for each other record: groups of ten members, and assignments."""
    group: Any = message("GroupMetadataValue")
    members = [
        group.MemberMetadata(
            member_id=f"consumer-{at}",
            client_id="consumer",
            client_host="/10.0.0.1",
            subscription=bytes(40),
            assignment=bytes(60),
        )
        for at in range(10)
    ]
    assigned: Any = message("ConsumerGroupCurrentMemberAssignmentValue")
    topic = assigned.TopicPartitions(partitions=[*range(8)])
    others: Rows = [
        (
            written(2, "GroupMetadataKey", group="group-1"),
            written(
                4, "GroupMetadataValue", protocol_type="consumer", generation=3, members=members
            ),
        ),
        (
            written(8, "ConsumerGroupCurrentMemberAssignmentKey", group_id="g", member_id="m"),
            written(
                0,
                "ConsumerGroupCurrentMemberAssignmentValue",
                assigned_partitions=[topic, topic],
            ),
        ),
        (written(2, "GroupMetadataKey", group="group-1"), None),
    ]
    rows = commits()
    for at in range(0, MADE, 5):
        rows[at] = others[at // 5 % len(others)]
    return rows


def in_process(rows: Rows, count: int) -> float:
    """Return the seconds that one process needs for records, in batches as Spark sends them."""
    typed = TypedRecords(TOPIC, RECORDS)
    keys, values = (pa.array(side, pa.binary()) for side in zip(*rows, strict=True))
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for _ in range(count // MADE):
            typed.decode(keys, values, None)
        best = min(best, time.process_time() - began)
    return best


def write_log(root: Path, rows: Rows, count: int, partitions: int) -> Path:
    """Write one segment and links to it."""
    keys, values = (pa.array(side, pa.binary()) for side in zip(*rows, strict=True))
    first = root / f"{TOPIC.topic}-0" / f"{0:020}.log"
    first.parent.mkdir(parents=True)
    with first.open("wb") as log:
        for at in range(0, count, MADE):
            offsets = pa.array(range(at, at + MADE))
            times = pa.array([1_700_000_000_000 + one for one in range(at, at + MADE)])
            columns = {"key": keys, "value": values, "offset": offsets, "timestamp": times}
            for piece in encode_record_pieces(pa.table(columns), records_per_batch=10):
                log.write(piece)
    for number in range(1, partitions):
        directory = root / f"{TOPIC.topic}-{number}"
        directory.mkdir()
        (directory / first.name).hardlink_to(first)
    return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--cases", default="", help="names with commas between them; all by default"
    )
    given = parser.parse_args()
    count = given.records // MADE * MADE
    print(f"{'':28}{'M records/CPU s':>18}")
    spark = session("internal topics", master="local[2]", memory="2g")
    with tempfile.TemporaryDirectory() as place:
        for name, rows in (("commits", commits()), ("a mix", mixed())):
            print(f"{name + ', in one process':28}{1e-6 * count / in_process(rows, count):18.2f}")
            log = write_log(Path(place) / name, rows, count, given.partitions)
            cases = spark_cases(spark, log, Path(place))
            for what in given.cases.split(",") if given.cases else cases:
                each = marginal(cases[what], given.partitions, given.rounds)
                print(f"{f'{name}, {what}':28}{1e-6 * count / each:18.2f}", flush=True)
    spark.stop()


def marginal(case: Callable[[int], DataFrame], partitions: int, rounds: int) -> float:
    """Return the additional seconds for the records of one partition."""

    def of(upto: int) -> float:
        return timed(lambda: noop(case(upto)))

    # In the first round, workers start and Java compiles.
    pairs = [(of(1), of(partitions)) for _ in range(rounds + 1)][1:]
    found = statistics.median(large - small for small, large in pairs)
    return max(found, 1e-9) / (partitions - 1)


def spark_cases(
    spark: SparkSession, root: Path, place: Path
) -> dict[str, Callable[[int], DataFrame]]:
    """Return the queries over this many partitions."""

    def paths(upto: int) -> list[str]:
        return [str(root / f"{TOPIC.topic}-{number}") for number in range(upto)]

    def read(upto: int) -> DataFrame:
        return spark.read.format("kafka-log").schema(READ).load(paths(upto))

    def log(upto: int) -> InternalLog:
        return open_log(spark, paths(upto), TOPIC.value)

    def prebuilt(whole: DataFrame, asked: LogSelection, upto: int) -> DataFrame:
        file = place / f"{root.name}-{len(whole.columns)}.arrow"
        if not file.exists():
            prebuild(file, root, asked, whole.columns)
        tasks = spark.createDataFrame([(str(file),)] * upto, "file string").repartition(upto)
        return tasks.mapInArrow(from_file, whole.schema)

    whole = log(1).typed(RECORDS)
    some = log(1).typed(FIELDS, COLUMNS)
    structures = {*RECORDS, "is_later", "hides"}
    columns = [one for one in whole.columns if one not in structures]
    ends = [(f"topic-{at % 300}", at % 32, MADE) for at in range(9600)]
    ended = spark.createDataFrame(ends, "topic string, partition int, end_offset bigint")
    return {
        "read": read,
        "by rows": lambda upto: internal_records(read(upto), TOPIC.value, RECORDS),
        "typed": lambda upto: log(upto).typed(RECORDS),
        "prebuilt": partial(
            prebuilt, whole.drop("is_later", "hides"), LogSelection(RECORDS, columns)
        ),
        "fields": lambda upto: log(upto).typed(FIELDS, COLUMNS),
        "prebuilt fields": partial(
            prebuilt,
            some.drop("is_later", "hides"),
            LogSelection(FIELDS, [one for one in some.columns if one not in structures]),
        ),
        "last_commits": lambda upto: last_commits(log(upto)),
        "lag": lambda upto: lag(last_commits(log(upto)), ended),
        "groups": lambda upto: groups(log(upto)),
        "group_members": lambda upto: group_members(log(upto)),
    }


def prebuild(file: Path, root: Path, asked: LogSelection, columns: list[str]) -> None:
    """Write the batches that a task returns for the first partition."""
    [[piece]] = plan([str(root)], LogQuery(partitions={0}, piece_bytes=1 << 40))
    found = list(typed_piece(TOPIC.value, asked, columns, piece))
    made = [
        one.add_column(0, "partition", pa.nulls(len(one), pa.int32()).fill_null(0))
        for one in found
        if len(one)
    ]
    made = [one.select(columns) for one in made]
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, made[0].schema) as stream:
        for one in made:
            stream.write_batch(one)


def from_file(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for path in batch.column(0).to_pylist():
            with pa.memory_map(path) as file:
                yield from pa.ipc.open_stream(file)


if __name__ == "__main__":
    main()
