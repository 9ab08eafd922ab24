"""Control records of logs: how transactions ended, which no consumer sees."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.logs.files import LogQuery
from flexwire.logs.planning import plan
from flexwire.logs.reading import Damaged, read_control_records
from flexwire.tasks import begin_task, map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.logs.reading import LogPiece

    Paths = str | Path | Sequence[str | Path]
    PieceReader = Callable[[LogPiece], Iterable[pa.RecordBatch]]

_READ: Final = ("offset", "timestamp", "producer_id", "producer_epoch", "is_transactional", "key")
_KEY: Final = "key"
SCHEMA: Final = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        **{name: (RECORD_COLUMNS | BATCH_COLUMNS)[name] for name in _READ[:4]},
        "is_commit": pa.bool_(),
    }
)
"""``is_commit`` is false of an abort."""

# The version and the type, int16 each; Kafka numbers an abort 0 and a commit 1.
_TYPE: Final = (2, 4)
_ABORT, _COMMIT = b"\0\0", b"\0\1"


def control_records(
    spark: SparkSession, paths: Paths, topics: Sequence[str] | None = None
) -> DataFrame:
    """Give the ends of transactions in logs: a row each, as `SCHEMA` has it.

    ``topics`` are all by default. Raises as `kafka-log` does for paths that have no log, and where
    a control batch is damaged: how its transaction ended nobody knows then.
    """
    return in_tasks(spark, paths, topics, _ends, SCHEMA)


def several(paths: Paths) -> list[str | Path]:
    """Give what may be one path as a list."""
    return [paths] if isinstance(paths, str | Path) else [*paths]


def in_tasks(
    spark: SparkSession,
    paths: Paths,
    topics: Sequence[str] | None,
    read: PieceReader,
    schema: pa.Schema,
    *,
    partitions: Collection[int] | None = None,
) -> DataFrame:
    """Have the pieces of logs read in tasks, and give what ``read`` makes of each."""
    planned = plan(several(paths), LogQuery(topics=topics, partitions=partitions))
    tasks = [(pickle.dumps(pieces),) for pieces in planned]
    rows = spark.createDataFrame(tasks, "pieces binary").repartition(max(1, len(tasks)))
    return map_in_arrow(rows, partial(_task, read, schema), schema)


def _task(
    read: PieceReader, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for packed in batch.column(0):
            # It comes from this program's own driver.
            for piece in pickle.loads(packed.as_py()):  # noqa: S301 - see above
                for made in read(piece):
                    place = {
                        "topic": piece.partition.topic,
                        "partition": piece.partition.partition,
                    }
                    columns = [
                        pa.repeat(pa.scalar(place[one.name], one.type), made.num_rows)
                        if one.name in place
                        else made.column(one.name)
                        for one in schema
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _ends(piece: LogPiece) -> Iterator[pa.RecordBatch]:
    for found in read_control_records(piece, _READ):
        if isinstance(found, Damaged):
            continue
        kinds = pc.binary_slice(found.column(_KEY), *_TYPE)
        is_end = pc.is_in(kinds, value_set=pa.array([_ABORT, _COMMIT], kinds.type))
        is_end = pc.and_(pc.fill_null(is_end, fill_value=False), found.column("is_transactional"))
        made = found.append_column("is_commit", pc.equal(kinds, pa.scalar(_COMMIT, kinds.type)))
        yield made.filter(is_end)
