"""The files that a task writes, one a table, handed over in the end."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from flexwire.spark.publishing.joining import WHOLE_BYTES
from flexwire.spark.publishing.manifest import PARTS, TABLES
from flexwire.tables.parquet import TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from flexwire.spark.publishing.drop import Drop
    from flexwire.spark.publishing.places import Place
    from flexwire.tables.records import Rows


def write_one_file(
    place: Place, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> None:
    """Write a table that is one file, of this name in a place; for the driver."""
    with tempfile.TemporaryDirectory() as scratch:
        local = Path(scratch, Path(name).name)
        with TableWriter(local, schema) as writer:
            for batch in batches:
                writer.write(batch)
        place.put(local, name)


class TableFiles:
    """The files that a task writes, one a table, all of one name; handed over in the end.

    Where the task is one of those that write part of each table, small files are to be joined.
    """

    def __init__(self, drop: Drop, name: str, *, is_part: bool = False) -> None:
        self._drop = drop
        self._is_part = is_part
        self._name = name
        self._open: dict[str, TableWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # the three that a context gets
        if error[0] is None:
            for table, writer in self._open.items():
                folder = PARTS if self._is_part and writer.size < WHOLE_BYTES else TABLES
                local = self._local(table)
                self._drop.put(local, table, self._name, writer.rows, folder=folder)

    def write(self, table: str, rows: Rows) -> None:
        """Write rows of a table."""
        self.begin(table, rows.schema).write(rows)

    def begin(self, table: str, columns: pa.Schema) -> TableWriter:
        """Give what writes a table, whose file there is then even without a row."""
        writer = self._open.get(table)
        if writer is None:
            writer = self._stack.enter_context(TableWriter(self._local(table), columns))
            self._open[table] = writer
        return writer

    def _local(self, table: str) -> Path:
        return self._drop.scratch / f"{table.replace('/', '-')}.parquet"
