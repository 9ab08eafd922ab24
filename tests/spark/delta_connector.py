"""``python -m tests.spark.delta_connector OUT JARS``: read a Delta output with Spark's connector.

For each table, the program prints whether its rows equal those that deltalake reads. The program
does the same for tables that were registered by name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.spark.delta.output import output
from flexwire.spark.external_tables import register_tables
from flexwire.spark.publishing.catalogs import catalog_table
from flexwire.spark.session import session

if TYPE_CHECKING:
    import pyarrow as pa

PLACE = "spark_catalog.kafka"

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Without this setting, Spark reads a log of two lines with fifty tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
}


def main(out: Path, jars: str) -> None:
    spark = session("delta", master="local[1]", memory="1g", conf={**DELTA, "spark.jars": jars})
    ours = output(out)
    for name in ours.names:
        table, path = ours.table(name), out / "tables" / name
        compare(name, table, spark.read.format("delta").load(str(path)).toArrow())
    for _ in range(2):
        registered = register_tables(spark, out, PLACE)
    for name in ours.names:
        compare(name, ours.table(name), spark.table(f"{PLACE}.{catalog_table(name)}").toArrow())
    ledger = spark.table(f"{PLACE}.ledger").where("state = 'in'").count()
    sys.stdout.write(f"{len(registered)} registered, {ledger} in\n")
    spark.stop()


def compare(name: str, ours: pa.Table, theirs: pa.Table) -> None:
    rows = [sorted(map(repr, one.to_pylist())) for one in (ours, theirs.select(ours.column_names))]
    equal = rows[0] == rows[1] and len(theirs.column_names) == len(ours.column_names)
    sys.stdout.write(f"{name}: {len(rows[0])} rows, {'equal' if equal else 'DIFFERENT'}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
