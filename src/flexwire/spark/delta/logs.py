"""One Delta table: made, widened, added to and removed from, all by its log alone."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from flexwire.errors import FlexwireError, StorageError
from flexwire.spark.delta.layout import DAY, TABLES, day_of, has_days, storage_options, table_url
from flexwire.storage.filesystems import reason_of
from flexwire.storage.local import make_private_directory
from flexwire.tables.keys import ANALYSIS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from flexwire.storage.output_directory import OutputDirectory

# Another analysis may have come between; then the log is read again.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file to add: its name below the table's directory, its bytes and its rows."""

    name: str
    size: int
    rows: int


@dataclass(frozen=True, slots=True)
class TableLog:
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
        """Add files of an analysis with these columns; gives the version that has them.

        The table has the columns before the files: deltalake adds files that have more without a
        word, and no reader sees what is in them.
        """
        keys = [DAY, ANALYSIS] if has_days(self.name) else [ANALYSIS]
        kinds = {DAY: pa.date32(), ANALYSIS: pa.string()}
        all_columns = pa.schema([*columns, *(pa.field(key, kinds[key]) for key in keys)])
        table_schema = Schema.from_arrow(all_columns)
        version: int = retry_commit(
            lambda: self._add(files, table_schema, keys, run), self.directory
        )
        return version

    def _add(
        self, files: Sequence[AddedFile], table_schema: Schema, keys: list[str], run: str
    ) -> int:
        table = self.open()
        if table is None:
            make_private(self.directory)
            table = DeltaTable.create(
                table_url(self.directory),
                table_schema,
                mode="ignore",
                partition_by=keys,
                name=self.name,
                storage_options=storage_options(self.directory),
            )
        missing = [field for field in table_schema.fields if not _has(table.schema(), field)]
        if missing:
            table.alter.add_columns(missing)
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                file.name,
                file.size,
                {key: run if key == ANALYSIS else day_of(file.name) for key in keys},
                now,
                data_change=True,
                stats=json.dumps({"numRecords": file.rows}),
            )
            for file in files
        ]
        if actions:
            table.create_write_transaction(
                actions, "append", schema=table.schema(), partition_by=keys
            )
        return table.version()

    def analyses(self) -> set[str]:
        """Return the analyses that have files in it."""
        table = self.open()
        return set() if table is None else {file[ANALYSIS] for file in added_files(table)}

    def remove(self, runs: Collection[str]) -> None:
        """Take out the files of some analyses; the files themselves stay."""
        retry_commit(lambda: self._remove(runs), self.directory)

    def _remove(self, runs: Collection[str]) -> None:
        table = self.open()
        files = (
            [] if table is None else [file for file in added_files(table) if file[ANALYSIS] in runs]
        )
        if table is None or not files:
            return
        keys = list(table.metadata().partition_columns)
        now = int(time.time() * 1000)
        table.create_write_transaction(
            [
                RemoveAction(
                    file["path"],
                    data_change=True,
                    deletion_timestamp=now,
                    size=file["size"],
                    partition_values={key: file[key] for key in keys},
                )
                for file in files
            ],
            "append",
            schema=table.schema(),
            partition_by=keys,
        )


def open_table(directory: OutputDirectory) -> DeltaTable | None:
    """Return the table at a place, if there is one."""
    if directory.path is not None and not (directory.path / "_delta_log").is_dir():
        return None
    try:
        return DeltaTable(table_url(directory), storage_options=storage_options(directory))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise _commit_error(error, directory) from None


def make_private(directory: OutputDirectory) -> None:
    """Make the directory of a table for its owner alone; deltalake's own are for all."""
    if directory.path is not None:
        make_private_directory(directory.path)


def retry_commit(change: Callable[[], Any], directory: OutputDirectory) -> Any:
    """Return the result of a change of a log; retry it if another writer came between."""
    for tries_left in reversed(range(_TRIES)):
        try:
            return change()
        except DeltaError as error:
            if not tries_left:
                raise _commit_error(error, directory) from None
        except OSError as error:
            raise _commit_error(error, directory) from None
    return None


def _commit_error(error: Exception, directory: OutputDirectory) -> StorageError:
    return StorageError(reason_of(error), url=str(directory), tried="commit to")


def added_files(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the files of a table in its current state: path, size and partition values."""
    actions = pa.table(table.get_add_actions(flatten=True))
    names = {"path": "path", "size": "size_bytes", ANALYSIS: f"partition.{ANALYSIS}"}
    if f"partition.{DAY}" in actions.column_names:
        names[DAY] = f"partition.{DAY}"
    columns = {name: actions[column].to_pylist() for name, column in names.items()}
    if DAY in columns:
        columns[DAY] = [None if day is None else day.isoformat() for day in columns[DAY]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _has(schema: Schema, field: Any) -> bool:
    """Return whether a table has a column with all its fields; `FlexwireError` for another type."""
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
            f"column {path} is {_kind(old)} in the table and would be {_kind(new)} now, which "
            "Delta does not change; choose another --out"
        )
    return True


def _kind(kind: Any) -> str:
    return str(kind["type"] if isinstance(kind, dict) else kind)
