"""The committed offsets of groups, for each partition.

``kafka-consumer-groups --reset-offsets --from-file`` reads lines that consist of a group, topic,
partition and offset, without a header (KIP-122, KIP-175). The tool exits with status 0 even if
something fails, so an unusable line would go unnoticed.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.internal_logs import with_stable_lag
from flexwire.answers.state import lag, last_commits
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables


_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_NONE: Final = "if the only commit is in an open transaction, or if the offset is unknown"
COLUMNS = (
    Column("group", pa.string(), "the group", heading="Group", is_about=True),
    Column("topic", pa.string(), "the topic", heading="Topic", is_about=True),
    Column("partition", pa.int32(), "the partition", heading="Partition", kind="id", is_about=True),
    Column("offset", pa.int64(), "the committed offset, from which the group continues", _NONE,
           heading="Offset"),
    Column("end_offset", pa.int64(), "the offset at the end of the partition's log",
           "if the log was not read", heading="End"),
    Column("lag", pa.int64(),
           "the number of offsets from the committed offset to the high watermark, as in "
           "kafka-consumer-groups, or to the end if the high watermark is unknown",
           "if ``offset`` or ``end_offset`` is null", heading="Lag"),
    Column("leader_epoch", pa.int32(),
           "the leader epoch of the last record that was read; -1 if the client sent no leader "
           "epoch", _NONE),
    Column("metadata", pa.string(), "the string that the client stored with the offset", _NONE),
    Column("commit_time", _TIME,
           "when the offset was committed, according to the coordinator's clock", _NONE,
           heading="Committed"),
    Column("expire_time", _TIME, "when the commit expires",
           "if the broker's offset retention determines when the commit expires"),
    Column("pending", pa.int64(), "the number of commits in transactions that have not ended",
           "if compaction may have removed the ends of transactions, or if the outcome of the "
           "commit depends on the Kafka release",
           heading="Pending"),
    Column("pending_offset", pa.int64(), "the highest offset in these commits",
           "if there are no such commits"),
    Column("is_known", pa.bool_(),
           "false if compaction may have removed a record that existed at the requested earlier "
           "moment, or if it depends on the Kafka release whether a commit counts as deleted",
           heading="Known"),
    Column("high_watermark", pa.int64(),
           "the high watermark, at which consumers stop; all replicas in the ISR have the records "
           "before this offset",
           "if replication-offset-checkpoint does not contain the high watermark, or if "
           "``--as-of`` specifies an earlier moment"),
    Column("is_watermark_exact", pa.bool_(),
           "true if the broker had stopped cleanly; otherwise the high watermark may be up "
           "to 5 seconds old", "if ``high_watermark`` is null"),
    Column("stable_offset", pa.int64(),
           "the last stable offset of the partition, computed from the open transactions in its "
           "log; read_committed consumers stop at this offset",
           "if ``end_offset`` is null, or if ``--as-of`` specifies offsets"),
    Column("stable_lag", pa.int64(),
           "the number of offsets from the committed offset to the last stable offset; 0 for a "
           "consumer beyond that offset, such as a read_uncommitted consumer",
           "if one of the two offsets is null, or if the committed offset is beyond the end of "
           "the partition",
           heading="Lag to stable offset"),
)  # fmt: skip


@returns(COLUMNS)
def group_offsets(tables: AnalysisTables) -> DataFrame | None:
    """Return the partitions for which groups committed offsets, as coordinators recorded them.

    To move groups to another cluster or to return them to an earlier state, set these offsets. A
    commit in a transaction counts once the transaction is committed, and is ``pending`` until then.
    Commits that were deleted or have expired are not counted. Commits do not show which consumers
    read only committed records. For such a consumer, ``stable_lag`` is the lag that the consumer
    can reduce.
    """
    logs = tables.internal
    commits = None if logs is None else logs.view(_TOPIC, last_commits)
    if logs is None or commits is None:
        return None
    # If ``pending`` is null, it is unknown which commits are pending. In Spark, the size of null is
    # -1.
    count = F.when(F.col("pending").isNotNull(), F.size("pending")).cast("bigint")
    greatest = F.array_max(F.transform("pending", lambda commit: commit["offset"]))
    rows = with_stable_lag(lag(commits, logs.ends(_TOPIC)), logs, _TOPIC)
    return rows.withColumns({"pending": count, "pending_offset": greatest})


ANSWER = Answer(
    name="group_offsets",
    place=210,
    question="Which offsets have the groups committed?",
    meaning=(
        "The last commit of each group for each partition. The commits that are furthest from the "
        "end of their partition come first. A commit in a transaction is pending until the "
        "transaction ends, and counts if the transaction is committed."
    ),
    advice="Before you reset or restore a group's offsets, write a plan with this command: "
    "'flexwire answers OUT group_offsets --reset-plan FILE'. Then apply the plan with "
    "'kafka-consumer-groups --reset-offsets --from-file FILE'. Do not use the CSV of this answer "
    "as the plan: Kafka's tool cannot read this CSV, but still exits with status 0.",
    row="a combination of a group and a partition",
    columns=COLUMNS,
    order=("is_known", "-lag", "-pending", "group", "topic", "partition"),
    shown=(
        "group",
        "topic",
        "partition",
        "offset",
        "end_offset",
        "lag",
        "stable_lag",
        "pending",
        "commit_time",
        "is_known",
    ),
    ask=group_offsets,
    picture=AnswerPicture("Lag, by group and partition", "lag"),
    asks=(_TOPIC.topic,),
    # A plan made from only some of the rows would not move the offsets of the other groups.
    most_rows=2_000_000,
)

ANSWER_NAME: Final = "group_offsets"
"""The answer whose rows are the source of an offset reset plan."""

_COLUMNS: Final = ("group", "topic", "partition", "offset")
# The tool splits the file into lines before it interprets quotes.
_LINE_BREAK: Final = "\n"


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """A file for ``--from-file``, and the numbers of rows that were left out of it.

    Attributes:
        text: the lines, each of which ends with a newline. The tool reads UTF-8.
        offsets: the number of lines.
        groups: the number of their groups.
        unknown: rows that were left out because the committed offset is unknown, or because a
            transaction may have an offset pending.
        pending: rows that were left out because a transaction that has not ended committed an
            offset.
        unwritable: rows that were left out because the tool cannot read their group's name.
    """

    text: str
    offsets: int
    groups: int
    unknown: int
    pending: int
    unwritable: int


def reset_plan(rows: pa.Table) -> ResetPlan:
    """Return the plan for the rows of the answer ``group_offsets``."""
    is_pending = pc.fill_null(pc.greater(rows["pending"], 0), fill_value=False)
    has_offset = pc.and_(rows["is_known"], pc.is_valid(rows["offset"]))
    is_known = pc.and_(has_offset, pc.is_valid(rows["pending"]))
    is_unknown = pc.and_(pc.invert(is_known), pc.invert(is_pending))
    settled = rows.filter(pc.and_(is_known, pc.invert(is_pending))).select([*_COLUMNS])
    has_break = pc.match_substring(settled["group"], _LINE_BREAK)
    lines = settled.filter(pc.invert(has_break)).sort_by(
        [(name, "ascending") for name in _COLUMNS[:3]]
    )
    text = io.StringIO()
    # Names are quoted but numbers are not, because a group can have any name.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator=_LINE_BREAK)
    writer.writerows(zip(*(column.to_pylist() for column in lines.columns), strict=True))
    return ResetPlan(
        text.getvalue(),
        offsets=lines.num_rows,
        groups=pc.count_distinct(lines["group"]).as_py(),
        unknown=pc.sum(is_unknown).as_py() or 0,
        pending=pc.sum(is_pending).as_py() or 0,
        unwritable=pc.sum(has_break).as_py() or 0,
    )
