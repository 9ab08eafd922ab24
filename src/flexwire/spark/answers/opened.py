"""The output from which tables were opened: `OpenedOutput` answers questions from its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexwire.spark.answers.continued import task_of
from flexwire.spark.dataframes import of_files
from flexwire.tables.parquet import without_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame, SparkSession

    from flexwire.answers.asking.answer import Task
    from flexwire.tables.output import Output
    from flexwire.tables.parquet import ValueRanges
    from flexwire.tables.spec_places import Path


@dataclass(frozen=True, slots=True)
class OpenedOutput:
    """The output from which tables were opened, with its tables in their state at that moment."""

    spark: SparkSession
    found: Output
    records: DataFrame
    message: Callable[[str], DataFrame | None]
    # Answers ask the same question several times. Without this cache, all footers would be read
    # each time.
    _proven: dict[tuple[str, frozenset[str], object], bool] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def message_names(self) -> list[str]:
        """Return the messages for which there is a table."""
        return self.found.message_names()

    def of_files(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        task: Task,
        schema: pa.Schema,
        *,
        only: ValueRanges | None = None,
    ) -> DataFrame:
        """Apply ``task`` to these columns of the tables' files, and return the result."""
        if self.found.is_continued:
            task, columns = task_of(task, columns)
        return of_files(self.spark, self.found, names, columns, task, schema, only=only)

    def hold_only(self, name: str, paths: Collection[Path], value: object) -> bool:
        """Return whether the files prove that these columns contain only this value or null."""
        if name not in self.found.names:
            return True
        column_paths = frozenset(".".join(path) for path in paths)
        question = (name, column_paths, value)
        if question not in self._proven:
            self._proven[question] = self._is_proven(*question)
        return self._proven[question]

    def _is_proven(self, name: str, column_paths: frozenset[str], value: object) -> bool:
        footers = (part.metadata for part in self.found.dataset(name).get_fragments())
        groups = (
            footer.row_group(number)
            for footer in footers
            for number in range(footer.num_row_groups)
        )
        return all(_hold_only(group, column_paths, value) for group in groups)


def _hold_only(group: pq.RowGroupMetaData, column_paths: frozenset[str], value: object) -> bool:
    """Return whether a row group has all these columns, and its statistics confirm the value."""
    columns = map(group.column, range(group.num_columns))
    named = {without_lists(column.path_in_schema): column for column in columns}
    return column_paths <= named.keys() and all(
        _is_only(named[path], value) for path in column_paths
    )


def _is_only(column: pq.ColumnChunkMetaData, value: object) -> bool:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        # There are no statistics, or all values are null.
        return bool(column.num_values == (0 if statistics is None else statistics.null_count))
    return bool(statistics.min == statistics.max == value)
