"""The place where an analysis writes before it publishes, and the forms of output.

| | on this machine | in a store |
|---|---|---|
| parquet | `local`: renamed into place | `stored`: one PUT names the current run | | delta |
`flexwire.spark.delta`: appended to tables that grow | the same | | iceberg |
`flexwire.spark.iceberg`: the same in a catalog | the same |
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.arguments import DELTA, ICEBERG, PARQUET, refuse, to_flag, to_text
from flexwire.facts.facts import Facts
from flexwire.logs.request_log.positions import number_in_order
from flexwire.spark.publishing.catalogs import (
    DatabaseName,
    IcebergCatalog,
    to_catalog,
    to_database,
)
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.spark.tables import mark_place
from flexwire.tables.output import Output, PartialOutput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexwire.logs.files import Partition
    from flexwire.logs.request_log import Zone
    from flexwire.logs.request_log.lines import RequestLogFile
    from flexwire.spark.request_log_growth import RequestLogGrowth
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.survey.request import Continuation


FORMATS: Final = (PARQUET, DELTA, ICEBERG)

REPORT, FACTS, AUDIT_CSV, AUDIT_JSON = "report.html", "facts.json", "audit.csv", "audit.json"
ANSWERS: Final = "answers"


class OutputOptions(NamedTuple):
    """The format of tables, whether they grow, the Iceberg catalog, and where to register them."""

    format: str
    append: bool
    catalog: IcebergCatalog = IcebergCatalog()
    register: DatabaseName | None = None


def to_format(
    format: object,  # noqa: A002 - the option's name
    append: object,
    catalog: object = None,
    register: object = None,
) -> OutputOptions:
    """Return the format of tables; raise `ArgumentError` for options that exclude each other."""
    named, added = to_text(format, "format"), to_flag(append, "append")
    if named not in FORMATS:
        raise refuse("format", "'parquet', 'delta' or 'iceberg'", format)
    if added and named == PARQUET:
        raise refuse(
            "append",
            "the delta or iceberg format, because an output in the parquet format is replaced",
            append,
        )
    if catalog is not None and named != ICEBERG:
        raise refuse("iceberg_catalog", "the iceberg format for a catalog", catalog)
    if register is not None and named == ICEBERG:
        raise refuse(
            "register",
            "the parquet or delta format, because Iceberg tables are already in a catalog",
            register,
        )
    database = None if register is None else to_database(register, "register")
    return OutputOptions(named, added, to_catalog(catalog), database)


@dataclass(frozen=True)
class Staging(ABC):
    """The staging area of one analysis into ``out``, until `publish`.

    If tables grow and already contain all of the input, ``known_run`` is the earlier analysis that
    added this input. The analysis then does nothing. ``known_files`` are the names of the input
    files that are already in the tables. ``growing_files`` are the names of files that are still
    being written. ``next_offsets`` are the offsets at which logs continue, or None if logs are read
    from the start. ``read_until`` receives, for each log, the offset after the last one that this
    analysis has read. ``continuation`` is given if captures continue from one analysis to the next.
    ``notes`` are messages for the user about other runs into ``out``. ``growth`` contains the new
    lines of request logs if the tables grow.
    """

    out: OutputDirectory
    known_run: str | None = field(default=None, kw_only=True)
    known_files: frozenset[str] = field(default=frozenset(), kw_only=True)
    growing_files: frozenset[str] = field(default=frozenset(), kw_only=True)
    next_offsets: Mapping[Partition, int] | None = field(default=None, kw_only=True)
    read_until: dict[Partition, int] = field(default_factory=dict, kw_only=True)
    continuation: Continuation | None = field(default=None, kw_only=True)
    notes: list[str] = field(default_factory=list, kw_only=True)
    growth: RequestLogGrowth | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def files(self) -> OutputDirectory:
        """The place where tasks and the driver put files, under their names in the output."""

    @property
    @abstractmethod
    def published(self) -> Output:
        """The output to read once it is published."""

    @abstractmethod
    def publish(self) -> None:
        """Publish all files as the output, in one step."""

    @cached_property
    def task_output(self) -> TaskOutput:
        """The place where tasks put their finished files."""
        return TaskOutput(self.files)

    @property
    def staged(self) -> Output:
        """The tables that have been written, before they are published."""
        return PartialOutput(self.files, self.task_output.counts)

    def mark(self, sources: Iterable[str]) -> None:
        """Mark the tables as complete, and record the names of their captures."""
        mark_place(self.files.child("tables"), sources)

    def of_logs(self, files: list[RequestLogFile], zone: Zone) -> list[RequestLogFile]:
        """Return the numbered request logs to read: ``files``, or new lines if the tables grow."""
        return number_in_order(files, zone) if self.growth is None else [*self.growth.files]

    @property
    def log_notes(self) -> tuple[str, ...]:
        """Notes for the user about request logs that contain lines that are not read."""
        return () if self.growth is None else self.growth.notes

    def known_facts(self) -> Facts:
        """Return the facts of the earlier analysis of the same input."""
        return Facts.from_json(json.loads(self.published.read(FACTS)))

    def remove_unnamed(self) -> None:
        """Remove the files that late attempts wrote after the tables were settled."""
        if leftover := [entry.name for entry in self.files.entries("_")]:
            self.files.remove(leftover)
