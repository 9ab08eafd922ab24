"""Compare each snapshot that Kafka wrote with our views of the log before it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ROOM = "flexwire.answers"
# Views whose files are named differently.
ELSEWHERE = {
    "partitions": "state.cluster_partitions",
    "producer_ids": "state.cluster",
    "scram": "cluster_credentials",
    "controllers": "cluster_features",
}
VIEWS = {
    "topics": "topics",
    "partitions": "partitions",
    "configs": "configs",
    "brokers": "brokers",
    "features": "features",
    "quotas": "client_quotas",
    "scram": "scram_users",
    "acls": "acls",
    "producer_ids": "producer_ids",
    "controllers": "controllers",
    "voters": "voters",
}
# Objects that no longer exist, which no snapshot contains.
OVER = {
    "topics": "deleted_offset is not null",
    "configs": "value is null",
    "features": "until_offset is not null or level = 0",
}
# Facts that a snapshot lacks: times of changes, and the brokers of producer id blocks.
UNSAID = ("changed_offset", "changed_time", "is_committed", "created_offset", "created_time")
OF_PRODUCER_IDS = ("broker", "broker_epoch")


def view(name: str, function: str, state: Any) -> DataFrame:
    file = ELSEWHERE.get(name, f"cluster_{name}")
    found: DataFrame = getattr(import_module(f"{ROOM}.{file}"), function)(state)
    return found


def compared(spark: SparkSession, logs: Path, most: int = 100) -> list[int]:
    """Compare the last ``most`` snapshots. Return the offsets of those with a log before them."""
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark
    from flexwire.logs.metadata import find_metadata  # noqa: PLC0415 - beside the next

    offsets = []
    for name, _ in find_metadata(logs).snapshots[-most:]:
        ours = cluster_state(spark, logs, offset=name.offset, oldest=True)
        theirs = cluster_state(spark, logs, offset=name.offset)
        assert theirs.snapshot == name
        if ours.start == name.offset:
            continue
        for file, function in VIEWS.items():
            expected = living(file, view(file, function, theirs))
            assert living(file, view(file, function, ours)) == expected, (name, function)
        offsets.append(name.offset)
    return offsets


def living(file: str, rows: DataFrame) -> list[str]:
    """Return the rows of existing objects, sorted, without facts that only a log contains."""
    rows = rows.where(f"not ({OVER[file]})") if file in OVER else rows
    rows = rows.drop(*UNSAID, *(OF_PRODUCER_IDS if file == "producer_ids" else ()))
    return sorted(map(str, rows.collect()))
