"""Transactions that should have ended, according to the logs of coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.internal_logs import open_transactions_of
from flexwire.answers.state import transactions
from flexwire.answers.state.partitions import NOW, hanging_by
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.TRANSACTIONS
_NOBODY: Final = "if no coordinator whose log was read knows of the transaction"
COLUMNS = (
    Column("topic", pa.string(), "a topic that the transaction wrote to",
           "if the transaction has written to no topic",
           heading="Topic", is_about=True),
    Column("partition", pa.int32(), "the partition", "if ``topic`` is null",
           heading="Partition", is_about=True),
    Column("transactional_id", pa.string(), "the transactional id", _NOBODY,
           heading="Transactional id"),
    Column("state", pa.string(), "the state of the transaction, in Kafka's terms",
           _NOBODY, heading="State"),
    Column("producer_id", pa.int64(), "the producer's id",
           heading="Producer id", kind="id", is_about=True),
    Column("producer_epoch", pa.int16(), "the producer's epoch"),
    Column("first_offset", pa.int64(),
           "the offset of the first record of the transaction in the partition; read_committed "
           "consumers wait at this offset",
           "if the partition's log was not read",
           heading="First offset"),
    Column("open_since", _TIME, "when the transaction began", "if no record contains this time",
           heading="Open since"),
    Column("timeout_ms", pa.int32(),
           "the timeout after which the coordinator should have aborted the transaction",
           _NOBODY),
    Column("open_us", pa.int64(),
           "the time from the start of the transaction to the last record of any internal topic, "
           "in microseconds", "if ``open_since`` is null", heading="Open for"),
    Column("reason", pa.string(), "the reason why the transaction should have ended",
           heading="Why"),
    Column("is_known", pa.bool_(),
           "false if no log of a coordinator contains the transaction, and not all partitions of "
           "__transaction_state were read: another coordinator may know of the transaction. If the "
           "logs were copied one after the other while brokers were running, the value true "
           "proves nothing",
           heading="All coordinators read"),
)  # fmt: skip


@returns(COLUMNS)
def hanging_transactions(tables: AnalysisTables) -> DataFrame | None:
    """Return the partitions of transactions that should have ended.

    A coordinator aborts a transaction that exceeds its timeout. The rows list transactions that the
    coordinator did not abort. A partition may also contain an open transaction that no coordinator
    knows of (KIP-664). "Now" is the time of the last record of any internal topic, or the requested
    moment. If offsets define the requested moment, each coordinator log has its own "now". If logs
    were copied one after the other while a broker was running, a transaction may appear to hang
    although it does not. If offsets define the requested moment, transactions that no coordinator
    knows of are left out.
    """
    logs = tables.internal
    transactions_seen = None if logs is None else logs.view(_TOPIC, transactions)
    newest = None if logs is None else logs.newest(_TOPIC)
    if logs is None or transactions_seen is None or newest is None:
        return None
    now = logs.now(_TOPIC, F.col("log_partition"))
    rows = hanging_by(
        transactions_seen.withColumn(NOW, F.timestamp_micros(now)),
        open_transactions_of(logs, _TOPIC),
    )
    is_known = F.col("state").isNotNull() | F.lit(logs.has_all(_TOPIC))
    ours = F.coalesce(NOW, F.lit(newest))
    open_us = F.unix_micros(ours) - F.unix_micros("open_since")
    return rows.withColumns({"open_us": open_us, "is_known": is_known})


ANSWER = Answer(
    name="hanging_transactions",
    place=260,
    question="Which transactions should have ended?",
    meaning="Transactions that are still open after their timeout, or that no coordinator knows "
    "of. Consumers with read_committed receive no records at or after the first offset of such a "
    "transaction, and compaction stops at this offset.",
    advice=(
        "If a transaction is past its timeout, check whether its coordinator is running. Before "
        "you abort a transaction that no coordinator knows of, check that 'kafka-transactions "
        "find-hanging' also lists the transaction. After an abort, read_committed consumers never "
        "receive the records of the transaction."
    ),
    row="a combination of a transaction and a partition",
    columns=COLUMNS,
    order=("-is_known", "-open_us", "topic", "partition", "producer_id"),
    ask=hanging_transactions,
    picture=AnswerPicture("How long transactions were open", "open_us"),
    asks=(_TOPIC.topic,),
)
