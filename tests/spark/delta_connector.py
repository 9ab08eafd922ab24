"""``python -m tests.spark.delta_connector OUT JARS``: a Delta output as Spark's connector sees it.

It says of each table whether its rows are those that deltalake reads.
"""

from __future__ import annotations

import sys
from pathlib import Path

from flexwire.spark.delta.output import output
from flexwire.spark.session import session

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Fifty tasks for a log of two lines otherwise.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
}


def main(out: Path, jars: str) -> None:
    spark = session("delta", master="local[1]", memory="1g", conf={**DELTA, "spark.jars": jars})
    ours = output(out)
    for name in ours.names:
        table, path = ours.table(name), out / "tables" / name
        theirs = spark.read.format("delta").load(str(path)).toArrow()
        rows = [
            sorted(map(repr, one.to_pylist())) for one in (table, theirs.select(table.column_names))
        ]
        equal = rows[0] == rows[1] and len(theirs.column_names) == len(table.column_names)
        sys.stdout.write(f"{name}: {len(rows[0])} rows, {'equal' if equal else 'DIFFERENT'}\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
