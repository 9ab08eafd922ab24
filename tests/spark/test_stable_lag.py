"""The lag of read_committed consumers, and commits in transactions, match a Python computation."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.lag import lag
from flexwire.spark.analyze import analyze
from tests.capture.made_logs import TIME, write_log
from tests.capture.made_transactions import random_transactions
from tests.searching import in_make_long
from tests.spark.internal_topics.made import MadeTopic, keyed
from tests.spark.told import Told

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PARTITIONS = range(8)
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


@pytest.mark.long
def test_logs_say_how_far_committed_records_go(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(7)
    log, expected = MadeTopic("__consumer_offsets"), {}
    for number in PARTITIONS:
        made = random_transactions(number)
        write_log(tmp_path / "data" / f"orders-{number}", made.segments)
        ends = [at + 1 for _, at in made.ends]
        ends += [first + len(records) for first, _, records in made.written]
        opens = [
            first for first, producer in made.batches if made.outcome(producer, first) == "open"
        ]
        stable = min([*opens, max(ends)])
        for group in ("a", "b", "c"):
            offset = chance.randrange(max(ends) + 3)
            key = {"group": group, "topic": "orders", "partition": number}
            value = {"offset": offset, "metadata": "", "commit_timestamp": TIME}
            log.add(*keyed(1, "OffsetCommit", key, value))
            short = None if offset > max(ends) else max(0, stable - offset)
            expected[group, number] = (max(ends) - offset, stable, short)
    log.write(tmp_path / "data")
    done = analyze([tmp_path / "data"], tmp_path / "out", spark=spark, answers=["group_offsets"])
    rows = done.output.table("answers/group_offsets").to_pylist()
    assert any(stable < offset for _, offset, stable in expected.values() if stable is not None)
    assert {
        (row["group"], row["partition"]): (row["lag"], row["stable_offset"], row["stable_lag"])
        for row in rows
    } == expected


class Modelled:
    """Consumers and producers on some hosts, and the expected answer about them."""

    def __init__(self, seed: int) -> None:
        self.told = Told()
        self.rows: dict[tuple[str, bool], dict[str, Any]] = {}
        self._chance = random.Random(seed)
        self._at = 0
        self._seen: dict[str, tuple[int, int | None, bool]] = {}
        self._open: defaultdict[str, list[tuple[int, int | None, int | None]]] = defaultdict(list)

    def run(self) -> None:
        for _ in range(150):
            self._at += self._chance.randint(5_000, 9_000)
            host = self._chance.choice(HOSTS)
            self._chance.choice([self.fetch, self.plain, self.within, self.within, self.end])(host)
        for host, held in self._open.items():
            row = self._row(host, is_transactional=True)
            row["pending"] += len(held)
            if held:
                row["pending_offset"] = max(one for one, _, _ in held)

    def _row(self, host: str, *, is_transactional: bool) -> dict[str, Any]:
        new = {"commits": 0, "pending": 0, "aborted": 0, "pending_offset": None, "max_lag": None}
        new |= {"committed_offset": None, "lag": None, "stable_lag": None}
        return self.rows.setdefault((host, is_transactional), new)

    def _count(self, row: dict[str, Any], offset: int, lag: int | None, stable: int | None) -> None:
        row["commits"] += 1
        row |= {"committed_offset": offset, "lag": lag, "stable_lag": stable}
        if lag is not None:
            row["max_lag"] = max(lag, row["max_lag"] or 0)

    def _short(self, host: str, offset: int) -> tuple[int | None, int | None]:
        if host not in self._seen:
            return None, None
        end, stable, _ = self._seen[host]
        return max(0, end - offset), None if stable is None else max(0, stable - offset)

    def fetch(self, host: str) -> None:
        reads_committed = self._chance.random() < 0.7
        end = self._chance.randrange(50, 100)
        stable = self._chance.randrange(20, end) if reads_committed else -1
        partition = {"partition_index": 0, "high_watermark": end, "last_stable_offset": stable}
        answer = {"responses": [{"topic": "orders", "partitions": [partition]}]}
        asked = {"replica_id": -1, "isolation_level": int(reads_committed)}
        self.told.exchange(("reads", f"{host}:1"), "Fetch", self._at, 1_000, asked, answer)
        self._seen[host] = end, stable if reads_committed else None, reads_committed

    def _asked(self, offset: int) -> dict[str, Any]:
        partitions = [{"partition_index": 0, "committed_offset": offset}]
        return {"group_id": "g", "topics": [{"name": "orders", "partitions": partitions}]}

    def plain(self, host: str) -> None:
        offset = self._chance.randrange(100)
        self.told.exchange(("reads", f"{host}:1"), "OffsetCommit", self._at, 1, self._asked(offset))
        row = self._row(host, is_transactional=False)
        self._count(row, offset, *self._short(host, offset))

    def within(self, host: str) -> None:
        offset = self._chance.randrange(100)
        asked = self._asked(offset) | {"transactional_id": f"t-{host}"}
        self.told.exchange(("writes", f"{host}:2"), "TxnOffsetCommit", self._at, 1, asked)
        self._row(host, is_transactional=True)
        self._open[host].append((offset, *self._short(host, offset)))

    def end(self, host: str) -> None:
        is_commit = self._chance.random() < 0.6
        asked = {"transactional_id": f"t-{host}", "committed": is_commit}
        self.told.exchange(("writes", f"{host}:2"), "EndTxn", self._at, 1, asked)
        for offset, short, stable in self._open.pop(host, []):
            row = self._row(host, is_transactional=True)
            if is_commit:
                self._count(row, offset, short, stable)
            else:
                row["aborted"] += 1

    def reads_committed(self, host: str) -> bool | None:
        return self._seen[host][2] if host in self._seen else None


@pytest.mark.parametrize("seed", [1, *in_make_long(2)])
def test_commits_in_transactions_count_once_these_are_committed(
    spark: SparkSession, seed: int
) -> None:
    made = Modelled(seed)
    made.run()
    found = {
        (row.address, row.is_transactional): row.asDict()
        for row in lag(made.told.tables(spark)).collect()
    }
    assert {
        key: {name: found[key][name] for name in row} for key, row in made.rows.items()
    } == made.rows
    assert found.keys() == made.rows.keys()
    assert all(row["pending"] + row["aborted"] for (_, of), row in found.items() if of)
    for (host, _), row in found.items():
        assert row["reads_committed"] == made.reads_committed(host)
