"""``python -m tests.spark.iceberg_connector OUT JARS``: read an output with Iceberg's Java code.

Spark reads the tables with Iceberg's runtime, through the SQLite catalog in OUT. For each table,
the program prints whether its rows equal those that flexwire reads. Then it merges the files of
`frames` as an engine's own maintenance does, and deletes rows by writing separate delete files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.errors import FlexwireError
from flexwire.spark.iceberg.output import output
from flexwire.spark.publishing.catalogs import OWN, catalog_table
from flexwire.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = f"spark.sql.catalog.{OWN.catalog}"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def conf(out: Path, jars: str) -> dict[str, str]:
    return {
        "spark.sql.extensions": EXTENSIONS,
        NAME: "org.apache.iceberg.spark.SparkCatalog",
        f"{NAME}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{NAME}.uri": f"jdbc:sqlite:{out}/catalog/catalog.db",
        f"{NAME}.warehouse": f"file://{out}/tables",
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "1",
    }


def rows_of(table: Any) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def compare(spark: SparkSession, out: Path) -> None:
    ours = output(out)
    for name in ours.names:
        table = ours.table(name)
        theirs = spark.table(f"{OWN}.{catalog_table(name)}").toArrow()
        rows = rows_of(table), rows_of(theirs.select(table.column_names))
        equal = rows[0] == rows[1] and theirs.column_names == table.column_names
        sys.stdout.write(f"{name}: {len(rows[0])} rows, {'equal' if equal else 'DIFFERENT'}\n")


def main(out: Path, jars: str) -> None:
    spark = session("iceberg", master="local[1]", memory="1g", conf=conf(out, jars))
    compare(spark, out)
    ledger, frames = spark.table(f"{OWN}.ledger"), spark.table(f"{OWN}.frames")
    both = frames.join(ledger.where("state = 'in'"), "analysis")
    sys.stdout.write(f"in: {both.count()} of {frames.count()}\n")
    early = frames.where("time < '2000-01-01'")
    sys.stdout.write(f"early: {early.count()} in {len(early.inputFiles())} files\n")
    call = f"call {OWN.catalog}.system.rewrite_data_files(table => '{OWN.database}.frames', "
    spark.sql(f"{call}options => map('rewrite-all', 'true'))")
    sys.stdout.write(f"files: {spark.table(f'{OWN}.frames.files').count()}\n")
    compare(spark, out)
    # An engine may store deleted rows in a separate file, which flexwire does not read.
    spark.sql(f"alter table {OWN}.frames set tblproperties ('write.delete.mode'='merge-on-read')")
    spark.sql(f"delete from {OWN}.frames where frame_index = 0")  # noqa: S608 - its own names
    try:
        output(out).table("frames")
    except FlexwireError as error:
        sys.stdout.write(f"refused: {error}\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
