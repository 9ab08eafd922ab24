"""For random captures across midnights, sums equal the rows, whatever happened to the tables.

Files are appended in order, and late files are appended between them. Analyses are removed, files
of tables are merged, and days are deleted.
"""

from __future__ import annotations

import random
from collections import deque
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.asking.time_span import TimeSpan
from flexwire.spark.delta import staging
from flexwire.spark.delta.output import DeltaTables
from flexwire.spark.delta.upkeep import join, retire, to_join, to_retire
from flexwire.storage.output_directory import OutputDirectory
from tests.searching import times
from tests.spark import day_traffic
from tests.spark.day_traffic import VERSIONS
from tests.spark.test_day_sums import (
    DAY_US,
    FETCH,
    MIDNIGHT,
    MIDNIGHT_US,
    PRODUCE,
    Growing,
)
from tests.spark.test_inside_captures import fetched
from tests.spark.traffic import TOPIC_ID, Traffic, made, nested, record_batch, request, response

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# An example takes minutes of CPU time: all answers three times, from rows and from sums.
pytestmark = [pytest.mark.spark, pytest.mark.long]

STEPS = 150
FILES = 4
VERSION = VERSIONS | {"Fetch": FETCH, "Produce": PRODUCE, "Metadata": 12}


class RandomTraffic:
    """Draw requests on some connections, and their responses in order, across several midnights."""

    def __init__(self, directory: Path, seed: str, client: str) -> None:
        self.chance = random.Random(seed)
        self.traffic = Traffic(directory)
        self.client = client
        # The requests on each connection that still wait for a response.
        self.open: list[tuple[Any, deque[tuple[str, int]]]] = []
        self.sent = 0

    def write(self, begins_us: int, steps: int, files: int) -> None:
        chance, traffic = self.chance, self.traffic
        traffic.now_us = begins_us
        cuts = {*chance.sample(range(1, steps), files - 1)}
        for step in range(steps):
            if step in cuts:
                traffic.rotate()
            if chance.random() < 0.12:
                self._jump()
            traffic.now_us += chance.choice([0, 0, 3_000, 9_000, 40_000])
            if not self.open or (len(self.open) < 4 and chance.random() < 0.15):
                self.open.append((traffic.connect((self.client, 40_000 + step)), deque()))
            self._step(*chance.choice(self.open))
        traffic.close()

    def _jump(self) -> None:
        """Advance to a moment just before midnight."""
        days = self.traffic.now_us // DAY_US + self.chance.choice([1, 1, 1, 2])
        self.traffic.now_us = days * DAY_US - self.chance.choice([1_000, 5_000, 30_000])

    def _step(self, connection: Any, waiting: deque[tuple[str, int]]) -> None:
        """Send a request, or the next response."""
        chance = self.chance
        if waiting and (len(waiting) > 3 or chance.random() < 0.6):
            api, number = waiting.popleft()
            payload = response(self._answer(api), VERSION[api], number)
            self.traffic.send(connection, "response", payload)
            return
        self.sent += 1
        api = chance.choice(["Fetch", "Produce", "Produce", "Metadata", *VERSIONS])
        body = self._asked(api)
        tags = day_traffic.tags(chance)
        asked = request(body, VERSION[api], self.sent, client_id=self._name(), tags=tags)
        self.traffic.send(connection, "request", asked)
        # The broker may never answer.
        waiting.append((api, self.sent))

    def _name(self) -> str | None:
        return self.chance.choice(["one", "other", None])

    def _asked(self, api: str) -> Any:
        if api in VERSIONS:
            return day_traffic.asked(api, self.chance)
        if api == "Fetch":
            return made("FetchRequest", max_wait_ms=self.chance.choice([5, 30]), min_bytes=1)
        if api == "Metadata":
            return made("MetadataRequest")
        batch = record_batch((b"k", b"value", [(b"trace", b"x" * self.chance.randrange(3))]))
        data = nested("ProduceRequest", "PartitionProduceData", index=0, records=batch)
        topic = nested(
            "ProduceRequest", "TopicProduceData", topic_id=TOPIC_ID, partition_data=[data]
        )
        return made("ProduceRequest", acks=-1, topic_data=[topic])

    def _answer(self, api: str) -> Any:
        if api in VERSIONS:
            return day_traffic.answered(api, self.chance)
        throttle = self.chance.choice([0, 0, 4, 25, 90])
        if api == "Fetch" and self.chance.random() < 0.5:
            return made("FetchResponse", throttle_time_ms=throttle)
        if api == "Fetch":
            return fetched([(b"k", b"v" * self.chance.randrange(5))], topic_id=TOPIC_ID)
        if api == "Metadata":
            named = nested(
                "MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID
            )
            topics = [named] if self.chance.random() < 0.3 else []
            return made("MetadataResponse", topics=topics, throttle_time_ms=throttle)
        failed = nested(
            "ProduceResponse",
            "PartitionProduceResponse",
            index=0,
            error_code=self.chance.choice([0, 6]),
        )
        topic = nested(
            "ProduceResponse",
            "TopicProduceResponse",
            topic_id=TOPIC_ID,
            partition_responses=[failed],
        )
        return made("ProduceResponse", responses=[topic], throttle_time_ms=throttle)


class Operations:
    """Draw, in a random order, what happens to tables that grow."""

    def __init__(self, growing: Growing, seed: int, directory: Path) -> None:
        self.growing = growing
        self.chance = random.Random(f"operations {seed}")
        self.out = OutputDirectory(str(growing.out))
        name = f"captures {seed}"
        RandomTraffic(directory / "all", name, "10.0.0.9").write(MIDNIGHT_US - 90_000, STEPS, FILES)
        self.files = sorted((directory / "all").glob("*.pcapng"))
        begins = MIDNIGHT_US - 2 * DAY_US + self.chance.randrange(3 * DAY_US)
        RandomTraffic(directory / "late", f"late {seed}", "10.0.0.8").write(begins, STEPS // 3, 1)
        [self.late] = (directory / "late").glob("*.pcapng")

    def run(self) -> None:
        # Sums exist before each change, so outdated sums would be used.
        late = self.chance.randrange(1, len(self.files))
        changes = [self._undo_and_append, self._join]
        self.chance.shuffle(changes)
        for number, file in enumerate(self.files):
            run = self.growing.append(file)
            if number == late:
                self.growing.check()
                self.growing.append(self.late)
                changes.pop()(run, file)
        self.growing.check(self._span())
        changes.pop()(run, file)
        first = date.fromisoformat(MIDNIGHT.date().isoformat())
        retire(self.out, [*to_retire(self.out, first + timedelta(self.chance.randrange(2)))])
        assert any(self.growing.check().values())

    def _undo_and_append(self, run: str, file: Path) -> None:
        tables = DeltaTables(self.out)
        last = tables.ledger.snapshot().last
        assert last is not None
        staging.undo(tables, last.analysis)
        if last.analysis == run:
            self.growing.append(file)

    def _join(self, _run: str, _file: Path) -> None:
        for group in [*to_join(self.out)]:
            join(self.out, group)

    def _span(self) -> TimeSpan:
        begins = MIDNIGHT + timedelta(microseconds=self.chance.randrange(-100_000, DAY_US))
        return TimeSpan(begins, begins + timedelta(microseconds=self.chance.randrange(3 * DAY_US)))


@pytest.mark.parametrize("seed", range(times(1)))
def test_sums_say_what_the_rows_say_of_random_captures(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    Operations(Growing(spark, tmp_path / "out"), seed, tmp_path).run()
