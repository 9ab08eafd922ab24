"""Transactions that should have ended, by the logs of coordinators: `hanging_transactions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import Picture, ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.answers.open_transactions import opened
from flexwire.spark.internal_topics import transactions
from flexwire.spark.internal_topics.hanging_transactions import NOW, hanging_by
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.TRANSACTIONS
_NOBODY: Final = "where no coordinator whose log was read has it"
COLUMNS = (
    Column("topic", pa.string(), "a topic that it wrote to", "where it has written to none"),
    Column("partition", pa.int32(), "the partition", "with ``topic``"),
    Column("transactional_id", pa.string(), "the transactional id", _NOBODY),
    Column("state", pa.string(), "its state, as Kafka names it", _NOBODY),
    Column("producer_id", pa.int64(), "the producer's id"),
    Column("producer_epoch", pa.int16(), "the producer's epoch"),
    Column("first_offset", pa.int64(), "where it begins in the partition; consumers with "
           "read_committed wait there", "where the partition's log was not read"),
    Column("open_since", _TIME, "when it began", "where no record says it"),
    Column("timeout_ms", pa.int32(), "after how long its coordinator should have aborted it",
           _NOBODY),
    Column("open_us", pa.int64(), "how long it was open when the last record of any internal topic "
           "was written, in microseconds", "with ``open_since``"),
    Column("reason", pa.string(), "why it should have ended"),
    Column("is_known", pa.bool_(), "false where no coordinator that was read has it, and not all "
           "partitions of __transaction_state were read: another may have it. True is no proof for "
           "logs that were copied one after the other while brokers ran"),
)  # fmt: skip


def hanging_transactions(tables: AnalysisTables) -> DataFrame:
    """Give a row for each partition of a transaction that should have ended.

    A coordinator aborts what is past its timeout; one that did not is there. And a partition may
    have a transaction open of which no coordinator knows (KIP-664). "Now" is when the last record
    of any internal topic was written, or the moment that is asked for, and where offsets say that
    of each log of a coordinator. Logs that were copied one
    after the other, while a broker ran, may show one that hangs and does not. As of offsets of
    coordinators' logs those that no coordinator knows are not there.
    """
    logs = tables.internal
    known = None if logs is None else logs.view(_TOPIC, transactions)
    newest = None if logs is None else logs.newest(_TOPIC)
    if logs is None or known is None or newest is None:
        return no_rows(tables.frames, COLUMNS)
    now = logs.now(_TOPIC, F.col("log_partition"))
    found = hanging_by(known.withColumn(NOW, F.timestamp_micros(now)), opened(logs, _TOPIC))
    is_known = F.col("state").isNotNull() | F.lit(logs.has_all(_TOPIC))
    ours = F.coalesce(NOW, F.lit(newest))
    open_us = F.unix_micros(ours) - F.unix_micros("open_since")
    made = found.withColumns({"open_us": open_us, "is_known": is_known})
    return made.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "hanging_transactions",
    "Which transactions should have ended?",
    "Transactions that are open past their timeout, or that no coordinator knows of: consumers "
    "with read_committed get nothing after their first offset, and compaction stops there.",
    "Where one is past its timeout, see whether its coordinator runs. Before you abort one that no "
    "coordinator has, see that kafka-transactions find-hanging lists it too: an abort takes its "
    "records away from readers for good.",
    "a transaction and partition",
    COLUMNS,
    ("-is_known", "-open_us", "topic", "partition", "producer_id"),
    (
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partition", "Partition", "count", is_about=True),
        ShownColumn("transactional_id", "Transactional id"),
        ShownColumn("state", "State"),
        ShownColumn("producer_id", "Producer id", "id", is_about=True),
        ShownColumn("first_offset", "First offset", "count"),
        ShownColumn("open_since", "Open since", "moment"),
        ShownColumn("open_us", "Open for", "us"),
        ShownColumn("reason", "Why"),
        ShownColumn("is_known", "All coordinators read", "flag"),
    ),
    hanging_transactions,
    Picture("How long it was open", "open_us"),
    asks=(_TOPIC.topic,),
)
