"""``python -m tests.spark.metastore write|read PLACE OUT CAPTURES…``: use a session with a
metastore.

The metastore is the Hive metastore that Spark includes, in a directory of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from flexwire.spark.analyze import analyze
from flexwire.spark.session import session

DATABASE = "spark_catalog.kafka"


def conf(place: Path) -> dict[str, str]:
    derby = f"jdbc:derby:;databaseName={place}/metastore;create=true"
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": derby,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={place}",
    }


def main(what: str, place: Path, out: Path, captures: list[str]) -> None:
    spark = session("metastore", master="local[1]", memory="1g", conf=conf(place))
    if what == "write":
        done = analyze(captures, out, spark=spark, register=DATABASE)
        sys.stdout.write(f"{done.notes[-1]}\n")
    else:
        for name in sorted(
            row["tableName"] for row in spark.sql(f"SHOW TABLES IN {DATABASE}").collect()
        ):
            sys.stdout.write(f"{name}: {spark.table(f'{DATABASE}.{name}').count()}\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
