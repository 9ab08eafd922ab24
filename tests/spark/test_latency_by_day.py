"""Daily sums of latencies equal the result from all rows, whatever crosses midnight."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.answers.asking.day_sums import DAY_US
from flexwire.answers.latency import ANSWER, latency
from flexwire.spark.settings import set_for_answers
from tests.searching import times
from tests.spark.told import START_US, Told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
pytestmark = pytest.mark.spark

MS = 1000
DAY_MS = DAY_US // MS
# The first midnight after the beginning of all captures of `Told`.
MIDNIGHT_MS = DAY_MS - START_US // MS % DAY_MS
CONNECTIONS = 120
WAITS = {"max_wait_ms": 5, "min_bytes": 1}


def moments(chance: random.Random) -> list[int]:
    """Draw times of responses around some midnights, in ms after `START_US`."""
    found: list[int] = []
    for day in sorted(chance.sample(range(3), chance.randrange(1, 4))):
        at = MIDNIGHT_MS + day * DAY_MS + chance.choice([-40, -20, -5, 0, 10])
        for _ in range(chance.randrange(1, 9)):
            at += chance.choice([0, 1, 2, 5, 9, 30])
            found.append(at)
    return found


def connect(told: Told, seed: int) -> None:
    """Draw a connection whose requests are answered in order, at most four of them pending."""
    chance = random.Random(seed)
    answered = moments(chance)
    earliest = answered[0] - chance.choice([1, 30])
    asked: list[int] = []
    for place, at in enumerate(answered):
        after = answered[place - chance.randrange(1, 5)] if place > 4 else earliest
        least = max([after, *asked[-1:]])
        asked.append(chance.choice([least, at, (least + at) // 2, max(least, at - 7)]))
    who = f"client {seed % 3}", f"10.0.0.{seed % 2}:{seed}"
    quota = chance.choice([0, 8, 60])
    for place, (sent, at) in enumerate(zip(asked, answered, strict=True)):
        # No two requests of a connection have the same time.
        sent_us = min(sent * MS + place, at * MS + place)
        api = chance.choice(["Produce", "Fetch", "Metadata"])
        body: dict[str, Any] = {"throttle_time_ms": chance.choice([quota, quota // 4])}
        if api == "Fetch":
            body["responses"] = []
        latency_us = None if chance.random() < 0.05 else at * MS + place - sent_us
        asks = WAITS if api == "Fetch" else {}
        # A request log contains no sizes.
        sizes = (None, None) if seed % 10 == 0 else (100, 50)
        told.exchange(who, api, sent_us, latency_us, asks, body, sizes=sizes)


def in_groups(told: Told, groups: int) -> list[Told]:
    """Return the rows of all days. Each day's rows are divided into this many groups."""
    found = [Told() for _ in range(groups)]
    for row in told.frames:
        found[row["time"] // DAY_US % groups].frames.append(row)
    for name, rows in told.messages.items():
        for row in rows:
            found[row["time"] // DAY_US % groups].messages[name].append(row)
    return found


@pytest.mark.long
@pytest.mark.parametrize("groups", [2, 5])
def test_the_sums_of_days_say_what_all_rows_say(spark: SparkSession, groups: int) -> None:
    """Neighboring days are read separately."""
    for search in range(times(1)):
        told = Told()
        for number in range(CONNECTIONS):
            connect(told, search * CONNECTIONS + number)
        with set_for_answers(spark, is_small=True):
            summed = check(told, groups, spark)
        # Most requests are resolved on their day, and each kind of kept entry occurs.
        kept = [row["kept"] for row in summed if row["kept"] is not None]
        assert any(row["frame_index"] is None for row in kept)
        assert any(row["throttle_us"] is not None for row in kept)
        assert 0 < sum(row["asked"] is not None for row in kept) < len(told.frames) / 4


def check(told: Told, groups: int, spark: SparkSession) -> list[dict[str, Any]]:
    """Compare the answer from all rows with the answer from sums. Return the sums."""
    sums = ANSWER.sums
    assert sums is not None
    tables = told.tables(spark)
    expected = latency(tables).toArrow().to_pylist()
    parts = [sums.part(days.tables(spark)) for days in in_groups(told, groups)]
    found = pa.concat_tables(
        part.select(*sums.columns.names).toArrow().cast(sums.columns)
        for part in parts
        if part is not None
    )
    total = sums.total(spark.createDataFrame(found), tables).toArrow().to_pylist()
    assert in_order(total) == in_order(expected)
    assert sum(row["throttled"] for row in expected) > 50
    assert {row["waited"] for row in expected} == {True, False}
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def in_order(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))
