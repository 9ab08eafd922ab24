"""What groups have committed, partition by partition: `group_offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import Picture, ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.answers.open_transactions import with_stable_lag
from flexwire.spark.internal_topics import lag, last_commits
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_NONE: Final = "where only a transaction that has not ended committed one, or it is not known"
COLUMNS = (
    Column("group", pa.string(), "the group"),
    Column("topic", pa.string(), "the topic"),
    Column("partition", pa.int32(), "the partition"),
    Column("offset", pa.int64(), "the offset that it committed: where it goes on", _NONE),
    Column("end_offset", pa.int64(), "the end of the partition's log", "where that was not read"),
    Column("lag", pa.int64(), "from the committed offset to the high watermark, as "
           "kafka-consumer-groups has it, or to the end where that is not known",
           "with ``offset`` or ``end_offset``"),
    Column("leader_epoch", pa.int32(), "the leader epoch of what it read last; -1 where the client "
           "gave none", _NONE),
    Column("metadata", pa.string(), "what the client wrote beside it", _NONE),
    Column("commit_time", _TIME, "when it was committed, by the coordinator's clock", _NONE),
    Column("expire_time", _TIME, "when it expires", "where the broker's retention says it"),
    Column("pending", pa.int64(), "commits of transactions that have not ended",
           "where compaction may have removed how they ended, or releases of Kafka differ"),
    Column("pending_offset", pa.int64(), "the greatest offset of these", "where there are none"),
    Column("is_known", pa.bool_(), "false where compaction may have removed what was there at an "
           "earlier moment, or where releases of Kafka differ about a deleted commit"),
    Column("high_watermark", pa.int64(), "where consumers stop reading: what all replicas in the "
           "ISR have", "where replication-offset-checkpoint does not say it, and at an earlier "
           "moment"),
    Column("is_watermark_exact", pa.bool_(), "true where the broker had stopped in order; else the "
           "high watermark may be 5 seconds old", "with ``high_watermark``"),
    Column("stable_offset", pa.int64(), "the partition's last stable offset, by the transactions "
           "that its log has open: consumers that read committed stop there", "with "
           "``end_offset``, and as of an offset"),
    Column("stable_lag", pa.int64(), "from the committed offset to that one; 0 of who is past it, "
           "as a consumer that reads uncommitted may be", "with one of them, and of a commit "
           "beyond the end"),
)  # fmt: skip


def group_offsets(tables: AnalysisTables) -> DataFrame:
    """Return a row for each partition that a group has committed, as coordinators had it.

    These are the offsets to set where groups are moved to another cluster, or back to where they
    were. A commit of a transaction counts once that is committed, and is ``pending`` until then.
    Commits that were deleted or have expired are not there. The commits do not say who reads
    committed: of such a consumer the lag that it can do something about is ``stable_lag``.
    """
    logs = tables.internal
    commits = None if logs is None else logs.view(_TOPIC, last_commits)
    if logs is None or commits is None:
        return no_rows(tables.frames, COLUMNS)
    # Of null, which is not known, the size is -1.
    count = F.when(F.col("pending").isNotNull(), F.size("pending")).cast("bigint")
    greatest = F.array_max(F.transform("pending", lambda one: one["offset"]))
    made = with_stable_lag(lag(commits, logs.ends(_TOPIC)), logs, _TOPIC)
    made = made.withColumns({"pending": count, "pending_offset": greatest})
    return made.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "group_offsets",
    "Which offsets have groups committed?",
    "The last commit of each group for each partition, those furthest from the end first; what a "
    "transaction commits counts once it has ended, and is pending until then.",
    "Before a move or a reset, write a plan with flexwire answers OUT group_offsets --reset-plan "
    "FILE, and set it with kafka-consumer-groups --reset-offsets --from-file FILE. That tool does "
    "not take the CSV of this answer, and ends with status 0 all the same.",
    "a group and partition",
    COLUMNS,
    ("is_known", "-lag", "-pending", "group", "topic", "partition"),
    (
        ShownColumn("group", "Group", is_about=True),
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partition", "Partition", "id", is_about=True),
        ShownColumn("offset", "Offset", "count"),
        ShownColumn("end_offset", "End", "count"),
        ShownColumn("lag", "Lag", "count"),
        ShownColumn("stable_lag", "To the stable offset", "count"),
        ShownColumn("pending", "Pending", "count"),
        ShownColumn("commit_time", "Committed", "moment"),
        ShownColumn("is_known", "Known", "flag"),
    ),
    group_offsets,
    Picture("Lag, by group and partition", "lag"),
    asks=(_TOPIC.topic,),
    # A plan of some of them would leave the other groups where they are.
    most_rows=2_000_000,
)
