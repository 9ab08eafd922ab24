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

from flexwire.answers.state.control_records import in_tasks
from flexwire.answers.state.last_of_keys import last_of_keys
from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.logs.reading import Damaged, read_piece
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.typed_records import HEAD_COLUMNS, Records, TypedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.logs.reading import LogPiece

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
        of_transactions: none but those of transactions; or where it is false, none that count
            only when a transaction ends, as tombstones do not.
        only_last: what a later record of its key replaces may be missing, as after compaction,
            but for its last tombstone, and what is there may be there twice.
    """

    records: Records
    columns: Sequence[str]
    unreadable: bool = False
    of_transactions: bool | None = None
    only_last: bool = False


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
    known = RECORD_COLUMNS | BATCH_COLUMNS
    needed = {_KEY, _VALUE, *(one for one in columns if one in known)}
    if asked.of_transactions is not None:
        needed.add(TRANSACTIONAL)
    read = [one for one in known if one in needed]
    found = _of_interest(asked, typed, piece, read)
    if not asked.only_last:
        for batch in found:
            yield _typed(asked, typed, columns, batch)[0]
        return
    unread: list[pa.Array] = []
    for batch in last_of_keys(found, _KEY, _VALUE):
        made, rows = _typed(asked, typed, columns, batch)
        if made.num_rows < batch.num_rows:
            unread.append(batch.column(_KEY).filter(pc.invert(rows)))
        yield made
    if unread:
        # The last does not decode, and one before it that does is what counts.
        keys = pa.concat_arrays(unread)
        for batch in _of_interest(asked, typed, piece, read, is_again=True):
            some = batch.filter(pc.is_in(batch.column(_KEY), keys))
            yield _typed(asked, typed, columns, some)[0]


def _typed(
    asked: Asked, typed: TypedRecords, columns: Sequence[str], batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, pa.BooleanArray]:
    """Type records that were read, and give those that are asked for, and which these are."""
    made = typed.decode(batch.column(_KEY), batch.column(_VALUE), None)
    there = dict(zip(typed.schema.names, made, strict=True))
    rows = there["error"].is_valid()
    if not asked.unreadable:
        names = pa.array(typed.records, pa.string())
        rows = pc.and_not(pc.is_in(there["message"], names), rows)
    there |= {name: batch.column(name) for name in batch.schema.names}
    given = [one for one in columns if one in there]
    batch = pa.RecordBatch.from_arrays([there[one] for one in given], names=given)
    return batch if rows.true_count == len(rows) else batch.filter(rows), rows


def _of_interest(
    asked: Asked,
    typed: TypedRecords,
    piece: LogPiece,
    columns: Sequence[str],
    *,
    is_again: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read the records of a piece but for those that are surely not asked for.

    Of what is read again nothing is told again.
    """
    only = asked.of_transactions is True
    for found in read_piece(piece, columns, of_transactions=only):
        if isinstance(found, Damaged):
            if not is_again:
                where = f"{piece.log.name}, byte {found.position}"
                _LOGGER.warning("%s: not read, as by a broker: %s", where, found.reason)
            continue
        batch = found
        if asked.of_transactions is False:
            rows = pc.invert(batch.column(TRANSACTIONAL))
            if rows.false_count:
                batch = batch.filter(pc.or_(rows, batch.column(_VALUE).is_null()))
        if not asked.unreadable:
            rows = typed.may_have(batch.column(_KEY), batch.column(_VALUE))
            batch = batch if rows.all() else batch.filter(pa.array(rows))
        if batch.num_rows:
            yield batch
