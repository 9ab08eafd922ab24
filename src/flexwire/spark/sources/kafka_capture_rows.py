"""Rows of captures as Spark takes them: the columns asked for, in batches of bounded size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.errors import EncodeError
from flexwire.spark.batches import BATCH_BYTES, BATCH_ROWS
from flexwire.spark.functions.variant import VARIANT
from flexwire.spark.functions.variant_columns import struct_variants
from flexwire.tables.records import RunRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.tables.records import Rows

_BODY, _ERROR = "body", "error"


class CaptureRows:
    """Makes batches of a schema: names of a table's columns, in any order."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema: Final = schema
        self._is_variant = _BODY in schema.names and schema.field(_BODY).type == VARIANT

    def batches(self, found: Iterable[Rows]) -> Iterator[pa.RecordBatch]:
        """Give rows of the table in batches."""
        for rows in found:
            if not len(rows):
                continue
            each = max(1, rows.nbytes // len(rows))
            step = max(1, min(BATCH_ROWS, BATCH_BYTES // each))
            for start in range(0, len(rows), step):
                yield self._batch(rows.slice(start, step))

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        if isinstance(rows, RunRows):
            wanted = pa.schema([rows.schema.field(name) for name in self.schema.names])
            rows = replace(rows, schema=wanted).batch()
        elif self._is_variant:
            rows = _with_variants(rows)
        columns = [rows[name] for name in self.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _with_variants(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Give rows of a message with the body as a Variant; of one that is too long the reason."""
    bodies, reasons = rows[_BODY], rows[_ERROR]
    try:
        made = struct_variants(bodies)
    except EncodeError:
        made, reasons = _one_by_one(bodies, reasons)
    at, error = rows.schema.get_field_index(_BODY), rows.schema.get_field_index(_ERROR)
    rows = rows.set_column(error, rows.schema.field(error), reasons)
    return rows.set_column(at, pa.field(_BODY, VARIANT), made)


def _one_by_one(bodies: pa.Array, reasons: pa.Array) -> tuple[pa.Array, pa.Array]:
    made: list[pa.Array] = []
    told: list[str | None] = reasons.to_pylist()
    for row in range(len(bodies)):
        made.append(pa.nulls(1, VARIANT))
        try:
            made[-1] = struct_variants(bodies.slice(row, 1))
        except EncodeError as error:
            told[row] = told[row] or str(error)
    return pa.concat_arrays(made), pa.array(told, pa.string())
