"""Typed records of internal topics: in one process, and through Spark from a ``kafka-log`` segment.

``python benchmarks/internal_topics.py [--records 1000000] [--partitions 5] [--rounds 3]``. Seconds
are those of the processor, in Java and in all Python workers; of each case the least of all rounds.
Through Spark it is what a record more takes: the difference between all partitions and the first.
Partitions after the first are links to it. "read" is ``kafka-log`` alone, into a noop sink; "typed"
has it in it; "last commits" groups what that gives too.

The records are commits of 1,000 groups, a tenth of them tombstones, in batches of ten; and the same
where a fifth are groups of ten members, tombstones of groups, and assignments of consumers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from kafka_log import noop, timed
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.codec import message
from flexwire.columnar import encode_record_pieces
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.internal_topics import internal_records
from flexwire.spark.session import session
from flexwire.tables.typed_records import TypedRecords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Rows = list[tuple[bytes, bytes | None]]

TOPIC = InternalTopic.CONSUMER_OFFSETS
RECORDS = ("OffsetCommit", "GroupMetadata", "ConsumerGroupCurrentMemberAssignment")
# So many are made one by one, and then repeated.
MADE = 10_000
READ = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"


def written(number: int, name: str, **fields: Any) -> bytes:
    """Give a key with its type in front, or a value with its version, which is the highest."""
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
    """Give four commits to each other record: groups of ten members, and assignments."""
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
    """Give the seconds that one process takes for records, in batches as Spark sends them."""
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
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    count = given.records // MADE * MADE
    print(f"{'':24}{'M records/CPU s':>18}")
    spark = session("internal topics", master="local[2]", memory="2g")
    with tempfile.TemporaryDirectory() as place:
        for name, rows in (("commits", commits()), ("a mix", mixed())):
            print(f"{name + ', in one process':24}{1e-6 * count / in_process(rows, count):18.2f}")
            log = write_log(Path(place) / name, rows, count, given.partitions)
            for what, each in spark_cases(spark, log, given.partitions, given.rounds).items():
                print(f"{f'{name}, {what}':24}{1e-6 * count / each:18.2f}", flush=True)
    spark.stop()


def spark_cases(spark: SparkSession, log: Path, partitions: int, rounds: int) -> dict[str, float]:
    """Give the seconds that the records of one partition more take."""

    def rows(upto: int) -> DataFrame:
        reader = spark.read.format("kafka-log").option("partitions", f"0-{upto - 1}")
        return reader.schema(READ).load(str(log))

    def typed(upto: int) -> DataFrame:
        return internal_records(rows(upto), TOPIC.value, RECORDS)

    def committed(upto: int) -> DataFrame:
        commits = typed(upto).where("message = 'OffsetCommit' and error is null")
        key = [F.col(f"OffsetCommit.key.{one}") for one in ("group", "topic", "partition")]
        return commits.groupBy(*key).agg(F.max_by("OffsetCommit.value.offset", "offset"))

    found = {}
    for name, case in (("read", rows), ("typed", typed), ("last commits", committed)):
        pairs = [
            [timed(lambda upto=upto, case=case: noop(case(upto))) for upto in (1, partitions)]
            for _ in range(rounds + 1)
        ]
        # The first round starts workers, and has Java compile.
        small, large = (min(several) for several in zip(*pairs[1:], strict=True))
        found[name] = max(large - small, 1e-9) / (partitions - 1)
    return found


if __name__ == "__main__":
    main()
