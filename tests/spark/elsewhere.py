"""Ask about logs. The answers do not depend on where Spark runs or where the files are."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from flexwire.answers.cluster_history import partition_history
from flexwire.answers.state import (
    last_commits,
    open_log,
    open_transactions,
    transactional_commits,
    unreadable,
)
from flexwire.answers.state.cluster import cluster_state, metadata_records
from flexwire.answers.storage import storage
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.spark.archive import with_archive
from flexwire.spark.session import session
from flexwire.spark.settings import SMALL_CONF, SMALL_JAVA
from flexwire.tables.log_schema import LOG_SCHEMAS
from tests.spark.internal_topics.snapshots import VIEWS, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Told = dict[str, list[str]]


def everything(spark: SparkSession, files: str, out: str) -> Told:
    """Analyze captures and logs with all answers, and read views. Return the rows by name."""
    done = analyze([f"{files}/captures", f"{files}/logs"], out, spark=spark, answers="all")
    assert done.facts.logs is not None
    assert not done.facts.unanswered, done.facts.unanswered
    found = {name: shown(done.output.table(name).to_pylist(), files) for name in LOG_SCHEMAS}
    for one in done.facts.answers:
        found[one.name] = shown(done.output.table(f"answers/{one.name}").to_pylist(), files)
    found["asked again"] = rows_of(storage(open_tables(spark, out)), files)
    # The command reads these answers.
    bare = analyze([f"{files}/logs"], f"{out}-bare", spark=spark, answers="none")
    assert bare.facts.answers == ()
    return found | views(spark, f"{files}/logs")


def views(spark: SparkSession, logs: str) -> Told:
    """Return the views of two internal topics."""
    log = open_log(spark, logs, "consumer-offsets")
    state = cluster_state(spark, f"{logs}/__cluster_metadata-0")
    made = {
        "last_commits": last_commits(log),
        "transactional_commits": transactional_commits(log),
        "unreadable": unreadable(log, ["OffsetCommit"]),
        "open_transactions": open_transactions(spark, [logs]),
        "metadata_records": metadata_records(spark, logs),
        "partition_history": partition_history(cluster_state(spark, logs, oldest=True)),
    }
    for file, function in VIEWS.items():
        made[file] = view(file, function, state)
    return {name: rows_of(rows, logs) for name, rows in made.items()}


def rows_of(rows: DataFrame, files: str) -> list[str]:
    return shown([row.asDict(recursive=True) for row in rows.collect()], files)


def shown(rows: list[dict[str, Any]], files: str) -> list[str]:
    """Return rows in a fixed order, with files by their path below ``files``."""
    return sorted(repr(row).replace(files, "…") for row in rows)


def main(remote: str, files: str, out: str) -> None:
    """Run this in the process's own session, on this machine or on a Spark Connect server."""
    conf = {} if remote else with_archive(SMALL_JAVA | SMALL_CONF)
    spark = session("flexwire tests", master=remote or "local[2]", memory="1g", conf=conf)
    told = everything(spark, files, out)
    spark.stop()
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
