"""Views of random logs agree with a coordinator that reads the logs in order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state import last_commits, open_log, share_state
from flexwire.answers.state.share_state import _BATCHES, combined_batches
from tests.searching import in_make_long
from tests.spark.internal_topics.made import MadeTopic, commit, keyed, legacy_commit
from tests.spark.internal_topics.replays import (
    ABORT,
    COMMIT,
    END,
    EXPIRE,
    MARKERS,
    REMOVE,
    TOMBSTONES,
    WITHIN,
    Event,
    NewCoordinator,
    OldLoading,
    OldRunning,
    compacted,
    replayed,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.state import InternalLog
    from tests.spark.internal_topics.replays import Told

pytestmark = pytest.mark.spark
PARTITIONS, EVENTS, GROUPS, PRODUCERS = 8, 150, 10, 4
# The value versions that coordinators write: up to 3 in 3.x and 4.0, then 4.
OLD, NEW = 3, 4


def events(drawn: random.Random, partition: int) -> list[Event]:
    found = []
    last: dict[int, tuple[str, int]] = {}
    for at in range(EVENTS):
        key = f"g{partition}-{drawn.randrange(GROUPS)}", drawn.randrange(2)
        producer = drawn.randrange(PRODUCERS)
        what = drawn.choice([COMMIT, WITHIN, WITHIN, EXPIRE, REMOVE, END, END, ABORT])
        if what == WITHIN:
            # A transaction often commits a key twice.
            key = last.get(producer, key) if drawn.random() < 0.7 else key
            last[producer] = key
        found.append(Event(at, what, key, at, producer))
    return found


Removed = tuple[frozenset[int], frozenset[int]]


def written(
    root: Path, every: list[list[Event]], version: int = NEW, removed: list[Removed] | None = None
) -> Path:
    for partition, some in enumerate(every):
        log = MadeTopic("__consumer_offsets", partition)
        if removed is not None:
            log.removed, log.emptied = removed[partition]
        for one in some:
            if one.what in MARKERS:
                log.end(one.producer, commit=one.what == END)
                continue
            group, number = one.key
            offset = None if one.what in TOMBSTONES else one.offset
            producer = one.producer if one.what == WITHIN else -1
            made = legacy_commit if one.is_legacy else commit
            log.add(*made(number, offset, group, version=version), producer=producer)
        log.write(root)
    return root


def check(log: InternalLog, truths: list[Told]) -> tuple[int, int]:
    """Compare the facts that a view claims to know with each possible truth.

    Return the number of rows that are fully known, and of those that are not.
    """
    rows = {(row.group, row.partition): row for row in last_commits(log).collect()}
    for truth in truths:
        for key in {*truth, *rows}:
            offset, pending = truth.get(key, (None, ()))
            row = rows.get(key)
            if row is None:
                # Each partition of the log contains its own groups.
                place = int(key[0][1:].partition("-")[0])
                assert offset is None or place in log.incomplete, key
                # There is no row for commits that were pending and later aborted if they may have
                # been removed.
                assert not pending or place in log.holed, key
                continue
            if row.is_known:
                assert row.offset == offset, key
            if row.pending is not None:
                told = sorted((one.producer_id, one.offset) for one in row.pending)
                assert tuple(told) == pending, key
    known = sum(row.is_known and row.pending is not None for row in rows.values())
    return known, len(rows) - known


@pytest.mark.parametrize("version", [OLD, *in_make_long(NEW)])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.cluster)])
def test_commits_at_any_moment_are_those_of_coordinators(
    seed: int, version: int, spark: SparkSession, tmp_path: Path
) -> None:
    drawn = random.Random(seed)
    every = [events(drawn, partition) for partition in range(PARTITIONS)]
    if version == OLD:
        every = [[replace(one, is_legacy=drawn.random() < 0.1) for one in some] for some in every]
    root = written(tmp_path, every, version)
    kinds = [NewCoordinator, *((OldLoading, OldRunning) if version == OLD else ())]
    # Logs are read as of their ends and as of other moments, some of which precede all records.
    drawn_moments = {number: drawn.randrange(EVENTS) for number in range(PARTITIONS)}
    for moment in ({}, {0: 0, 2: 90}, drawn_moments):
        truths: list[Told] = []
        for kind in kinds:
            truth: Told = {}
            for partition, some in enumerate(every):
                truth |= replayed(kind(), some[: moment.get(partition, EVENTS)])
            truths.append(truth)
        known, unknown = check(open_log(spark, root, "consumer-offsets", offsets=moment), truths)
        # Only one coordinator writes version 4, and nothing was removed from this log.
        assert unknown == 0 if version == NEW else known > unknown > 0


# The test uses as many partitions as two logs contain. Each moment requires one query.
@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.cluster) for n in (2, 3, 4, 5))]
)
def test_of_a_compacted_log_only_what_is_true_is_known(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    drawn = random.Random(seed)
    every = [events(drawn, partition) for partition in range(2 * PARTITIONS)]
    # Nothing is removed from one of the logs. No file records how far the cleaner got.
    removed = [
        compacted(some, drawn.choice([EVENTS, EVENTS // 2, EVENTS // 10]) if number else 0, drawn)
        for number, some in enumerate(every)
    ]
    # The key occurs in both forms, which compaction treats as two keys. The first commit with the
    # second form is gone.
    last = len(every)
    forms = [Event(at, COMMIT, (f"g{last}-0", 0), at, is_legacy=at == 0) for at in range(3)]
    every, removed = [*every, forms], [*removed, (frozenset({1}), frozenset())]
    root = written(tmp_path, every, NEW, removed)
    moments, exact = [dict[int, int]()], 0
    for most in (EVENTS, EVENTS // 3, 12):
        moments += [{number: drawn.randrange(most) for number in range(len(every))}]
    # The moment directly after each partition's last gap, which the cleaner may not have reached.
    lasts = [max({*gone, *emptied}, default=0) for gone, emptied in removed]
    moments += [{number: at + 1 for number, at in enumerate(lasts)}]
    for moment in [moments[0], *(one | {last: 2} for one in moments[1:])]:
        truth: Told = {}
        for partition, some in enumerate(every):
            truth |= replayed(NewCoordinator(), some[: moment.get(partition, EVENTS)])
        log = open_log(spark, root, "consumer-offsets", offsets=moment)
        known, unknown = check(log, [truth])
        assert 0 not in log.incomplete
        if moment:
            exact += known
        else:
            assert (unknown, log.incomplete) == (0, ())
    assert exact > 0


Shared = dict[str, tuple[int, int]]


def shares(drawn: random.Random, partition: int) -> list[tuple[str, str, int]]:
    """Return snapshots, updates and tombstones of share groups, each with its snapshot epoch."""
    found: list[tuple[str, str, int]] = []
    epochs: dict[str, int] = {}
    for _ in range(EVENTS):
        group = f"s{partition}-{drawn.randrange(GROUPS)}"
        what = drawn.choice(["snapshot", "update", "update", "delete"])
        if group not in epochs or what == "snapshot":
            what, epochs[group] = "snapshot", epochs.get(group, -1) + 1
        found.append((what, group, epochs[group]))
        if what == "delete":
            del epochs[group]
    return found


def shared(some: list[tuple[str, str, int]]) -> Shared:
    """Return the share coordinator's state: the snapshot's offset by group, and the number of
    updates.
    """
    made: Shared = {}
    for at, (what, group, _) in enumerate(some):
        if what == "delete":
            made.pop(group, None)
        elif what == "snapshot":
            made[group] = at, 0
        else:
            made[group] = made[group][0], made[group][1] + 1
    return made


SEEDS = 3
MOMENTS: Final[list[Callable[[int], int]]] = [
    lambda _: EVENTS,
    lambda start: start // 2,
    lambda start: start,
    lambda start: start + 3,
    lambda start: start + 15,
    lambda _: EVENTS - 2,
]
"""The offset up to which a partition is read, by its log start offset."""


def pruned(root: Path) -> list[tuple[list[tuple[str, str, int]], int]]:
    """Write a partition for each seed, once with the records before its start and once without.

    Return what was written to each partition, and its start.
    """
    made, starts = [], []
    for partition in range(2 * SEEDS):
        some = shares(random.Random(partition % SEEDS), partition)
        # A coordinator deletes everything before the oldest snapshot that it needs.
        start = min(at for at, _ in shared(some).values())
        assert 0 < start < EVENTS - 20
        log = MadeTopic("__share_group_state", partition)
        log.removed = range(start if partition >= SEEDS else 0)
        for at, (what, group, epoch) in enumerate(some):
            number, name = (1, "ShareUpdate") if what == "update" else (0, "ShareSnapshot")
            value = None if what == "delete" else {"snapshot_epoch": epoch, "start_offset": at}
            log.add(*keyed(number, name, {"group_id": group, "partition": 0}, value))
        log.write(root)
        made.append((some, start))
        starts.append(f"__share_group_state {partition} {start}\n")
    text = f"0\n{len(starts)}\n{''.join(starts)}"
    root.joinpath("log-start-offset-checkpoint").write_text(text)
    return made


@pytest.mark.long
def test_of_a_pruned_log_of_share_groups_only_what_is_true_is_known(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = pruned(tmp_path)
    unknown: Counter[int] = Counter()
    for moment in MOMENTS:
        ends = {partition: moment(start) for partition, (_, start) in enumerate(made)}
        log = open_log(spark, tmp_path, "share-state", offsets=ends)
        every = {row.group_id: row for row in share_state(log).collect()}
        read = 0
        for partition, (some, start) in enumerate(made):
            rows = {
                group: row for group, row in every.items() if group.startswith(f"s{partition}-")
            }
            read += len(rows)
            truth = shared(some[: ends[partition]])
            known = {group: row for group, row in rows.items() if row.is_known}
            assert {group: row.updates for group, row in known.items()} == {
                group: truth[group][1] for group in known
            }
            assert ({*truth} <= {*rows}) or partition in log.incomplete
            unknown[partition] += len(rows) - len(known)
            if ends[partition] == EVENTS:
                assert {*known} == {*truth}
            else:
                assert (partition in log.incomplete) == (ends[partition] < start)
        assert read == len(every)
    assert min(unknown[partition] for partition in range(2 * SEEDS)) > 0


def state(batches: list[tuple[int, int, int, int]], start: int) -> list[tuple[int, int, int, int]]:
    """Return the state of each offset, with equal neighbors merged."""
    fates: dict[int, tuple[int, int]] = {}
    for first, last, fate, count in batches:
        for offset in range(max(first, start), last + 1):
            # If batches overlap, the one with the highest count wins, then the one with the highest
            # state.
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
    """Draw lists of overlapping batches, and start offsets. No broker writes some of these."""
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
    made = rows.select("number", combined_batches(F.col("batches"), F.col("start")).alias("held"))
    found = {row.number: [tuple(one) for one in row.held] for row in made.collect()}
    for number, (batches, start) in enumerate(cases[:300]):
        real = [one for one in batches if one[0] >= 0 and one[0] <= one[1]]
        assert found[number] == state(real, start), (batches, start)
    assert [found[number] for number in range(300, 303)] == [
        [],
        [],
        [(most - 1, most - 1, 0, 9)],
    ]
