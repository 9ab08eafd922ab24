"""Logs of internal topics, read and typed in one task: what no view asks for stays there.

Rows of a log that are typed by a function of rows cross from Python to Java, to Python and back.
Here a task reads its pieces of the log, leaves out the records of other types before it decodes
any, and gives only the columns and fields that are wanted; they cross once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.logs.reading import Damaged, read_piece
from flexwire.columnar.record_schema import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.internal_topics.control_records import in_tasks
from flexwire.tables.typed_records import HEAD_COLUMNS, Records, TypedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.capture.logs.reading import LogPiece

TRANSACTIONAL: Final = "is_transactional"
PLACE: Final = ("partition", "offset", "timestamp")
_KEY, _VALUE = "key", "value"
_LOGGER = logging.getLogger("flexwire")


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a log is asked for.

    Attributes:
        records: as in `internal_records`.
        columns: which columns besides those of ``records``.
        unreadable: the records that do not decode, of all types; otherwise those of ``records``
            that do.
        of_transactions: none but those of transactions.
    """

    records: Records
    columns: Sequence[str]
    unreadable: bool = False
    of_transactions: bool = False


def read_records(
    spark: SparkSession, paths: Sequence[str], topic: InternalTopic, asked: Asked
) -> DataFrame:
    """Read the records of an internal topic that are asked for, from logs as `kafka-log` does."""
    typed = TypedRecords(topic, asked.records)
    kinds = {"partition": pa.int32(), **RECORD_COLUMNS, **BATCH_COLUMNS, **HEAD_COLUMNS}
    columns = [(name, kinds[name]) for name in asked.columns]
    structures = [] if asked.unreadable else [typed.schema.field(one) for one in typed.records]
    schema = pa.schema([*columns, *structures])
    read = partial(typed_piece, topic.value, asked, schema.names)
    return in_tasks(spark, paths, (topic.topic,), read, schema)


def typed_piece(
    topic: str, asked: Asked, columns: Sequence[str], piece: LogPiece
) -> Iterator[pa.RecordBatch]:
    """Give what is asked for of a piece, but for the columns that all of a piece have alike."""
    typed = TypedRecords(InternalTopic(topic), asked.records)
    names = pa.array(typed.records, pa.string())
    known = RECORD_COLUMNS | BATCH_COLUMNS
    needed = {_KEY, _VALUE, *(one for one in columns if one in known)}
    if asked.of_transactions:
        needed.add(TRANSACTIONAL)
    for found in read_piece(piece, [one for one in known if one in needed]):
        if isinstance(found, Damaged):
            where = f"{piece.log.name}, byte {found.position}"
            _LOGGER.warning("%s: not read, as by a broker: %s", where, found.reason)
            continue
        batch = _of_interest(asked, typed, found)
        if not batch.num_rows:
            continue
        made = typed.decode(batch.column(_KEY), batch.column(_VALUE), None)
        there = dict(zip(typed.schema.names, made, strict=True))
        rows = there["error"].is_valid()
        if not asked.unreadable:
            rows = pc.and_not(pc.is_in(there["message"], names), rows)
        there |= {name: batch.column(name) for name in needed}
        given = [one for one in columns if one in there]
        batch = pa.RecordBatch.from_arrays([there[one] for one in given], names=given)
        yield batch if rows.true_count == len(rows) else batch.filter(rows)


def _of_interest(asked: Asked, typed: TypedRecords, found: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out the records that are surely not asked for."""
    if asked.of_transactions:
        found = found.filter(found.column(TRANSACTIONAL))
    if asked.unreadable:
        return found
    rows = typed.may_have(found.column(_KEY), found.column(_VALUE))
    return found if rows.all() else found.filter(pa.array(rows))
