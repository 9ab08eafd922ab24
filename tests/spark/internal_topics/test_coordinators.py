"""What views say of logs that chance wrote is what a coordinator has that reads them in order."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.spark.internal_topics import last_commits, open_log
from flexwire.spark.internal_topics.share_state import _BATCHES, held_batches
from tests.spark.internal_topics.made import MadeTopic, commit

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PARTITIONS, EVENTS, GROUPS, PRODUCERS = 3, 260, 12, 5

Key: TypeAlias = tuple[str, int]


@dataclass
class Coordinator:
    """What one has of a partition of `__consumer_offsets`."""

    commits: dict[Key, tuple[int, int]] = field(default_factory=dict)
    pending: dict[int, list[tuple[Key, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def replay(self, event: tuple[Any, ...], at: int) -> None:
        what, *told = event
        if what == "commit":
            self.commits[told[0]] = told[1], at
        elif what == "delete":
            self.commits.pop(told[0], None)
        elif what == "within":
            self.pending[told[2]].append((told[0], told[1], at))
        else:
            for key, offset, written in self.pending.pop(told[0], []):
                if what == "end" and written > self.commits.get(key, (0, -1))[1]:
                    self.commits[key] = offset, written

    def told(self) -> dict[Key, tuple[int | None, list[int]]]:
        waiting = defaultdict(list)
        for some in self.pending.values():
            for key, offset, _ in some:
                waiting[key].append(offset)
        return {
            key: (self.commits.get(key, (None,))[0], sorted(waiting[key]))
            for key in {*self.commits, *waiting}
        }


def events(seed: int, partition: int) -> list[tuple[Any, ...]]:
    drawn = random.Random(seed)
    found: list[tuple[Any, ...]] = []
    for number in range(EVENTS):
        key = f"g{partition}-{drawn.randrange(GROUPS)}", drawn.randrange(2)
        producer = drawn.randrange(PRODUCERS)
        found.append(
            drawn.choice(
                [
                    ("commit", key, number),
                    ("within", key, number, producer),
                    ("within", key, number, producer),
                    ("delete", key),
                    ("end", producer),
                    ("abort", producer),
                ]
            )
        )
    return found


def written(root: Path, every: list[list[tuple[Any, ...]]]) -> None:
    for partition, some in enumerate(every):
        log = MadeTopic("__consumer_offsets")
        log.name = f"__consumer_offsets-{partition}"
        for what, *told in some:
            if what in {"end", "abort"}:
                log.end(told[0], commit=what == "end")
            else:
                (group, number), *rest = told
                offset, producer = rest[0] if rest else None, rest[1] if len(rest) > 1 else -1
                log.add(*commit(number, offset, group), producer=producer)
        log.write(root)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.cluster)])
def test_commits_at_any_moment_are_those_of_coordinators(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    every = [events(seed * 100 + partition, partition) for partition in range(PARTITIONS)]
    written(tmp_path, every)
    drawn = random.Random(seed)
    # Some partitions at their end, and some before any record.
    moments = [{}, {0: 0, 2: 90}, {n: drawn.randrange(EVENTS) for n in range(PARTITIONS)}]
    for moment in moments:
        expected: dict[Key, tuple[int | None, list[int]]] = {}
        for partition, some in enumerate(every):
            one = Coordinator()
            for at, event in enumerate(some[: moment.get(partition, EVENTS)]):
                one.replay(event, at)
            expected |= one.told()
        log = open_log(spark, tmp_path, "consumer-offsets", offsets=moment)
        rows = last_commits(log).collect()
        found = {
            (row.group, row.partition): (row.offset, sorted(one.offset for one in row.pending))
            for row in rows
            if row.is_known
        }
        # Of transactions that overlap with a tombstone it is not always known.
        unknown = {(row.group, row.partition) for row in rows if not row.is_known}
        assert len(unknown) < len(expected) / 4
        assert found == {key: one for key, one in expected.items() if key not in unknown}


def state(batches: list[tuple[int, int, int, int]], start: int) -> list[tuple[int, int, int, int]]:
    """What each offset's fate is, and neighbours with the same one together."""
    fates: dict[int, tuple[int, int]] = {}
    for first, last, fate, count in batches:
        for offset in range(max(first, start), last + 1):
            # Of several the one with the highest count holds, then with the highest state.
            had = fates.get(offset, (0, 0))
            fates[offset] = max(had, (fate, count), key=lambda one: one[::-1])
    found: list[tuple[int, int, int, int]] = []
    for offset in sorted(fates):
        if found and found[-1][1:] == (offset - 1, *fates[offset]):
            found[-1] = (found[-1][0], offset, *fates[offset])
        else:
            found.append((offset, offset, *fates[offset]))
    return found


def random_batches(count: int) -> list[tuple[list[tuple[int, int, int, int]], int]]:
    """Draw lists of batches that overlap, and start offsets; some batches are no broker's."""
    drawn = random.Random(5)
    cases = []
    for _ in range(count):
        firsts = [drawn.randrange(-2, 20) for _ in range(drawn.randrange(8))]
        batches = [
            (one, one + drawn.randrange(-2, 9), drawn.choice([0, 2, 4]), drawn.randrange(1, 4))
            for one in firsts
        ]
        cases.append((batches, drawn.randrange(-1, 12)))
    return cases


def test_what_batches_add_up_to_is_what_became_of_each_offset(spark: SparkSession) -> None:
    cases = random_batches(300)
    most = 2**63 - 1
    cases += [([(-most - 1, most, 0, 9), (0, most, 0, 9)], 0), ([(0, most - 1, 0, 9)], most)]
    cases += [([(0, most - 1, 0, 9), (5, 5, 2, 1)], most - 1)]
    rows = spark.createDataFrame(
        [(number, batches, start) for number, (batches, start) in enumerate(cases)],
        f"number int, batches {_BATCHES}, start bigint",
    )
    made = rows.select("number", held_batches(F.col("batches"), F.col("start")).alias("held"))
    found = {row.number: [tuple(one) for one in row.held] for row in made.collect()}
    for number, (batches, start) in enumerate(cases[:300]):
        real = [one for one in batches if one[0] >= 0 and one[0] <= one[1]]
        assert found[number] == state(real, start), (batches, start)
    assert [found[number] for number in range(300, 303)] == [
        [],
        [],
        [(most - 1, most - 1, 0, 9)],
    ]
