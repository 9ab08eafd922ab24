"""Daily sums for answers about groups equal the result from all rows, whatever crosses midnight."""

from __future__ import annotations

import random
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.answers import ANSWERS_BY_NAME
from flexwire.answers.asking.day_exchanges import HALF
from flexwire.spark.settings import set_for_answers
from flexwire.tasks import spark_schema
from tests.searching import times
from tests.spark.test_consumer_protocol import JAVA, RDKAFKA, assignment
from tests.spark.test_latency_by_day import MS, in_groups, in_order, moments
from tests.spark.told import Told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

CONNECTIONS = 60
NAMES = ("groups", "consumer_protocol", "share_deliveries")
APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "ShareFetch")
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAACQ"


def bodies(api: str, chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw the bodies of a request and its response."""
    member = f"member {chance.randrange(3)}"
    of_group = {"group_id": f"group {chance.randrange(2)}", "member_id": member}
    generation = chance.randrange(1, 5)
    asked: dict[str, Any] = dict(of_group)
    told: dict[str, Any] = {"error_code": chance.choice([0, 0, 27])}
    if api == "JoinGroup":
        protocols = [{"name": "range", "metadata": bytes([chance.randrange(2)])}]
        kind = {"protocol_type": "consumer", "session_timeout_ms": chance.choice([1, 45_000])}
        asked |= kind | {"protocols": protocols, "member_id": chance.choice([member, ""])}
        told = {"error_code": chance.choice([0, 0, 0, 79]), "generation_id": generation}
        listed = [{"member_id": f"member {number}"} for number in range(chance.randrange(1, 4))]
        told |= {"member_id": member, "leader": "member 0", "members": listed}
    elif api == "SyncGroup":
        data = chance.choice([assignment(None), assignment(b"tasks"), b"\0", b""])
        asked |= {"generation_id": generation, "protocol_type": "consumer"}
        asked |= {"assignments": [{"member_id": member, "assignment": data}]}
    elif api == "Heartbeat":
        asked["generation_id"] = generation
    elif api == "ConsumerGroupHeartbeat":
        asked["member_epoch"] = chance.choice([0, 0, 1, -1])
        told = {"error_code": chance.choice([0, 69]), "member_epoch": generation}
    else:
        ranges = [{"first_offset": 5, "last_offset": 5 + generation, "delivery_count": generation}]
        topic = {"topic_id": TOPIC_ID, "partitions": [{"acquired_records": ranges}]}
        told = {"responses": [topic]}
    return asked, told


def connect(told: Told, seed: int) -> None:
    """Draw a connection with requests that wait until after midnight, or forever."""
    chance = random.Random(seed)
    name, version = chance.choice([JAVA, RDKAFKA, (None, None)])
    for place, at in enumerate(sorted({*moments(chance)})):
        api = chance.choice(APIS)
        asked, answer = bodies(api, chance)
        latency_us = chance.choice([1, 900, 30 * MS, 60 * MS, None])
        # No two messages have the same time.
        at_us = at * MS + seed * 9 + place
        who = f"client {seed % 3}", f"10.0.0.{seed % 2}:{seed}"
        told.exchange(who, api, at_us, latency_us, asked, answer)
        named = {"client_software_name": name, "client_software_version": version}
        for frame in told.frames[-1 - (latency_us is not None) :]:
            frame.update(named)


def drawn(search: int) -> Told:
    told = Told()
    for number in range(CONNECTIONS):
        connect(told, search * CONNECTIONS + number)
    return told


def summed(name: str, told: Told, groups: int, spark: SparkSession) -> DataFrame:
    """Return the daily sums. Each day's rows are divided into this many groups."""
    sums = ANSWERS_BY_NAME[name].sums
    assert sums is not None
    schema = spark_schema(sums.columns)
    parts = [sums.part(days.tables(spark)) for days in in_groups(told, groups)]
    found = pa.concat_tables(
        part.select(*sums.columns.names).to(schema).toArrow().cast(sums.columns)
        for part in parts
        if part is not None
    )
    return spark.createDataFrame(found)


def total(name: str, told: Told, parts: DataFrame, spark: SparkSession) -> list[str]:
    sums = ANSWERS_BY_NAME[name].sums
    assert sums is not None
    return in_order(sums.total(parts, told.tables(spark)).toArrow().to_pylist())


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_sums_of_days_say_what_all_rows_say(spark: SparkSession, name: str) -> None:
    """Neighboring days are read separately, and each kind of half occurs."""
    for search in range(times(1)):
        told = drawn(search)
        with set_for_answers(spark, is_small=True):
            expected = ANSWERS_BY_NAME[name].ask(told.tables(spark)).toArrow().to_pylist()
            parts = summed(name, told, 2, spark)
            kinds = {row.is_request for row in parts.select(f"{HALF}.is_request").collect()}
            assert kinds == {True, False, None}
            assert total(name, told, parts, spark) == in_order(expected)
        assert len(expected) > 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("groups", "flexwire.answers.asking.groups"),
        ("share_deliveries", "flexwire.answers.share_deliveries"),
    ],
)
def test_halves_that_are_forgotten_are_found(
    spark: SparkSession, name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = drawn(0)
    module = import_module(place)
    joined = module.joined_halves
    monkeypatch.setattr(
        module, "joined_halves", lambda *args, **kwargs: joined(*args, **kwargs).where("false")
    )
    with set_for_answers(spark, is_small=True):
        expected = ANSWERS_BY_NAME[name].ask(told.tables(spark)).toArrow().to_pylist()
        parts = summed(name, told, 2, spark)
        assert total(name, told, parts, spark) != in_order(expected)
