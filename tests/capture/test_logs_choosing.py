"""flexwire reads the replica that Kafka would continue with, even if another replica is longer."""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.logs import LogQuery
from flexwire.logs.discovery import find_logs
from flexwire.logs.divergence import divergences
from flexwire.logs.files import is_log_file
from flexwire.records import Record
from flexwire.storage.file_search import list_files
from tests.capture.made_logs import TIME, MadeSegment
from tests.capture.made_metadata import batch, value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

# An id as Kafka's JSON form writes it.
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABw"


def write_replica(
    root: Path, broker: int, epochs: Sequence[int], removed: Collection[int] = ()
) -> None:
    """Write a log with one record for each offset, each with the given epoch."""
    segment = MadeSegment(0)
    for at, epoch in enumerate(epochs):
        if at not in removed:
            record = Record(at, TIME + at, b"k%d" % at, b"v", [])
            segment.add([record], partition_leader_epoch=epoch)
    directory = root / f"broker-{broker}"
    segment.write(directory / "orders-0")
    (directory / "meta.properties").write_text(f"version=1\nnode.id={broker}\ncluster.id=x\n")


def write_metadata(
    root: Path, broker: int, *changes: dict[str, Any] | bytes, epoch: int = 1, first: int = 0
) -> None:
    made = {"partitionId": 0, "topicId": TOPIC_ID, "replicas": [1, 2, 3], "isr": [1, 2, 3]}
    made |= {"removingReplicas": [], "addingReplicas": [], "leader": 1, "leaderEpoch": 0}
    written = [
        value("TopicRecord", name="orders", topicId=TOPIC_ID),
        value("PartitionRecord", **made, partitionEpoch=0),
    ]
    written += [
        one
        if isinstance(one, bytes)
        else value("PartitionChangeRecord", **{"partitionId": 0, "topicId": TOPIC_ID, **one})
        for one in changes
    ]
    directory = root / f"broker-{broker}" / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    data = b"".join(batch(at, [one], epoch=epoch) for at, one in enumerate(written, first))
    (directory / f"{first:020}.log").write_bytes(data)


def chosen(root: Path, *paths: Path) -> str:
    [log] = find_logs(paths or [root], LogQuery(topics={"orders"}))
    return log.directory.rpartition("/")[0].rpartition("/")[2]


def test_a_dead_leaders_tail_is_not_read(tmp_path: Path) -> None:
    write_replica(tmp_path, 1, [0] * 8)
    write_replica(tmp_path, 2, [0, 0, 0, 1, 1])
    assert chosen(tmp_path) == "broker-2"


@pytest.mark.parametrize("seed", range(6))
def test_the_later_epoch_wins_and_then_the_longer_log(seed: int, tmp_path: Path) -> None:
    drawn = random.Random(seed)
    logs = {}
    for broker in (1, 2, 3):
        logs[broker] = sorted(drawn.choices(range(4), k=drawn.randint(1, 9)))
        write_replica(tmp_path, broker, logs[broker])
    best = max((epochs[-1], len(epochs)) for epochs in logs.values())
    epochs = logs[int(chosen(tmp_path).removeprefix("broker-"))]
    assert (epochs[-1], len(epochs)) == best


def lead(leader: int, isr: list[int]) -> dict[str, Any]:
    return {"leader": leader, "isr": isr}


