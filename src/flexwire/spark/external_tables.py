"""The tables of an output as external tables of a catalog of Spark's, found by their names.

The catalog holds a name, a place and columns; the files stay where the analysis put them. Dropping
such a table removes no file. Only tables of the same output are changed:
each has a comment that says so, or lies in that output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.arguments import DELTA, PARQUET
from flexwire.errors import AnalysisError, FlexwireError
from flexwire.facts.units import plural
from flexwire.spark.dataframes import output_of
from flexwire.spark.failures import SPARK_ERRORS
from flexwire.spark.publishing.catalogs import DatabaseName, catalog_table, to_database
from flexwire.storage.filesystems import reason_of
from flexwire.tables.output import LEDGER, is_delta, is_iceberg
from flexwire.tasks import is_connect, spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from flexwire.storage.output_directory import OutputDirectory


_OWN: Final = "flexwire: a table of "
_COMMENT, _LOCATION = "Comment", "Location"
_TOLD: Final = frozenset({_COMMENT, _LOCATION})
_SESSION: Final = "spark_catalog"
_IMPLEMENTATION: Final = "spark.sql.catalogImplementation"
_DELTA_CATALOG: Final = "spark.sql.catalog.spark_catalog"


def register_tables(spark: SparkSession, out: str | Path, database: str) -> list[str]:
    """Register the tables of the analysis in ``out``; return their names in the catalog.

    ``database`` is "CATALOG.DATABASE", and is made if it is missing. A table is registered by the
    name that `catalog_table` gives. A table whose place and columns are as before stays as it is,
    and Spark looks for its files anew. One that the output has no more is dropped.

    Delta tables take a session with Delta's connector. Raises `FlexwireError` for Iceberg tables,
    which are in a catalog already, and for a name that another table has; `AnalysisError` for what
    Spark refuses.
    """
    place = to_database(database, "database")
    output = output_of(out)
    if is_iceberg(output.root):
        raise FlexwireError(f"{output.root} has Iceberg tables, which are in their catalog already")
    kind = DELTA if is_delta(output.root) else PARQUET
    check_session(spark, place, kind)
    columns: dict[str, StructType | None] = {}
    where: dict[str, str] = {}
    for name in output.names:
        columns[catalog_table(name)] = None if kind == DELTA else spark_schema(output.schema(name))
        where[catalog_table(name)] = output.where(f"tables/{name}")
    if kind == DELTA:
        columns[LEDGER], where[LEDGER] = None, str(output.root.child(LEDGER))
    try:
        _register(spark, place, output.root, kind, columns, where)
    except SPARK_ERRORS as error:
        reason = reason_of(error)
        raise AnalysisError(
            f"{output.root} is complete, but its tables cannot be registered in {place}: {reason}"
        ) from error
    return sorted(where)


def check_session(
    spark: SparkSession, place: DatabaseName, kind: str, *, is_ours: bool = False
) -> None:
    """Raise `FlexwireError` if a session cannot register tables that others find.

    A session that ``is_ours`` ends with the analysis, and a catalog in its memory with it.
    """
    if is_ours and is_in_memory(spark, place):
        raise FlexwireError(
            f"{place.catalog} is in the memory of this session, and its tables would be gone with "
            f"it; give Spark a metastore, by spark-submit --conf {_IMPLEMENTATION}=hive"
        )
    if kind == DELTA and place.catalog == _SESSION and not spark.conf.get(_DELTA_CATALOG, ""):
        raise FlexwireError(
            "Delta tables are registered by Delta's connector; give Spark its jar, and set "
            f"{_DELTA_CATALOG}=org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )


def is_in_memory(spark: SparkSession, place: DatabaseName) -> bool:
    """Return whether a catalog is known to end with its session."""
    if place.catalog != _SESSION or is_connect(spark):
        return False
    return spark.conf.get(_IMPLEMENTATION, "in-memory") == "in-memory"


def registration_note(spark: SparkSession, place: DatabaseName, names: Sequence[str]) -> str:
    """Return what to say of tables that were registered."""
    note = f"{plural(len(names), 'table')} registered in {place}"
    if is_in_memory(spark, place):
        note += ", a catalog in memory that ends with this session"
    return note


def _register(
    spark: SparkSession,
    place: DatabaseName,
    out: OutputDirectory,
    kind: str,
    columns: dict[str, StructType | None],
    where: dict[str, str],
) -> None:
    spark.sql(f"CREATE DATABASE IF NOT EXISTS `{place.catalog}`.`{place.database}`")
    for name, schema in columns.items():
        full = _full(place, name)
        if spark.catalog.tableExists(full):
            told = _describe(spark, full)
            if not _is_own(told, out):
                raise FlexwireError(
                    f"{full} is a table of something else; choose another database, or drop it"
                )
            is_there = _location(told) == where[name]
            if is_there and (schema is None or spark.table(full).schema == schema):
                spark.sql(f"REFRESH TABLE {full}")
                continue
            spark.sql(f"DROP TABLE {full}")
        spark.catalog.createTable(
            full, path=where[name], source=kind, schema=schema, description=f"{_OWN}{out}"
        )
    for row in spark.sql(f"SHOW TABLES IN `{place.catalog}`.`{place.database}`").collect():
        full = _full(place, row["tableName"])
        is_left = row["tableName"] not in where and not row["isTemporary"]
        if is_left and _is_own(_describe(spark, full), out):
            spark.sql(f"DROP TABLE {full}")


def _is_own(told: dict[str, str], out: OutputDirectory) -> bool:
    """Return whether a table is of this output; one of Delta's keeps no comment."""
    return told.get(_COMMENT) == f"{_OWN}{out}" or _location(told).startswith(f"{out}/")


def _location(told: dict[str, str]) -> str:
    return told.get(_LOCATION, "").removeprefix("file:")


def _full(place: DatabaseName, name: str) -> str:
    return f"`{place.catalog}`.`{place.database}`.`{name}`"


def _describe(spark: SparkSession, full: str) -> dict[str, str]:
    """Return what the catalog says of a table itself.

    `spark.catalog.listTables` fails in sessions that do not compile queries.
    """
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {full}").collect()
    return {row["col_name"]: row["data_type"] for row in rows if row["col_name"] in _TOLD}
