"""The state of share groups in the log of `__share_group_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state import share_state as state_of
from flexwire.answers.state.commits import readable_end
from flexwire.answers.state.share_state import combined_batches
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.SHARE_STATE
COLUMNS = (
    Column("group", pa.string(), "the share group", heading="Group", is_about=True),
    Column("topic", pa.string(), "the topic",
           "if the cluster's metadata does not contain the name of the topic",
           heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the topic's id"),
    Column("partition", pa.int32(), "the partition", heading="Partition", kind="id", is_about=True),
    Column("start_offset", pa.int64(),
           "the start offset: all records before this offset have been processed; -1 if the group "
           "has read no record yet",
           "if the value is unknown", heading="Start"),
    Column("end_offset", pa.int64(), "the end of the partition's log", "if the log was not read",
           heading="End"),
    Column("lag", pa.int64(),
           "the number of offsets from the start offset to the high watermark (or to the end if "
           "the high watermark is unknown) that have not been processed",
           "if one of these offsets is null, or if the log does not show how many offsets have "
           "been processed",
           heading="Lag"),
    Column("done", pa.int64(), "how many offsets after the start offset have been processed",
           "if the log does not contain this number, as before Kafka 4.2",
           heading="Processed after start"),
    Column("deliveries", pa.int32(),
           "the highest number of deliveries of any batch at or after the start offset",
           "if there are no batches",
           heading="Most deliveries"),
    Column("batches", pa.int64(), "the number of batches at or after the start offset; all "
           "records of a batch have the same state",
           "if the value is unknown", heading="Batches"),
    Column("snapshot_time", _TIME, "when the last snapshot was written",
           "if no record contains this time", heading="Snapshot"),
    Column("is_known", pa.bool_(),
           "false if compaction removed a record, or if the log lacks the snapshot to which an "
           "update belongs", heading="Known"),
)  # fmt: skip


@returns(COLUMNS)
def share_state(tables: AnalysisTables) -> DataFrame | None:
    """Return the partitions of share groups, as share coordinators recorded them.

    The state consists of the last snapshot and the updates of its epoch. The answer
    ``group_members`` lists the members of share groups if the log of `__consumer_offsets` was read.
    """
    logs = tables.internal
    state = None if logs is None else logs.view(_TOPIC, state_of)
    if logs is None or state is None:
        return None
    ends = logs.ends(_TOPIC)
    complete_count = F.when(F.col("delivery_complete_count") >= 0, F.col("delivery_complete_count"))
    batches = combined_batches(F.col("state_batches"), F.col("start_offset"))
    lag = F.when(
        F.col("start_offset") >= 0,
        F.try_subtract(
            F.try_subtract(readable_end(F.col("start_offset")), F.col("start_offset")),
            F.col("done"),
        ),
    )
    rows = state.join(logs.topic_names(), "topic_id", "left").join(
        ends, ["topic", "partition"], "left"
    )
    return rows.withColumns(
        {
            "group": F.col("group_id"),
            "done": complete_count.cast("bigint"),
            "deliveries": F.array_max(
                F.transform(batches, lambda batch: batch["delivery_count"].cast("int"))
            ),
            "batches": F.when(batches.isNotNull(), F.size(batches)).cast("bigint"),
            "snapshot_time": F.col("write_time"),
        }
    ).withColumn("lag", lag)


ANSWER = Answer(
    name="share_state",
    place=230,
    question="Up to which offset has each share group processed its partitions?",
    meaning=(
        "The state of each partition, as share coordinators wrote it to the log: its start offset, "
        "the number of later offsets that have been processed, and how often a batch was delivered."
    ),
    advice="Examine batches that were delivered many times. If no member can process a record, "
    "Kafka gives up on the record after group.share.delivery.count.limit deliveries.",
    row="a combination of a share group and a partition",
    columns=COLUMNS,
    order=("is_known", "-lag", "-deliveries", "group", "topic", "topic_id", "partition"),
    ask=share_state,
    picture=AnswerPicture("Lag, by share group and partition", "lag"),
    asks=(_TOPIC.topic,),
)
