"""One Delta table. All changes (new columns, new files, removed files) are made in its log."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from flexwire.errors import FlexwireError
from flexwire.spark.delta.grown import GrownTable, commit_error, retry_commit
from flexwire.spark.delta.layout import DAY, TABLES, day_of, has_days, storage_options, table_url
from flexwire.storage.filesystems import report_failures
from flexwire.storage.local import make_private_directory
from flexwire.tables.keys import ANALYSIS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from flexwire.spark.delta.grown import AddedFile
    from flexwire.storage.output_directory import OutputDirectory

CONFIGURATION: Final = {"delta.checkpointInterval": "10"}
"""An append reads each table's commits since its last checkpoint. Spark uses the same interval."""


def add_action(
    file: AddedFile, values: Mapping[str, str | None] | None = None, *, is_new: bool = True
) -> AddAction:
    """Return the Delta log action that adds a file. Merging files adds no new rows."""
    stats = file.stats or json.dumps({"numRecords": file.rows})
    now = int(time.time() * 1000)
    return AddAction(file.name, file.size, values or {}, now, data_change=is_new, stats=stats)


@dataclass(frozen=True, slots=True)
class TableLog(GrownTable):
    """The log of the table ``name`` below ``out``."""

    out: OutputDirectory
    name: str

    @property
    def directory(self) -> OutputDirectory:
        """The directory of the table and its files."""
        return self.out.child(f"{TABLES}/{self.name}")

    def open(self) -> DeltaTable | None:
        """Return the table in its current state, if there is one."""
        return open_table(self.directory)

    def add(self, files: Sequence[AddedFile], columns: pa.Schema, run: str) -> int:
        """Add files of an analysis with these columns; return the table version that contains them.

        The columns are added to the table before the files. Otherwise deltalake would silently add
        files with additional columns, and no reader would see these columns.
        """
        own = [field for field in columns if field.name != ANALYSIS]
        days = [pa.field(DAY, pa.date32())] if has_days(self.name) else []
        table_schema = Schema.from_arrow(pa.schema([*own, *days, pa.field(ANALYSIS, pa.string())]))
        return retry_commit(
            lambda: self._add(files, table_schema, run), self.directory, (DeltaError,)
        )

    def _add(self, files: Sequence[AddedFile], table_schema: Schema, run: str) -> int:
        table = self.open()
        if table is None:
            make_private(self.directory)
            table = DeltaTable.create(
                table_url(self.directory),
                table_schema,
                mode="ignore",
                partition_by=[DAY] if has_days(self.name) else None,
                name=self.name,
                configuration=CONFIGURATION,
                storage_options=storage_options(self.directory),
            )
        if not files:
            return table.version()
        missing = [field for field in table_schema.fields if not _has(table.schema(), field)]
        if missing:
            table.alter.add_columns(missing)
        # Earlier releases also partitioned tables by analysis.
        keys = list(table.metadata().partition_columns)
        values = [{key: run if key == ANALYSIS else day_of(f.name) for key in keys} for f in files]
        commit(table, [add_action(f, value) for f, value in zip(files, values, strict=True)])
        return table.version()

    def analyses(self, runs: Collection[str]) -> set[str]:
        """Return those of the given analyses that have rows in the table."""
        table = self.open()
        if table is None:
            return set()
        analyses: set[str] = set()
        for file in added_files(table):
            # A file that we merged contains only analyses with the state "in", or analyses that
            # were all replaced together.
            if not is_joined(file["path"]) or file["one_of"] in runs:
                analyses |= self.analyses_of(file) & {*runs}
        return analyses

    def analyses_of(self, file: Mapping[str, Any]) -> set[str]:
        """Return the analyses that have rows in a file. Only a merged file must be read."""
        if file[ANALYSIS] is not None:
            return {file[ANALYSIS]}
        system, root = self.directory.arrow()
        with report_failures(self.directory.url, "read"):
            column = pq.read_table(
                f"{root}/{file['path']}", columns=[ANALYSIS], filesystem=system, partitioning=None
            )
        return {*column[ANALYSIS].unique().to_pylist()}

    def own_files(self, run: str) -> list[dict[str, Any]] | None:
        """Return the files of an analysis, or None if a file also has rows of other analyses."""
        table = self.open()
        files = [] if table is None else added_files(table)
        for file in files:
            may_have = (file["one_of"] or run) <= run <= (file["last_of"] or run)
            if file[ANALYSIS] is None and may_have and run in self.analyses_of(file):
                return None
        return [file for file in files if file[ANALYSIS] == run]

    def remove(self, runs: Collection[str]) -> None:
        """Remove the rows of these analyses from the table, but keep the files."""
        retry_commit(lambda: self._remove({*runs}), self.directory, (DeltaError,))

    def _remove(self, runs: set[str]) -> None:
        table = self.open()
        if table is None:
            return
        files, has_mixed = [], False
        for file in added_files(table):
            analyses = self.analyses_of(file)
            if analyses <= runs:
                files.append(file)
            elif analyses & runs:
                has_mixed = True
        if has_mixed:
            # Another program has merged files of these analyses with files of other analyses.
            names = ", ".join(f"'{run}'" for run in sorted(runs))
            table.delete(f"{ANALYSIS} in ({names})")
        elif files:
            commit(table, removals(table, files))


