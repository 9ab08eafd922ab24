"""Records of an internal topic that were captured: `captured_records`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.records import BY_NAME
from flexwire.arguments import refuse, to_choice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "producer_id",
    "producer_epoch",
    "is_transactional",
)
_READ: Final = (*COLUMNS, "source", "is_control")
# Offsets of what is produced are the producer's own, and a broker gives others.
_FETCHED: Final = "fetch"


def captured_records(records: DataFrame, topic: str) -> DataFrame:
    """Give what was fetched of an internal topic as rows for `internal_records`, each record once.

    Args:
        records: the table ``records`` of an analysis.
        topic: the topic's name, or that of its decoder.

    Followers fetch these topics from their leaders. What was captured are the records that were
    written in that time, not the log: no view says from them what the state is. Control records
    are left out. Raises `ArgumentError` for another table or topic.
    """
    of = BY_NAME[to_choice(topic, "topic", BY_NAME)]
    missing = {*_READ}.difference(records.columns)
    if missing:
        raise refuse("records", f"the columns {', '.join(sorted(missing))}", records.columns)
    is_wanted = (F.col("topic") == of.topic) & (F.col("source") == _FETCHED)
    is_record = F.col("offset").isNotNull() & ~F.col("is_control")
    found = records.where(is_wanted & is_record).select(*COLUMNS)
    return found.dropDuplicates(["partition", "offset"])
