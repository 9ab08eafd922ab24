"""Register the tables of an output in a Spark catalog as external tables.

The catalog contains the name, the location and the columns of each table. The files stay where the
analysis wrote them. Dropping such a table does not remove any files. Only tables that belong to the
same output are changed. A table belongs to the output if its comment names the output, or if its
location is inside the output.
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
    """Register the tables of the analysis in ``out``. Return their names in the catalog.

    ``database`` is "CATALOG.DATABASE", and is created if it is missing. `catalog_table` returns the
    name of each table. If a table's location and columns are unchanged, the table is kept, and
    Spark lists its files again. A table that the output no longer contains is dropped.

    Delta tables require a session with Delta's connector. Raises `FlexwireError` for Iceberg
    tables, which are already in a catalog, and if another table has the same name. Raises
    `AnalysisError` if Spark refuses.
    """
    place = to_database(database, "database")
    output = output_of(out)
    if is_iceberg(output.root):
        raise FlexwireError(f"{output.root} holds Iceberg tables, which are already in a catalog")
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
    """Raise `FlexwireError` if other sessions cannot find the tables that a session registers.

    If the session ``is_ours``, it ends with the analysis, and its catalog in memory ends with it.
    """
    if is_ours and is_in_memory(spark, place):
        raise FlexwireError(
            f"{place.catalog} exists only in the memory of this session, so its tables would be "
            "lost with the session; set up a metastore, with spark-submit --conf "
            f"{_IMPLEMENTATION}=hive"
        )
    if kind == DELTA and place.catalog == _SESSION and not spark.conf.get(_DELTA_CATALOG, ""):
        raise FlexwireError(
            "Delta tables can only be registered with Delta's Spark connector; add its jar, and "
            f"set {_DELTA_CATALOG}=org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )


def is_in_memory(spark: SparkSession, place: DatabaseName) -> bool:
    """Return whether a catalog certainly ends with its session."""
    if place.catalog != _SESSION or is_connect(spark):
        return False
    return spark.conf.get(_IMPLEMENTATION, "in-memory") == "in-memory"


def registration_note(spark: SparkSession, place: DatabaseName, names: Sequence[str]) -> str:
    """Return a printable note about the registered tables."""
    note = f"{plural(len(names), 'table')} registered in {place}"
    if is_in_memory(spark, place):
        note += ", an in-memory catalog that ends with this session"
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
                    f"{full} is not a table of this output; choose another database, or drop this "
                    "table"
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
    """Return whether a table belongs to this output. Delta tables do not have a comment."""
    return told.get(_COMMENT) == f"{_OWN}{out}" or _location(told).startswith(f"{out}/")


def _location(told: dict[str, str]) -> str:
    return told.get(_LOCATION, "").removeprefix("file:")


def _full(place: DatabaseName, name: str) -> str:
    return f"`{place.catalog}`.`{place.database}`.`{name}`"


def _describe(spark: SparkSession, full: str) -> dict[str, str]:
    """Return the catalog's description of a table, without the table's columns.

    `spark.catalog.listTables` fails in sessions that do not compile queries (code generation is
    off).
    """
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {full}").collect()
    return {row["col_name"]: row["data_type"] for row in rows if row["col_name"] in _TOLD}
