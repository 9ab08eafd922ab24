"""From frames of one message to its table: typed nested columns, or the bytes and the reason.

Row by row, through the objects of `flexwire.tables.messages`: the reference of the tables that
`flexwire.tables.messages` gives in columns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from flexwire.tables.message_schema import NEEDED, table_schema
from flexwire.tables.messages import Bodies
from flexwire.tasks import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame


def decode_bodies(
    frames: DataFrame, name: str, *, show_credentials: bool = False, release: str | None = None
) -> DataFrame:
    """The table of one message, from the frames (with payloads) that carry it.

    ``release`` is that of the captured brokers, where it is known.
    """
    task = partial(_decode, Bodies(name, release, show_credentials))
    return map_in_arrow(frames.select(*NEEDED.names), task, table_schema(name, release))


def _decode(bodies: Bodies, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for _, rows in bodies.decode(batch):
            yield rows
