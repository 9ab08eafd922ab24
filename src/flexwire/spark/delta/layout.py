"""The places where the tasks of one analysis write files for tables that grow.

The names are the same as in any other analysis. ``tables/frames/X`` means ``X`` in this analysis's
directory in the table. All other files are in the directory of the run.

deltalake uses its own stores, written in Rust. These stores read the environment, but not profiles
or fsspec's settings. deltalake is therefore given the credentials of our S3 store. A commit to S3
is a PUT that fails if the object already exists; S3 and moto support this. Otherwise two writers
could both believe that they were first.

A file's statistics show which days it contains. Nearly always this is a single day, and the file
remains unchanged.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexwire.errors import AnalysisError, StorageError
from flexwire.facts.units import microseconds_of, moment_at
from flexwire.schema.catalog import catalog
from flexwire.storage.filesystems import open_store, report_failures, scheme_of
from flexwire.storage.output_directory import OutputDirectory, check_name
from flexwire.tables import schema
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.log_schema import LOG_SCHEMAS, LOG_TABLES
from flexwire.tables.output import MESSAGES, RUNS
from flexwire.tables.parquet import TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from flexwire.storage.store_listing import FileEntry


T = TypeVar("T")

TABLES: Final = "tables"
ALWAYS: Final = tuple(table.place for table in schema.TABLES if "<" not in table.place)
"""The tables that every analysis includes, whatever its input is."""

_GROWN: Final = tuple(table.place for table in schema.GROWN_TABLES)
_LOGGED: Final = tuple(table.place for table in schema.REQUEST_LOG_TABLES)
# A listing spends most of its time waiting for the store.
AT_ONCE: Final = 16


FIXED: Final = {
    table.place: table.columns
    for table in (
        *schema.TABLES,
        *schema.GROWN_TABLES,
        *schema.REQUEST_LOG_TABLES,
        *LOG_TABLES,
    )
}
"""The columns of those tables whose columns do not depend on the input."""


def possible_tables() -> list[str]:
    """Return every table that an analysis may write."""
    messages = (f"{MESSAGES}/{name}" for name in catalog().names())
    return [*ALWAYS, *_GROWN, *_LOGGED, *LOG_SCHEMAS, *messages]


def with_logs(tables: dict[str, list[T]]) -> dict[str, list[T]]:
    """If any log table has files, add the other log tables, with no files."""
    if any(name in tables for name in LOG_SCHEMAS):
        for name in LOG_SCHEMAS:
            tables.setdefault(name, [])
    return tables


def split(name: str) -> tuple[str, str]:
    """Split a name below the output into the name of the table and the rest.

    >>> split("tables/messages/FetchRequest/day=2026-11-22/a.parquet")
    ('messages/FetchRequest', 'day=2026-11-22/a.parquet')
    """
    parts = name.split("/")
    end = 3 if parts[1] == MESSAGES else 2
    return "/".join(parts[1:end]), "/".join(parts[end:])


@dataclass(frozen=True, slots=True)
class DeltaDirectory(OutputDirectory):
    """The directory of the run ``run`` in the grown output at ``url``."""

    run: str
    below: str = ""

    def __str__(self) -> str:
        return str(self._run_directory)

    @property
    def path(self) -> Path | None:
        """The directory of the run, if it is on this machine."""
        return self._run_directory.path

    @property
    def _run_directory(self) -> OutputDirectory:
        return OutputDirectory(self.url).child(f"{RUNS}/{self.run}")

    def child(self, name: str) -> Self:
        """Return the place ``name`` below this place."""
        check_name(name)
        return replace(self, below=f"{self.below}{name}/")

    def at(self, name: str) -> str:
        """Return the path below `url` for a name."""
        full = f"{self.below}{name}"
        if not full.startswith(f"{TABLES}/"):
            return f"{RUNS}/{self.run}/{full}"
        table, rest = split(full)
        return f"{TABLES}/{table}/{ANALYSIS}={self.run}/{rest}"

    def entries(self, prefix: str = "") -> Iterator[FileEntry]:
        """Yield the files of this analysis whose names begin with ``prefix``."""
        full = f"{self.below}{prefix}"
        if not full.startswith(TABLES):
            start = self.below
            for entry in self._run_directory.entries(full):
                yield entry._replace(name=entry.name[len(start) :])
        if f"{TABLES}/".startswith(full) or full.startswith(f"{TABLES}/"):
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="flexwire-list") as pool:
                for entries in pool.map(self._files, possible_tables()):
                    for entry in entries:
                        if entry.name.startswith(full):
                            yield entry._replace(name=entry.name[len(self.below) :])

    def _files(self, table: str) -> list[FileEntry]:
        start = f"{ANALYSIS}={self.run}/"
        entries = OutputDirectory(self.url).child(f"{TABLES}/{table}").entries(start)
        return [
            entry._replace(name=f"{TABLES}/{table}/{entry.name[len(start) :]}") for entry in entries
        ]

    def sweep(self, before: datetime) -> int:
        """Remove unfinished files in the directory of the run, but not in the shared tables."""
        return self._run_directory.sweep(before)


_SCHEMES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "abfs",
                   "abfss": "abfss"}  # fmt: skip
_AZURE: Final = {
    "AccountName": "azure_storage_account_name",
    "AccountKey": "azure_storage_account_key",
    "SharedAccessSignature": "azure_storage_sas_key",
    "BlobEndpoint": "azure_storage_endpoint",
}


def check_scheme(out: OutputDirectory) -> None:
    """Raise `StorageError` for an output that deltalake cannot write to."""
    if out.path is None and scheme_of(out.url) not in _SCHEMES:
        schemes = ", ".join(f"{scheme}://" for scheme in ("s3", "gs", "abfs"))
        raise StorageError(f"expected a local path, {schemes} for Delta tables", url=str(out))


def table_url(directory: OutputDirectory) -> str:
    """Return the URL of a table for deltalake."""
    if directory.path is not None:
        return str(directory.path)
    return f"{_SCHEMES[scheme_of(directory.url)]}://{directory.url.partition('://')[2]}"


def storage_options(directory: OutputDirectory) -> dict[str, str]:
    """Return options for deltalake, which override the environment."""
    scheme = scheme_of(directory.url)
    if scheme in {"s3", "s3a"}:
        with report_failures(directory.url, "open"):
            return _s3(directory.url)
    if scheme in {"az", "abfs", "abfss"}:
        return _azure()
    return {}


def _s3(url: str) -> dict[str, str]:
    store = open_store(url)
    client = store.wait(store.files.set_session)
    endpoint = str(client.meta.endpoint_url)
    options = {"AWS_REGION": str(client.meta.region_name).replace("aws-global", "us-east-1")}
    if not endpoint.endswith(".amazonaws.com"):
        options["AWS_ENDPOINT_URL"] = endpoint
    if endpoint.startswith("http:"):
        options["AWS_ALLOW_HTTP"] = "true"
    keys = None if store.files.anon else store.wait(_keys, client)
    if keys is None:
        return {**options, "AWS_SKIP_SIGNATURE": "true"}
    options |= {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key}
    return options | ({"AWS_SESSION_TOKEN": keys.token} if keys.token else {})


async def _keys(client: Any) -> Any:
    # The credentials may come from fsspec's settings, the environment, a profile or a role.
    credentials = client._request_signer._credentials  # noqa: SLF001 - no public API
    return None if credentials is None else await credentials.get_frozen_credentials()


def _azure() -> dict[str, str]:
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(setting.partition("=")[::2] for setting in text.split(";") if setting)
    options = {name: parts[part] for part, name in _AZURE.items() if part in parts}
    if options.get("azure_storage_endpoint", "").startswith("http:"):
        options["azure_allow_http"] = "true"
    return options


DAY: Final = "day"
MOST_DAYS: Final = 400
"""The largest number of days in one task's part of a table. Each day adds a directory and a file.
"""

_DAY_US: Final = 24 * 60 * 60 * 1_000_000
_OPEN: Final = 8  # each open file holds a row group
_ROWS: Final = 10_000
# The rows of these tables have no time, or describe a whole capture or log, which may span years.
_WITHOUT_DAYS: Final = frozenset({"packets", "audit", *_GROWN, *LOG_SCHEMAS})
_TIMES: Final = {"connections": "first_time"}


def has_days(table: str) -> bool:
    """Return whether a table is partitioned by day."""
    return table not in _WITHOUT_DAYS


def time_of(table: str) -> str:
    """Return the time column that determines the day of a table's rows."""
    return _TIMES.get(table, "time")


