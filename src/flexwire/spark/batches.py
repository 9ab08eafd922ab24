"""Arrow record batches of bounded size, from rows one after the other."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.types import StructType

    Row = tuple[Any, ...]

# A batch of a gigabyte passes through Spark, but a few at once do not fit in its default heap.
BATCH_BYTES = 16 * 1024 * 1024
BATCH_ROWS = 10_000
# PySpark 4.0 has no other time zone, and takes none.
_ZONE: Final = "timezone"
_UTC: Final[dict[str, Any]] = (
    {_ZONE: "UTC"} if _ZONE in signature(to_arrow_schema).parameters else {}
)


def record_batches(schema: pa.Schema, rows: Iterable[tuple[Row, int]]) -> Iterator[pa.RecordBatch]:
    """Batches of at most `BATCH_ROWS` rows that begin anew beyond `BATCH_BYTES`.

    Each row is a tuple in the order of the schema's columns, and beside it how many bytes of
    payload it holds; what else is in a row is small.
    """
    held: list[Row] = []
    weight = 0
    for row, size in rows:
        if held and (weight + size > BATCH_BYTES or len(held) == BATCH_ROWS):
            yield record_batch(schema, held)
            held, weight = [], 0
        held.append(row)
        weight += size
    if held:
        yield record_batch(schema, held)


def record_batch(schema: pa.Schema, rows: list[Row]) -> pa.RecordBatch:
    """A batch of rows, which are tuples in the order of the schema's columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, one.type) for column, one in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def row_tuples(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of batches as plain tuples."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def spark_schema(schema: pa.Schema) -> StructType:
    """The same schema as Spark has it; every column may be null."""
    return from_arrow_schema(schema)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The same schema as Arrow has it, with times in UTC."""
    return to_arrow_schema(schema, **_UTC)
