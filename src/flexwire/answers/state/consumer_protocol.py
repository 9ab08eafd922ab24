"""What consumers gave their group as bytes: the topics they want, and the partitions they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from flexwire.columnar import decode_messages, message_type
from flexwire.protocol.nested import GROUP_MESSAGES
from flexwire.tables.typed_records import int16_in_front
from flexwire.tasks import begin_task, kept_columns, map_in_arrow, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

# By column of bytes: the message that is in it, and the field of it that is wanted.
OPENED: Final = {
    "subscription": (GROUP_MESSAGES["consumer"].subscription, "topics"),
    "assignment": (GROUP_MESSAGES["consumer"].assignment, "assigned_partitions"),
}


def open_consumer_protocol(rows: DataFrame) -> DataFrame:
    """Replace the bytes in ``subscription`` and ``assignment`` by what `OPENED` says.

    A client may put anything there: what is no such message is null.
    """
    made = pa.schema(
        {name: message_type(of).field(field).type for name, (of, field) in OPENED.items()}
    )
    kept = [one for one in rows.columns if one not in OPENED]
    schema = StructType([*kept_columns(rows, kept), *spark_schema(made)])
    return map_in_arrow(rows.select(*schema.names), _task, schema)


def _task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name, (message, field) in OPENED.items():
            versions, bodies = int16_in_front(columns[name].cast(pa.binary()))
            opened = decode_messages(message, bodies, versions, mode="PERMISSIVE").values
            # With the nulls of the messages themselves.
            columns[name] = pc.struct_field(opened, field)
        yield pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])
