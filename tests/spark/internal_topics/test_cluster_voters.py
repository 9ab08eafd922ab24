"""Voters come from the last record before an offset, or the view reports why they are unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.capture.made_metadata import PLACE, TIME, batch, elected, quorum, snapshot, value, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NOTHING = value("NoOpRecord")
STATIC = elected(0, 1, 2) + batch(1, [NOTHING] * 3)
DYNAMIC = (
    STATIC
    + batch(4, quorum(1, 1, 2), is_control=True)
    + batch(6, [NOTHING] * 2)
    + elected(8, 2, 1, epoch=2)
    + batch(9, quorum(None, 2), is_control=True, epoch=2)
    + batch(10, [NOTHING], epoch=2)
)


def shown(spark: SparkSession, there: Path, **asked: Any) -> list[tuple[Any, ...]]:
    from flexwire.answers.cluster_voters import VIEW_COLUMNS, voters  # noqa: PLC0415
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    rows = voters(cluster_state(spark, there, **asked))
    assert rows.columns == [one.name for one in VIEW_COLUMNS]
    told = ("voter", "directory_id", "kraft_version", "said_by", "changed_offset", "is_known")
    found = rows.select(*told, "is_committed", "reason").orderBy("voter").collect()
    assert all((row.reason is None) == row.is_known for row in found)
    return [tuple(row)[:6] for row in found]


@pytest.mark.long
def test_voters_as_of_an_offset(spark: SparkSession, tmp_path: Path) -> None:
    from flexwire.answers.cluster_features import features  # noqa: PLC0415
    from flexwire.answers.cluster_voters import voters  # noqa: PLC0415
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    said, elections = "KRAFT_VOTERS", "LEADER_CHANGE"
    there = write(tmp_path, {"0": DYNAMIC})
    by_election = [(one, None, 0, elections, 0, True) for one in (1, 2)]
    assert shown(spark, there, offset=4) == by_election
    assert shown(spark, there, offset=9) == [(one, PLACE, 1, said, 5, True) for one in (1, 2)]
    assert shown(spark, there) == [(2, PLACE, 1, said, 9, True)]
    assert shown(spark, there, offset=0) == [(None, None, None, None, None, False)]
    state = cluster_state(spark, there)
    [row] = voters(state).collect()
    [end] = row.endpoints
    assert (end.name, end.host, end.port) == ("CONTROLLER", "c2", 9002)
    levels = features(state).select("feature", "level", "changed_offset", "until_offset").collect()
    assert [tuple(row) for row in levels] == [("kraft.version", 1, 4, None)]


@pytest.mark.cluster
def test_voters_of_snapshots_and_what_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    kept = snapshot([NOTHING], controls=quorum(1, 1, 2, 3))
    there = write(tmp_path / "one", {"4": DYNAMIC[len(STATIC) :], "7-1": kept})
    # The log continues after the snapshot, and determines the voters at earlier offsets.
    assert [row[0] for row in shown(spark, there, offset=8)] == [1, 2, 3]
    assert {row[4] for row in shown(spark, there, offset=8)} == {None}
    assert [row[0] for row in shown(spark, there)] == [2]
    # A snapshot of a cluster with static voters contains no voters, but an earlier election in the
    # log does.
    there = write(tmp_path / "two", {"0": STATIC, "3-1": snapshot([NOTHING])})
    assert [row[0] for row in shown(spark, there)] == [1, 2]
    there = write(tmp_path / "three", {"3-1": snapshot([NOTHING])})
    assert [row[5] for row in shown(spark, there)] == [False]
    # An unreadable record may contain any voters, until another record follows.
    [(key, body)] = quorum(None, 1)
    odd = STATIC + batch(4, [(key, b"\0\x09" + body[2:])], is_control=True)
    there = write(tmp_path / "four", {"0": odd})
    assert [row[5] for row in shown(spark, there)] == [False]
    assert [row.offset for row in cluster_state(spark, there).unread().collect()] == [4]
    more = odd + batch(5, quorum(1, 7), is_control=True)
    there = write(tmp_path / "five", {"0": more})
    assert [(row[0], row[5]) for row in shown(spark, there)] == [(7, True)]
    assert [row[5] for row in shown(spark, there, offset=5)] == [False]


@pytest.mark.cluster
def test_by_the_source_that_spark_connect_takes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flexwire.answers.state import cluster_source  # noqa: PLC0415 - PySpark
    from flexwire.answers.state.cluster import (  # noqa: PLC0415
        cluster_state,
        metadata_records,
    )

    kept = snapshot([value("TopicRecord", name="a", topicId=PLACE)], controls=quorum(1, 1, 2, 3))
    there = write(tmp_path, {"0": DYNAMIC, "7-1": kept})

    def everything() -> list[Any]:
        second = datetime.fromtimestamp(TIME / 1000, UTC)
        states = [cluster_state(spark, there, offset=one) for one in (None, 8)]
        states.append(cluster_state(spark, there, time=second))
        found: list[Any] = [(one.offset, one.snapshot, one.committed_to) for one in states]
        frames = [metadata_records(spark, there), *(one.records for one in states)]
        frames += [one.quorum for one in states]
        return [*found, *((one.schema, sorted(map(str, one.collect()))) for one in frames)]

    here = everything()
    monkeypatch.setattr(cluster_source, "is_connect", lambda _: True)
    assert everything() == here
