"""Daily sums of connections equal the result from all rows, whatever crosses midnight."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers import connections as module
from flexwire.answers.asking.day_sums import DAY, DAY_US
from flexwire.answers.connections import ANSWER, connections
from flexwire.spark.settings import set_for_answers
from tests.searching import in_make_long, times
from tests.spark.test_latency_by_day import MIDNIGHT_MS, MS, in_groups, in_order
from tests.spark.told import Told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DAY_MS = DAY_US // MS
CONNECTIONS = 150
APIS = ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Produce", "Fetch"]


def moments(chance: random.Random) -> list[int]:
    """Draw times of requests around some midnights, in ms after `START_US`."""
    found: list[int] = []
    for day in sorted(chance.sample(range(3), chance.randrange(1, 4))):
        at = MIDNIGHT_MS + day * DAY_MS + chance.choice([-9000, -1500, -999, -400, 0, 1, 700])
        for _ in range(chance.randrange(1, 6)):
            found.append(at)
            at += chance.choice([0, 1, 400, 999, 1000, 1001, 4000])
    return found


def connect(told: Told, seed: int) -> None:
    """Draw a connection that may be silent, wait, authenticate again, and be closed by
    either side.
    """
    chance = random.Random(seed)
    client = f"10.0.0.{seed % 2}:{seed}"
    sent = moments(chance) if seed % 10 else []
    first = sent[0] if sent else MIDNIGHT_MS
    last = max([first, *sent]) + 10 + chance.choice([0, 5_000])
    told.connection(
        client,
        (first - chance.choice([0, 3_000])) * MS,
        last * MS,
        seen_from_start=chance.random() < 0.8,
        closed_by=chance.choice(["client", "broker", None]),
        reset=chance.random() < 0.3,
        is_kafka=chance.random() < 0.9,
    )
    for at in sent:
        name = chance.choice([f"client {seed % 3}", None])
        latency_us = None if chance.random() < 0.1 else chance.choice([0, 3, 900]) * MS
        told.exchange((name, client), chance.choice(APIS), at * MS, latency_us)


def made(search: int) -> Told:
    told = Told()
    for number in range(CONNECTIONS):
        connect(told, search * CONNECTIONS + number)
    return told


def total(told: Told, groups: int, spark: SparkSession, **later: Any) -> list[Any]:
    """Return the answer from daily sums. Each day's rows are divided into this many groups."""
    sums = ANSWER.sums
    assert sums is not None
    found = pa.concat_tables(
        part.select(*sums.columns.names).toArrow().cast(sums.columns)
        for days in in_groups(told, groups)
        if (part := sums.part(days.tables(spark))) is not None
    )
    assert len({*found[DAY].to_pylist()}) > 2
    tables = replace(told.tables(spark), **later)
    return list(sums.total(spark.createDataFrame(found), tables).toArrow().to_pylist())


@pytest.mark.parametrize("groups", [2, *in_make_long(5)])
def test_the_sums_of_days_say_what_all_rows_say(spark: SparkSession, groups: int) -> None:
    for search in range(times(1)):
        told = made(search)
        with set_for_answers(spark, is_small=True):
            expected = connections(told.tables(spark)).toArrow().to_pylist()
            assert in_order(total(told, groups, spark)) == in_order(expected)
        for name in ("reauthentications", "closed_unanswered", "idle_us", "silent"):
            assert any(row[name] for row in expected), name


@pytest.mark.long
def test_a_request_that_a_later_analysis_answers_is_not_unanswered(spark: SparkSession) -> None:
    told, answered = made(0), made(0)
    chance = random.Random(7)
    keys = []
    for row, same in zip(told.frames, answered.frames, strict=True):
        if row.get("answered") is False and chance.random() < 0.5:
            same["answered"] = True
            keys.append((row["connection"], row["frame_index"]))
    later = spark.createDataFrame(keys, "connection string, frame_index bigint")
    with set_for_answers(spark, is_small=True):
        expected = connections(answered.tables(spark)).toArrow().to_pylist()
        found = total(told, 2, spark, answered_later=later)
        assert in_order(found) == in_order(expected)
        assert in_order(found) != in_order(total(told, 2, spark))


def no_pauses_at_midnight(rows: DataFrame, by: Sequence[str], order: str) -> DataFrame:
    if order == DAY:
        return rows.withColumn("pause", F.lit(None).cast("bigint"))
    return module_pauses(rows, by, order)


module_pauses = module._with_pauses


@pytest.mark.long
def test_a_pause_over_midnight_that_is_forgotten_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = made(0)
    with set_for_answers(spark, is_small=True):
        expected = connections(told.tables(spark)).toArrow().to_pylist()
        monkeypatch.setattr(module, "_with_pauses", no_pauses_at_midnight)
        assert in_order(total(told, 2, spark)) != in_order(expected)