CASES: dict[str, tuple[list[dict[str, Any] | bytes], str]] = {
    # The leader's log is read although another log is longer, and a third log has the same epoch.
    "leader": ([lead(3, [1, 3])], "broker-3"),
    # Without the leader's log, the longest log of an ISR member is read.
    "isr": ([lead(4, [2, 3, 4])], "broker-2"),
    "none leads": ([lead(-1, [3])], "broker-3"),
    # No log of an ISR member is available.
    "elsewhere": ([lead(4, [4])], "broker-1"),
    # A change that names neither a leader nor an ISR.
    "unchanged": ([lead(3, [3]), {"isr": [3, 2]}, {}], "broker-3"),
    "aborted": (
        [
            lead(2, [2]),
            value("BeginTransactionRecord"),
            lead(3, [3]),
            value("AbortTransactionRecord"),
        ],
        "broker-2",
    ),
    "committed": (
        [
            lead(2, [2]),
            value("BeginTransactionRecord"),
            lead(3, [3]),
            value("EndTransactionRecord"),
        ],
        "broker-3",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_metadata_decides(case: str, tmp_path: Path) -> None:
    changes, expected = CASES[case]
    for broker, length in ((1, 9), (2, 7), (3, 5)):
        write_replica(tmp_path, broker, [0] * length)
    write_metadata(tmp_path, 2, *changes)
    assert chosen(tmp_path) == expected
    # The order of the paths does not matter, and the partition's own directories are enough.
    for order in permutations((1, 2, 3)):
        places = [tmp_path / f"broker-{one}" / "orders-0" for one in order]
        assert chosen(tmp_path, *places) == expected


def test_metadata_that_is_older_than_the_logs_decides_nothing(tmp_path: Path) -> None:
    write_replica(tmp_path, 1, [0] * 8)
    write_replica(tmp_path, 2, [0, 0, 0, 2, 2])
    # The checkpoint contains one leader change, but the log contains records from two leaders.
    write_metadata(tmp_path, 1, lead(1, [1]))
    assert chosen(tmp_path) == "broker-2"


def test_the_newest_metadata_decides(tmp_path: Path) -> None:
    for broker, length in ((1, 9), (2, 7)):
        write_replica(tmp_path, broker, [0] * length)
    write_metadata(tmp_path, 1, lead(1, [1]), {"isr": [1]}, {"isr": [1]}, epoch=1)
    write_metadata(tmp_path, 2, lead(2, [2]), epoch=2)
    assert chosen(tmp_path) == "broker-2"


def test_metadata_without_its_beginning_decides_nothing(tmp_path: Path) -> None:
    for broker, length in ((1, 9), (2, 7)):
        write_replica(tmp_path, broker, [0] * length)
    # The metadata log does not begin at offset 0, and there is no snapshot.
    write_metadata(tmp_path, 1, lead(2, [2]), first=5)
    assert chosen(tmp_path) == "broker-1"


def histories(drawn: random.Random) -> dict[int, list[int]]:
    """Return three replicas after several elections, some of them unclean: epochs by offset."""
    logs: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for epoch in range(drawn.randint(1, 5)):
        leader = drawn.choice([1, 2, 3])
        logs[leader] += [epoch] * drawn.randint(0, 6)
        for follower in {1, 2, 3} - {leader}:
            if drawn.random() < 0.6:
                # The follower removes records that the leader lacks, and copies as many others as
                # it can.
                common = alike(logs[follower], logs[leader])
                copied = drawn.randint(common, len(logs[leader]))
                logs[follower] = logs[leader][:copied]
    return logs


def alike(one: list[int], other: list[int]) -> int:
    same = (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(same, min(len(one), len(other)))


@pytest.mark.parametrize("has_checkpoints", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_first_difference_is_where_epochs_differ(
    seed: int, *, has_checkpoints: bool, tmp_path: Path
) -> None:
    drawn = random.Random(seed)
    logs = histories(drawn)
    for broker, epochs in logs.items():
        # Compaction removed different records from each log.
        removed = {at for at in range(len(epochs)) if drawn.random() < 0.2}
        write_replica(tmp_path, broker, epochs, removed=removed)
        logs[broker] = [-1 if at in removed else one for at, one in enumerate(epochs)]
        if has_checkpoints:
            entries = [f"{one} {epochs.index(one)}" for one in sorted({*epochs})]
            text = "\n".join(["0", str(len(entries)), *entries, ""])
            (tmp_path / f"broker-{broker}" / "orders-0" / "leader-epoch-checkpoint").write_text(
                text
            )
    sources = list_files([tmp_path], is_log_file, "is a log")
    [read] = find_logs([tmp_path], LogQuery())
    mine = logs[int(read.beside[-1])]
    expected = [
        at
        for other in logs.values()
        for at, (left, right) in enumerate(zip(mine, other, strict=False))
        if left != right and -1 not in {left, right}
    ]
    found = divergences(sources)
    assert [one.first_difference for one in found] == ([min(expected)] if expected else [])
    for one in found:
        assert one.directories[0] == read.directory
        assert one.brokers == tuple(int(name.split("/")[-2][-1]) for name in one.directories)
