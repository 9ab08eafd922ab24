"""Where share groups are, by the log of `__share_group_state`: `share_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

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
    Column("topic", pa.string(), "the topic", "where the cluster's metadata does not name its id",
           heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "its id"),
    Column("partition", pa.int32(), "the partition", heading="Partition", kind="id", is_about=True),
    Column("start_offset", pa.int64(), "below it all is done; -1 where nothing was read yet",
           "where it is not known", heading="Start"),
    Column("end_offset", pa.int64(), "the end of the partition's log", "where that was not read",
           heading="End"),
    Column("lag", pa.int64(), "from the one to the high watermark, or to the end where that is "
           "not known, without those between that are done",
           "with one of them, and where the log does not say how many are done", heading="Lag"),
    Column("done", pa.int64(), "how many from the start offset on are done",
           "where the log does not say it, as before Kafka 4.2", heading="Done after start"),
    Column("deliveries", pa.int32(), "how often the one that was delivered most often was, of the "
           "batches from the start offset on", "where there are none",
           heading="Deliveries, at most"),
    Column("batches", pa.int64(), "the batches from the start offset on, each with one fate",
           "where it is not known", heading="Batches"),
    Column("snapshot_time", _TIME, "when the last snapshot was written",
           "where no record says it", heading="Snapshot"),
    Column("is_known", pa.bool_(), "false where compaction removed what was there, or the snapshot "
           "of updates is not in the log", heading="Known"),
)  # fmt: skip


@returns(COLUMNS)
def share_state(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each partition of a share group, as its coordinator has it.

    It is the last snapshot with the updates of its epoch. Who is in share groups is in
    ``group_members``, where the log of `__consumer_offsets` was read.
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
    question="Where are share groups?",
    meaning="What share coordinators have of each partition: where it starts, what is done after "
    "that, and how often a batch was delivered.",
    advice="Look at what was delivered often: a record that no member can process is given up "
    "after group.share.delivery.count.limit deliveries.",
    row="a share group and partition",
    columns=COLUMNS,
    order=("is_known", "-lag", "-deliveries", "group", "topic", "topic_id", "partition"),
    ask=share_state,
    picture=AnswerPicture("Lag, by share group and partition", "lag"),
    asks=(_TOPIC.topic,),
)
