"""The answer about throttled responses shows affected clients, and delays of later requests."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.asking.throttled import throttled_waits, throttles
from flexwire.answers.latency import latency, slowest
from flexwire.answers.throttling import ANSWER, throttling
from flexwire.schema.catalog import catalog
from flexwire.tables.spec_places import throttled_messages
from tests.each import each
from tests.spark.told import BROKER, START_US, Told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MS = 1000
# Exchanges on a connection: request, response and throttle time, all in ms.
SLOW = [(0, 2, 100), (10, 105, 0)]
PATIENT = [(0, 2, 100), (150, 153, 0)]
PIPELINED = [(0, 5, 100), (1, 108, 0), (2, 110, 0)]
# Before Kafka 2.0, a broker waits before it responds.
EARLIER = [(0, 102, 100), (110, 113, 0)]
TWICE = [(0, 2, 50), (10, 55, 50), (60, 108, 0)]
KINDS = {
    "slow": (SLOW, [(0, 92, False)]),
    "patient": (PATIENT, []),
    "pipelined": (PIPELINED, [(0, 100, True), (0, 100, True)]),
    "earlier": (EARLIER, []),
    "twice": (TWICE, [(0, 42, False), (0, 45, False)]),
}

Exchanges = list[tuple[int, int, int]]


def tell(told: Told, client_id: str | None, end: str, exchanges: Exchanges, **more: Any) -> None:
    for asked, answered, throttle in exchanges:
        answer = {"throttle_time_ms": throttle}
        times = (asked * MS, (answered - asked) * MS)
        told.exchange((client_id, end), "Produce", *times, {}, answer, **more)


def expected(exchanges: Exchanges) -> list[tuple[int, int, bool]]:
    """Return the wait of each delayed request in ms, and whether it was sent before the response.

    This code applies the definition to one millisecond after another.
    """
    muted: dict[int, int] = {}
    for place, (_, answered, throttle) in enumerate(exchanges):
        following = exchanges[place + 1][1] if place + 1 < len(exchanges) else answered + throttle
        if answered + throttle <= following:
            muted |= dict.fromkeys(range(answered, answered + throttle), place)
    found = []
    for place, (asked, answered, _) in enumerate(exchanges):
        waited = [at for at in range(asked, answered) if at in muted and muted[at] < place]
        if waited:
            last = max(muted[at] for at in range(answered) if at in muted and muted[at] < place)
            found.append((place, len(waited), asked < exchanges[last][1]))
    return found


def random_exchanges(seed: int) -> Exchanges:
    """Draw responses in order, some of them throttled, with up to five pending requests."""
    chance = random.Random(seed)
    answers = [0]
    for _ in range(40):
        answers.append(answers[-1] + chance.choice([0, 1, 2, 9, 30, 60]))
    asked = [max(0, chance.choice(answers[max(0, place - 5) : place + 1]) - chance.randrange(20))
             for place in range(len(answers))]  # fmt: skip
    return [
        (min(sent, answered), answered, chance.choice([0, 0, 0, 5, 30]))
        for sent, answered in zip(sorted(asked), answers, strict=True)
    ]


@pytest.mark.long
@pytest.mark.spark
def test_the_wait_is_the_time_in_which_the_broker_read_nothing(spark: SparkSession) -> None:
    told, wanted = Told(), []
    for seed in range(12):
        end, exchanges = f"10.0.0.9:{seed}", random_exchanges(seed)
        assert all(a <= b for (_, a, _), (_, b, _) in pairwise(exchanges))
        tell(told, f"client {seed}", end, exchanges)
        wanted += [
            (f"{end}>{BROKER}", place, waited * MS, early)
            for place, waited, early in expected(exchanges)
        ]
    tables = told.tables(spark)
    throttled = throttles(tables)
    assert throttled is not None
    waits = throttled_waits(tables, throttled).collect()
    found = [(one.connection, one.frame_index, one.throttled_us, one.is_pipelined) for one in waits]
    assert sorted(found) == sorted(wanted)
    assert len(found) > 50
    assert {early for *_, early in found} == {True, False}
    # Only this delay is excluded from the latency.
    raw = sum(one["latency_us"] for one in told.frames if "latency_us" in one)
    rows = slowest(tables, 1000).collect()
    assert sum(one.latency_us for one in rows) == raw - sum(one[2] for one in wanted)
    assert all(one.latency_us >= 0 for one in rows)
    assert sum(one.throttled for one in latency(tables).collect()) == len(found)


@pytest.mark.long
@pytest.mark.spark
def test_clients_that_are_throttled_and_those_that_do_not_wait(spark: SparkSession) -> None:
    told = Told()
    for number, (name, (exchanges, waits)) in enumerate(KINDS.items()):
        tell(told, name, f"10.0.0.9:{number}", exchanges)
        assert [(0, waited, early) for _, waited, early in expected(exchanges)] == waits
    tell(told, None, "10.0.0.9:99", SLOW)
    tell(told, "logged", "10.0.0.8:1", SLOW, sizes=(None, None))
    told.exchange(("other", "10.0.0.7:1"), "Metadata", 0, MS, {}, {"throttle_time_ms": 0})
    tables = told.tables(spark)
    rows = {one.client_id: one.asDict() for one in throttling(tables).collect()}
    assert rows.keys() == {*KINDS, None, "logged"}
    for who, (exchanges, waits) in (*KINDS.items(), (None, KINDS["slow"])):
        row, times = rows[who], [one for *_, one in exchanges if one]
        assert (row["responses"], row["throttled"]) == (len(exchanges), len(times))
        assert row["throttled_share"] == len(times) / len(exchanges)
        assert (row["throttle_us"], row["max_throttle_us"]) == (sum(times) * MS, max(times) * MS)
        early = [one for one in waits if not one[2]]
        assert (row["early_requests"], row["pipelined_requests"], row["waited_us"]) == (
            len(early), len(waits) - len(early), sum(one[1] for one in waits) * MS,
        )  # fmt: skip
        assert (row["api_name"], row["address"]) == ("Produce", "10.0.0.9")
        assert row["first_time"].timestamp() * 1e6 == START_US + exchanges[0][1] * MS
    # The latency of a request log begins when the broker reads the request.
    logged = rows["logged"]
    assert (logged["throttled"], logged["throttle_us"]) == (1, 100 * MS)
    assert logged["early_requests"] is logged["pipelined_requests"] is logged["waited_us"] is None
    told_of = {one.client_id: one for one in latency(tables).collect()}
    slow, piped, log = told_of["slow"], told_of["pipelined"], told_of["logged"]
    assert (slow.throttled, slow.throttled_us, slow.max_us) == (1, 92 * MS, 3 * MS)
    # A pipelined request's wait for the previous response remains part of its latency.
    assert (piped.throttled, piped.pipelined, piped.max_us) == (2, 2, 8 * MS)
    assert (log.throttled, log.max_us) == (0, 95 * MS)


@pytest.mark.spark
def test_of_no_throttled_response_there_is_no_row(spark: SparkSession) -> None:
    told = Told()
    tell(told, "app", "10.0.0.9:1", [(0, 1, 0), (2, 3, 0)])
    for tables in (told.tables(spark), Told().tables(spark)):
        found = throttling(tables)
        assert found.columns == [one.name for one in ANSWER.columns]
        assert found.isEmpty()


@each("message", catalog().names)
def test_every_response_that_says_for_how_long_is_looked_at(message: str) -> None:
    names = {
        (one.name, depth)
        for spec in catalog().entry(message).all_specs()
        for depth, fields in enumerate((spec.fields, spec.walk()))
        for one in fields
        if "throttle" in one.name.lower()
    }
    # If a message contains a throttle time, the field is at the top level and has this name.
    assert {name for name, _ in names} <= {"ThrottleTimeMs"}
    assert (("ThrottleTimeMs", 0) in names) == (message in throttled_messages()) == bool(names)
