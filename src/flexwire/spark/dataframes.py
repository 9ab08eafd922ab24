"""Read a table of an analysis, by path or URL, as a DataFrame.

On this machine Spark's own Parquet reader reads the files, and it reads only the columns that a
query uses. Spark can read ``s3://`` only with Hadoop's connectors, which are additional jars with
their own settings. For ``s3://`` a Python data source is therefore used: tasks read the files
through the same store that wrote them. A task reads several small files, or about 128 MB of a large
one.

Metadata responses with a billion partitions, or fifty million record headers, are stored as
columns, and pyarrow reads them as columns. A task reduces them to a few rows, with which Spark
continues.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from flexwire.arguments import to_list, to_text
from flexwire.extras import needed_by
from flexwire.spark.settings import BATCH_BYTES, BATCH_ROWS
from flexwire.spark.tables import arrow_schema
from flexwire.storage.filesystems import report_failures
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.message_schema import conform
from flexwire.tables.output import Output, is_delta, is_iceberg, output
from flexwire.tables.parquet import ORIGIN, lacks_origin, without_lists
from flexwire.tasks import begin_task, map_in_arrow, register_source, spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from flexwire.tables.parquet import ValueRanges

    Task = Callable[[str, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


PART_BYTES: Final = 128 << 20
"""The largest part of a file that one task reads, in bytes. A larger file is shared among several
tasks, each of which reads some of its row groups.
"""
# The number of bytes that can be read in the time that it takes to open a file.
_OPEN_BYTES: Final = 4 << 20
_TASKS: Final = 64

# Repeated values take up few bytes in a file, but many in memory.
_BATCH_VALUES: Final = 4_000_000
_PLACE, _FILES = "place", "files"


def table(
    spark: SparkSession, out: str | Path, name: str, columns: Iterable[str] | None = None
) -> DataFrame:
    """Return the table ``name`` ("frames", "messages/FetchRequest") of the analysis in ``out``.

    ``columns`` limits the table to these columns, so that Spark reads less. Spark does not tell a
    data source which columns a query needs. Raises `FlexwireError` if there is no complete
    analysis, or no such table.
    """
    output = output_of(out)
    schema = output.schema(to_text(name, "name"))
    if columns is not None:
        named = to_list(columns, "columns", "a list of columns")
        schema = pa.schema([schema.field(column) for column in named])
    return read(spark, output, name, schema)


def output_of(out: str | Path) -> Output:
    """Return the complete output in ``out``, whether new analyses replace it or add to it."""
    if isinstance(out, str | Path) and is_delta(OutputDirectory(str(out))):
        with needed_by("reading Delta tables", "delta"):
            from flexwire.spark.delta.output import (  # noqa: PLC0415 - an extra
                output as delta_output,
            )

        return delta_output(out)
    if isinstance(out, str | Path) and is_iceberg(OutputDirectory(str(out))):
        with needed_by("reading Iceberg tables", "iceberg"):
            from flexwire.spark.iceberg.output import (  # noqa: PLC0415 - an extra
                output as iceberg_output,
            )

        return iceberg_output(out)
    return output(out)


def read(
    spark: SparkSession,
    output: Output,
    name: str,
    schema: pa.Schema | None = None,
    narrow: StructType | None = None,
) -> DataFrame:
    """Return a table with these columns (default: all). Columns missing from its files are null.

    ``narrow`` is a hint: a schema that contains only the columns and fields that are needed.
    """
    files = output.files(name)
    if schema is None:
        schema = output.schema(name)
    if files and output.root.path is not None:
        # Listing one directory is faster than looking up each file.
        whole = output.where(f"tables/{name}") if type(output) is Output else None
        paths = [whole] if whole else [str(output.root.child(file.name)) for file in files]
        keys = {key for file in files for key in _keys(file.name)}
        return _read_here(spark, paths, keys, narrow or spark_schema(schema))
    return read_by_tasks(spark, output, name, arrow_schema(narrow) if narrow else schema)


def read_by_tasks(spark: SparkSession, output: Output, name: str, schema: pa.Schema) -> DataFrame:
    """Return a table with these columns, read by tasks, wherever its files are."""
    register_source(spark, TablesDataSource)
    sizes = json.dumps([(file.name, file.size) for file in output.files(name)])
    reader = spark.read.format(TablesDataSource.name()).schema(spark_schema(schema))
    return reader.option(_PLACE, output.root.url).option(_FILES, sizes).load()


# In the caller's session, these options may have other values.
_STRICT: Final = {
    "ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "mergeSchema": "false",
    "recursiveFileLookup": "true",
}  # fmt: skip


def _read_here(
    spark: SparkSession, paths: Sequence[str], keys: set[str], schema: StructType
) -> DataFrame:
    """Return the table of files on this machine. ``keys`` are columns stored in the file names."""
    rows = spark.read.options(**_STRICT).schema(schema).parquet(*map(literal_path, paths))
    file = F.col("_metadata.file_path")
    told = {
        field.name: F.coalesce(
            field.name,
            F.nullif(F.regexp_extract(file, f"/{field.name}=([^/]+)/", 1), F.lit("")).cast(
                field.dataType
            ),
        )
        for field in schema
        if field.name in keys
    }
    return rows.withColumns(told) if told else rows


def literal_path(path: str) -> str:
    """Return a path with escapes, so that Hadoop interprets every character literally."""
    return re.sub(r"[][{}*?\\]", r"\\\g<0>", path)


def _keys(file: str) -> dict[str, str]:
    """Return the values of partition columns from the name of a file."""
    return dict(part.split("=", 1) for part in file.split("/") if "=" in part)


@dataclass(frozen=True, slots=True)
class ParquetFilePart:
    """Every ``of``-th row group of a file, starting with row group ``number``."""

    file: str
    number: int
    of: int

    def batches(
        self,
        place: str,
        columns: pa.Schema,
        only: ValueRanges | None = None,
        most_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the part with these columns. Columns that the file lacks are null.

        A batch contains a limited number of rows, and about `BATCH_BYTES` bytes. Row groups without
        any row in the ranges of ``only`` are not read. The other row groups are read whole.
        """
        directory = OutputDirectory(place)
        system, root = directory.arrow()
        # In a store, the columns of a file are requested in the order of their bytes.
        is_here = directory.path is not None
        with (
            report_failures(f"{place}/{self.file}", "read"),
            system.open_input_file(f"{root}/{self.file}") as stream,
            pq.ParquetFile(stream) as file,
        ):
            names = [name for name in columns.names if name in file.schema_arrow.names]
            leaves = _leaves(file.schema, {field.name: field.type for field in columns})
            keys = _keys(self.file)
            groups = [*range(self.number, file.num_row_groups, self.of)]
            if only is not None:
                groups = [
                    group for group in groups if only.may_be_in(file.metadata.row_group(group))
                ]
            rows = min(most_rows, _bounded_rows(file.metadata, {*names}))
            for batch in file.iter_batches(
                rows, row_groups=groups, columns=leaves, use_threads=is_here
            ):
                arrays = [
                    conform(batch.column(field.name), field.type)
                    if field.name in names
                    else _repeated(keys.get(field.name), len(batch), field.type)
                    for field in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def task_parts(files: Iterable[tuple[str, int]]) -> list[tuple[ParquetFilePart, ...]]:
    """Divide files, given by name and size, among tasks. Return the parts that each task reads.

    A task reads about `PART_BYTES` of a large file, or several small files. If there are fewer
    bytes in total, each task reads less, so that there are still about `_TASKS` tasks.
    """
    parts = []
    for file, size in files:
        of = 1 + size // PART_BYTES
        # Opening a file takes as long as reading `_OPEN_BYTES`.
        parts += [
            (ParquetFilePart(file, number, of), size // of + _OPEN_BYTES) for number in range(of)
        ]
    most = min(PART_BYTES, sum(cost for _, cost in parts) // _TASKS)
    tasks: list[list[ParquetFilePart]] = []
    space = -1
    for part, cost in parts:
        if cost > space:
            tasks.append([])
            space = most
        tasks[-1].append(part)
        space -= cost
    return [*map(tuple, tasks)]


@dataclass(frozen=True, slots=True)
class _FilePartition(InputPartition):
    """The files that one task reads."""

    parts: tuple[ParquetFilePart, ...]


class TablesDataSource(DataSource):
    """A Spark data source that reads the files of one table."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `read_by_tasks` uses for this source."""
        return "flexwire_tables"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the files that the options list."""
        files = [(str(file), int(size)) for file, size in json.loads(self.options[_FILES])]
        return _TablesReader(self.options[_PLACE], files, schema)


class _TablesReader(DataSourceReader):
    def __init__(self, place: str, files: list[tuple[str, int]], schema: StructType) -> None:
        self._place = place
        self._files = files
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [*map(_FilePartition, task_parts(self._files))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Without files, Spark would use a partition of its own class.
        if isinstance(partition, _FilePartition):
            for part in partition.parts:
                yield from part.batches(self._place, arrow_schema(self._schema))


def _leaves(schema: pq.ParquetSchema, wanted: Mapping[str, pa.DataType]) -> list[str]:
    """Return the paths of the columns in a file that hold the wanted columns and fields.

    If a file lacks a field of a structure, all fields of its column are read. Otherwise a structure
    without any known field would be lost, and with it the information about which rows are null.
    """
    paths: dict[str, dict[str, str]] = {}
    for path in (schema.column(number).path for number in range(len(schema))):
        paths.setdefault(path.partition(".")[0], {})[without_lists(path)] = path
    leaves: list[str] = []
    for name, of_column in paths.items():
        if name in wanted:
            fields = [*_fields(name, wanted[name])]
            is_known = all(field in of_column for field in fields)
            leaves += [of_column[field] for field in fields] if is_known else of_column.values()
    return leaves


def _fields(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the paths of the values of a column, without the path components for lists."""
    if pa.types.is_list(kind):
        yield from _fields(path, kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _fields(f"{path}.{field.name}", field.type)
    else:
        yield path


def _bounded_rows(footer: pq.FileMetaData, columns: set[str]) -> int:
    """Return how many rows of a file make up a batch of about the wanted size."""
    values = size = 1
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema.partition(".")[0] in columns:
                values += column.num_values
                size += column.total_uncompressed_size
    rows: int = footer.num_rows
    return max(1, min(rows * _BATCH_VALUES // values, rows * BATCH_BYTES // size))


def _repeated(value: str | None, count: int, kind: pa.DataType) -> pa.Array:
    """Return a column that the file lacks, filled with its directory's value, or with null."""
    return pa.repeat(
        pa.scalar(value, pa.string()).cast(kind) if value else pa.scalar(None, kind), count
    )


_MOST_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True)
class _TableParts:
    """The columns to read from a table, and the parts for each task."""

    name: str
    columns: pa.Schema
    tasks: tuple[tuple[ParquetFilePart, ...], ...]


def of_files(
    spark: SparkSession,
    output: Output,
    names: Sequence[str],
    columns: Sequence[str],
    task: Task,
    schema: pa.Schema,
    *,
    only: ValueRanges | None = None,
) -> DataFrame:
    """Apply ``task`` to these columns of tables. Return its rows as a DataFrame of ``schema``.

    Row groups without any row in the ranges of ``only`` are not read. The task receives all rows of
    the other row groups. `task_parts` divides each table among tasks, so one task can read several
    small tables.
    """
    tables = []
    for name in names:
        schema_read = output.schema(name)
        if lacks_origin(schema_read):
            # All files of this table were written by an older release.
            schema_read = schema_read.append(ORIGIN)
        parts = task_parts((file.name, file.size) for file in output.files(name))
        table_columns = pa.schema([schema_read.field(column) for column in columns])
        tables.append(_TableParts(name.rpartition("/")[2], table_columns, (*parts,)))
    count = max((len(table.tasks) for table in tables), default=1)
    numbers = spark.range(0, count, 1, count)
    return map_in_arrow(numbers, partial(_read, output.root.url, tables, task, only), schema)


def _read(
    place: str,
    tables: Sequence[_TableParts],
    task: Task,
    only: ValueRanges | None,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for number in chain.from_iterable(batch["id"].to_pylist() for batch in numbers):
        for table in tables:
            for part in table.tasks[number] if number < len(table.tasks) else ():
                batches = part.batches(place, table.columns, only, _MOST_ROWS)
                yield from task(table.name, batches)
