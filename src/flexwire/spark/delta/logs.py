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
    def place(self) -> OutputDirectory:
        """Where it and its files are."""
        return self.out.child(f"{TABLES}/{self.name}")

    def open(self) -> DeltaTable | None:
        """The table as it is now, if there is one."""
        return open_table(self.place)

    def add(self, files: Sequence[AddedFile], columns: pa.Schema, run: str) -> int:
        """Add files of an analysis with these columns; gives the version that has them.

        The table has the columns before the files: deltalake adds files that have more without a
        word, and no reader sees what is in them.
        """
        keys = [DAY, ANALYSIS] if has_days(self.name) else [ANALYSIS]
        kinds = {DAY: pa.date32(), ANALYSIS: pa.string()}
        every = pa.schema([*columns, *(pa.field(key, kinds[key]) for key in keys)])
        wanted = Schema.from_arrow(every)
        version: int = retry_commit(lambda: self._add(files, wanted, keys, run), self.place)
        return version

    def _add(self, files: Sequence[AddedFile], wanted: Schema, keys: list[str], run: str) -> int:
        table = self.open()
        if table is None:
            make_private(self.place)
            table = DeltaTable.create(
                table_url(self.place),
                wanted,
                mode="ignore",
                partition_by=keys,
                name=self.name,
                storage_options=storage_options(self.place),
            )
        missing = [one for one in wanted.fields if not _has(table.schema(), one)]
        if missing:
            table.alter.add_columns(missing)
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                one.name,
                one.size,
                {key: run if key == ANALYSIS else day_of(one.name) for key in keys},
                now,
                data_change=True,
                stats=json.dumps({"numRecords": one.rows}),
            )
            for one in files
        ]
        if actions:
            table.create_write_transaction(
                actions, "append", schema=table.schema(), partition_by=keys
            )
        return table.version()

    def analyses(self) -> set[str]:
        """The analyses that have files in it."""
        table = self.open()
        return set() if table is None else {one[ANALYSIS] for one in added_files(table)}

    def remove(self, runs: Collection[str]) -> None:
        """Take out the files of some analyses; the files themselves stay."""
        retry_commit(lambda: self._remove(runs), self.place)

    def _remove(self, runs: Collection[str]) -> None:
        table = self.open()
        found = (
            [] if table is None else [one for one in added_files(table) if one[ANALYSIS] in runs]
        )
        if table is None or not found:
            return
        keys = list(table.metadata().partition_columns)
        now = int(time.time() * 1000)
        table.create_write_transaction(
            [
                RemoveAction(
                    one["path"],
                    data_change=True,
                    deletion_timestamp=now,
                    size=one["size"],
                    partition_values={key: one[key] for key in keys},
                )
                for one in found
            ],
            "append",
            schema=table.schema(),
            partition_by=keys,
        )


def open_table(place: OutputDirectory) -> DeltaTable | None:
    """The table at a place, if there is one."""
    if place.path is not None and not (place.path / "_delta_log").is_dir():
        return None
    try:
        return DeltaTable(table_url(place), storage_options=storage_options(place))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise _told(error, place) from None


def make_private(place: OutputDirectory) -> None:
    """Make the directory of a table for its owner alone; deltalake's own are for all."""
    if place.path is not None:
        make_private_directory(place.path)


def retry_commit(change: Callable[[], Any], place: OutputDirectory) -> Any:
    """What a change of a log gives, tried again where another writer came between."""
    for left in reversed(range(_TRIES)):
        try:
            return change()
        except DeltaError as error:
            if not left:
                raise _told(error, place) from None
        except OSError as error:
            raise _told(error, place) from None
    return None


def _told(error: Exception, place: OutputDirectory) -> StorageError:
    return StorageError(reason_of(error), url=str(place), tried="commit to")


def added_files(table: DeltaTable) -> list[dict[str, Any]]:
    """The files of a table as it is: path, size, and the values that it is partitioned by."""
    actions = pa.table(table.get_add_actions(flatten=True))
    names = {"path": "path", "size": "size_bytes", ANALYSIS: f"partition.{ANALYSIS}"}
    if f"partition.{DAY}" in actions.column_names:
        names[DAY] = f"partition.{DAY}"
    columns = {name: actions[column].to_pylist() for name, column in names.items()}
    if DAY in columns:
        columns[DAY] = [None if one is None else one.isoformat() for one in columns[DAY]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _has(schema: Schema, wanted: Any) -> bool:
    """Whether a table has a column with all that is in it. `FlexwireError` for another type."""
    there = {one["name"]: one["type"] for one in json.loads(schema.to_json())["fields"]}
    if wanted.name not in there:
        return False
    return _covers(there[wanted.name], json.loads(wanted.to_json())["type"], wanted.name)


def _covers(old: Any, new: Any, path: str) -> bool:
    if isinstance(old, dict) and isinstance(new, dict) and old["type"] == new["type"]:
        if new["type"] == "array":
            return _covers(old["elementType"], new["elementType"], path)
        if new["type"] == "struct":
            there = {one["name"]: one["type"] for one in old["fields"]}
            found = [
                one["name"] in there
                and _covers(there[one["name"]], one["type"], f"{path}.{one['name']}")
                for one in new["fields"]
            ]
            return all(found)
    if old != new:
        raise FlexwireError(
            f"column {path} is {_kind(old)} in the table and would be {_kind(new)} now, which "
            "Delta does not change; choose another --out"
        )
    return True


def _kind(kind: Any) -> str:
    return str(kind["type"] if isinstance(kind, dict) else kind)