def day_of(name: str) -> str | None:
    """Return the day from the name of a file that `by_day` created.

    >>> day_of("tables/frames/day=2026-11-22/a.parquet")
    '2026-11-22'
    """
    return next((part[4:] for part in name.split("/") if part.startswith(f"{DAY}=")), None)


def by_day(local: Path, table: str, name: str, rows: int) -> Iterator[tuple[Path, str, int]]:
    """Split a finished file by day; yield each file, its name and row count (no files if empty)."""
    if not rows:
        return
    if not has_days(table) or day_of(name):
        # A file that was already split keeps its day.
        yield local, name, rows
        return
    time = time_of(table)
    with pq.ParquetFile(local) as file:
        first, last = _span(file, time)
        if first == last:
            yield local, f"{DAY}={_day(first, table)}/{name}", rows
            return
        days = _days(file, time)
        if len(days) > MOST_DAYS:
            raise AnalysisError(
                f"one task's part of {table} covers {len(days):,} days, but at most {MOST_DAYS} "
                "day partitions are possible; if the captured times are right, use the parquet "
                "format"
            )
        remaining = iter(days)
        while day_batch := list(islice(remaining, _OPEN)):
            yield from _cut(file, local, time, day_batch, name, table)


def _span(file: pq.ParquetFile, time: str) -> tuple[int, int]:
    """Return the first and last day, from the row-group statistics or else from the rows."""
    metadata = file.metadata
    at = file.schema_arrow.get_field_index(time)
    statistics = [
        metadata.row_group(group).column(at).statistics for group in range(file.num_row_groups)
    ]
    if not all(
        group_statistics is not None
        and group_statistics.has_min_max
        and not group_statistics.null_count
        for group_statistics in statistics
    ):
        days = _days(file, time)
        return days[0], days[-1]
    return min(_number(group_statistics.min) for group_statistics in statistics), max(
        _number(group_statistics.max) for group_statistics in statistics
    )