def removals(
    table: DeltaTable, files: Iterable[Mapping[str, Any]], *, is_change: bool = True
) -> list[RemoveAction]:
    """Return the actions that remove files; ``is_change`` is false if they were only merged."""
    keys = list(table.metadata().partition_columns)
    now = int(time.time() * 1000)
    return [
        RemoveAction(
            file["path"],
            data_change=is_change,
            deletion_timestamp=now,
            size=file["size"],
            partition_values={key: file[key] for key in keys},
        )
        for file in files
    ]


def commit(
    table: DeltaTable, actions: Sequence[AddAction | RemoveAction], tries: int | None = None
) -> None:
    """Commit actions to a table; ``tries`` limits deltalake's retries (None: its default)."""
    table.create_write_transaction(
        [*actions],
        "append",
        schema=table.schema(),
        partition_by=list(table.metadata().partition_columns),
        commit_properties=CommitProperties(max_commit_retries=tries),
    )


def open_table(directory: OutputDirectory) -> DeltaTable | None:
    """Return the table in a directory, if there is one."""
    if directory.path is not None and not (directory.path / "_delta_log").is_dir():
        return None
    try:
        return DeltaTable(table_url(directory), storage_options=storage_options(directory))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise commit_error(error, directory) from None


def make_private(directory: OutputDirectory) -> None:
    """Create a table's directory so that only its owner can access it.

    The deltalake library itself does not restrict access.
    """
    if directory.path is not None:
        make_private_directory(directory.path)


def added_files(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the files of a table in its current state: path, size, day, analysis and statistics.

    The analysis of a merged file is None. For such a file, ``one_of`` is the first analysis in the
    file, and ``last_of`` the last. If the statistics lack these analyses, ``one_of`` and
    ``last_of`` are None. ``last_time`` is the latest time in the file, or None if the statistics
    lack it.
    """
    actions = pa.table(table.get_add_actions(flatten=True))
    names = {
        "path": "path",
        "size": "size_bytes",
        "rows": "num_records",
        ANALYSIS: f"partition.{ANALYSIS}",
    }
    names |= {DAY: f"partition.{DAY}", "last_time": "max.last_time"}
    names |= {"one_of": f"min.{ANALYSIS}", "last_of": f"max.{ANALYSIS}"}
    nothing = [None] * actions.num_rows
    columns = {
        name: actions[column].to_pylist() if column in actions.column_names else nothing
        for name, column in names.items()
    }
    files = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for file in files:
        file[DAY] = None if file[DAY] is None else file[DAY].isoformat()
        file[ANALYSIS] = file[ANALYSIS] or _analysis_of(file["path"])
    return files


def _analysis_of(path: str) -> str | None:
    """Return the analysis from the name of a task's file."""
    first = path.partition("/")[0]
    return first.partition("=")[2] if first.startswith(f"{ANALYSIS}=") else None


JOINED: Final = "joined-"
"""The names of the files that `flexwire.spark.delta.upkeep` writes begin with this prefix."""


def is_joined(path: str) -> bool:
    """Return whether a file's name shows that `flexwire.spark.delta.upkeep` merged it.

    >>> is_joined("day=2026-11-22/joined-0.parquet"), is_joined("analysis=1/day=2026-11-22/a")
    (True, False)
    """
    return path.rpartition("/")[2].startswith(JOINED)


def _has(schema: Schema, field: Any) -> bool:
    """Return whether a table contains a column with all of its fields.

    Raises `FlexwireError` if the column has another type.
    """
    types = {column["name"]: column["type"] for column in json.loads(schema.to_json())["fields"]}
    if field.name not in types:
        return False
    return _covers(types[field.name], json.loads(field.to_json())["type"], field.name)


def _covers(old: Any, new: Any, path: str) -> bool:
    if isinstance(old, dict) and isinstance(new, dict) and old["type"] == new["type"]:
        if new["type"] == "array":
            return _covers(old["elementType"], new["elementType"], path)
        if new["type"] == "struct":
            types = {field["name"]: field["type"] for field in old["fields"]}
            covered = [
                field["name"] in types
                and _covers(types[field["name"]], field["type"], f"{path}.{field['name']}")
                for field in new["fields"]
            ]
            return all(covered)
    if old != new:
        raise FlexwireError(
            f"column {path} has the type {_kind(old)} in the table but {_kind(new)} in the new "
            "rows, and Delta cannot change this type; choose another --out"
        )
    return True


def _kind(kind: Any) -> str:
    return str(kind["type"] if isinstance(kind, dict) else kind)
