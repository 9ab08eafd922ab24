"""Add small analyses to tables without Spark, using the files that tasks would hand over."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.spark.delta.output import DeltaTables
from flexwire.spark.delta.staging import grown_staging
from flexwire.spark.publishing.manifest import settle
from flexwire.storage.input_file import InputFile
from flexwire.tables.message_schema import table_schema
from flexwire.tables.parquet import TableWriter
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from flexwire.spark.delta.staging import GrownStaging
    from flexwire.storage.output_directory import OutputDirectory

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
MESSAGE = "messages/ApiVersionsRequest"


class Killed(BaseException):
    """End a process immediately, without any cleanup."""


def delta_staging(
    out: OutputDirectory, *arguments: Any, **options: Any
) -> AbstractContextManager[GrownStaging]:
    """Make a place for an analysis that adds to the Delta tables in ``out``."""
    return grown_staging(DeltaTables(out), *arguments, **options)


def remove_lease(out: OutputDirectory) -> None:
    """Take the lease from a run in a store, so that another run can begin."""
    out.remove([entry.name for entry in out.entries("_lease/")])


def sources(*names: str) -> list[InputFile]:
    return [InputFile(f"/captures/{name}", 5, name) for name in names]


def put(writing: GrownStaging, table: str, columns: pa.Schema, rows: list[dict[str, Any]]) -> None:
    """Hand over a part of a table, as a task does."""
    with tempfile.TemporaryDirectory() as scratch:
        local = Path(scratch, "part.parquet")
        with TableWriter(local, columns, writing.task_output.constants) as writer:
            writer.write(pa.RecordBatch.from_pylist(rows, columns))
        name = "0123456789abcdef-000000-0000.parquet"
        writing.task_output.put(local, table, name, writer.rows)


def write(writing: GrownStaging, text: str, time: datetime = NOON) -> None:
    """Write the files of an analysis of one frame, with this client id."""
    frame = {"time": time, "client_id": text}
    put(writing, "frames", FRAMES_TABLE, [frame])
    seen = {"first_time": time, "last_time": time, "client": text}
    put(writing, "connections", CONNECTIONS_TABLE, [seen])
    put(writing, MESSAGE, table_schema("ApiVersionsRequest"), [{**frame, "body": {}}])
    settle(writing.files, writing.task_output.files)
    writing.files.write("facts.json", json.dumps(text).encode())


def analyze(out: OutputDirectory, text: str, time: datetime = NOON, *, append: bool = True) -> bool:
    """Analyze the input ``text``. Return whether it was new."""
    with delta_staging(out, sources(text), lambda _: text, append=append) as writing:
        if writing.known_run:
            return False
        write(writing, text, time)
        writing.publish()
    return True