def _number(moment: datetime) -> int:
    return microseconds_of(moment) // _DAY_US


def _days(file: pq.ParquetFile, time: str) -> list[int]:
    days: set[int] = set()
    for batch in file.iter_batches(_ROWS, columns=[time]):
        days.update(_numbers(batch.column(0)).unique().to_pylist())
    return sorted(days)


def _numbers(times: pa.Array) -> pa.Array:
    micros = times.cast(pa.int64())
    # The result is rounded down, even for times before 1970.
    days = pc.divide(micros, _DAY_US)
    early = pc.less(micros, pc.multiply(days, _DAY_US))
    return pc.subtract(days, early.cast(pa.int64()))


def _day(number: int, table: str) -> str:
    try:
        return moment_at(number * _DAY_US).date().isoformat()
    except OverflowError:
        raise AnalysisError(
            f"{table} has rows with a capture time outside the years 1 to 9999, but day partitions "
            "need a year in this range; use the parquet format"
        ) from None


def _cut(
    file: pq.ParquetFile, local: Path, time: str, days: list[int], name: str, table: str
) -> Iterator[tuple[Path, str, int]]:
    writers = {
        day: TableWriter(local.with_name(f"{day}-{local.name}"), file.schema_arrow) for day in days
    }
    try:
        for batch in file.iter_batches(_ROWS):
            numbers = _numbers(batch.column(time))
            for day in set(numbers.unique().to_pylist()) & writers.keys():
                writers[day].write(batch.filter(pc.equal(numbers, day)))
        for writer in writers.values():
            writer.close()
    except BaseException:
        for writer in writers.values():
            writer.discard()
        raise
    for day, writer in writers.items():
        path = local.with_name(f"{day}-{local.name}")
        yield path, f"{DAY}={_day(day, table)}/{name}", writer.rows
