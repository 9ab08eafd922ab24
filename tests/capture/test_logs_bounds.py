"""With bounds on offsets or times, the result contains exactly the requested records."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import ArgumentError
from flexwire.logs import LogQuery, plan
from flexwire.logs.files import Bounds, Partition
from tests.capture.made_logs import (
    TIME,
    MadeSegment,
    all_records,
    plain,
    random_log,
    read_offsets,
    write_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.records import Record

KINDS = ["log index timeindex", "log"]


@pytest.fixture(params=KINDS)
def log(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, list[Record]]:
    made = random_log(21)
    for segment in made:
        segment.write(tmp_path / "a-0", kinds=request.param)
    return tmp_path, all_records(made)


def test_offsets_are_those_between_the_bounds(log: tuple[Path, list[Record]]) -> None:
    root, records = log
    chance = random.Random(1)
    last = records[-1].offset
    for _ in range(25):
        low, high = sorted(chance.choices(range(-3, last + 5), k=2))
        expected = [one.offset for one in records if low <= one.offset < high]
        size = chance.choice([500, 1 << 20])
        starting, ending = {("a", 0): low}, {("a", 0): high}
        assert read_offsets(root, starting=starting, ending=ending, piece_bytes=size) == expected
        assert read_offsets(root, offsets=Bounds(low, high - 1), piece_bytes=size) == expected


def test_times_are_those_between_the_bounds(log: tuple[Path, list[Record]]) -> None:
    root, records = log
    chance = random.Random(2)
    times = [one.timestamp for one in records]
    for _ in range(40):
        low, high = sorted(chance.choices(range(min(times) - 5, max(times) + 5), k=2))
        expected = [one.offset for one in records if low <= one.timestamp <= high]
        assert read_offsets(root, timestamps=Bounds(low, high)) == expected


def test_a_partition_begins_and_ends_at_its_first_record_that_is_as_late(
    log: tuple[Path, list[Record]],
) -> None:
    root, records = log
    chance = random.Random(3)
    times = [one.timestamp for one in records]
    for _ in range(40):
        start, end = chance.choices(range(min(times) - 5, max(times) + 5), k=2)
        first = next((one.offset for one in records if one.timestamp >= start), None)
        after = next((one.offset for one in records if one.timestamp >= end), None)
        expected = [
            one.offset
            for one in records
            if first is not None and one.offset >= first and (after is None or one.offset < after)
        ]
        assert read_offsets(root, starting_timestamp=start, ending_timestamp=end) == expected
        # The times of one partition take precedence over the times of all partitions.
        by_partition: dict[str, Any] = {
            "starting_timestamps": {("a", 0): start},
            "ending_timestamps": {("a", 0): end},
        }
        both: dict[str, Any] = {"starting_timestamp": 0, "ending_timestamp": 0, **by_partition}
        assert read_offsets(root, **both) == expected


def test_a_partition_without_a_record_that_late_fails_where_that_is_asked(
    log: tuple[Path, list[Record]],
) -> None:
    root, records = log
    late = max(one.timestamp for one in records)
    for times in ({"starting_timestamp": late + 1}, {"starting_timestamps": {("a", 0): late + 1}}):
        assert read_offsets(root, **times) == []
        with pytest.raises(ArgumentError, match=rf"^a-0 has no record at or .* {late + 1}$"):
            read_offsets(root, **times, needs_start=True)
    assert read_offsets(root, starting_timestamp=late, needs_start=True)


def test_times_of_a_partition_that_is_not_there_are_told(tmp_path: Path) -> None:
    MadeSegment(0).write(tmp_path / "a-0")
    for name in ("starting", "ending"):
        by_time: dict[str, Any] = {f"{name}_timestamps": {Partition("b", 0): 1}}
        with pytest.raises(ArgumentError, match=rf"^{name} timestamps: expected .*\(a-0\)"):
            plan([tmp_path], replace(LogQuery(), **by_time))


@pytest.mark.parametrize("kinds", KINDS)
def test_there_are_about_as_many_tasks_as_were_asked_for(tmp_path: Path, kinds: str) -> None:
    made = random_log(23, segments=3, batches=80)
    for segment in made:
        segment.write(tmp_path / "a-0", kinds=kinds)
    expected = read_offsets(tmp_path)
    assert len(plan([tmp_path], LogQuery())) == 1
    for wanted in (1, 2, 3, 7, 20):
        query = LogQuery(least_tasks=wanted)
        found = len(plan([tmp_path], query))
        assert (found == 1) is (wanted == 1)
        assert wanted / 3 <= found <= 2 * wanted + 1
        assert read_offsets(tmp_path, least_tasks=wanted) == expected
    # No task gets less than one batch.
    assert len(plan([tmp_path], LogQuery(least_tasks=10**9))) <= sum(one.batches for one in made)


def test_segments_and_ranges_that_cannot_hold_what_is_wanted_are_not_read(tmp_path: Path) -> None:
    made = random_log(22, segments=4, batches=60)
    write_log(tmp_path / "a-0", made)
    whole = sum(len(one.data) for one in made)

    def read_bytes(**query: object) -> int:
        tasks = plan([tmp_path], LogQuery(**query))  # type: ignore[arg-type] # by name
        return sum(one.stop - one.start for task in tasks for one in task)

    middle = made[2].base + 30
    assert read_bytes(offsets=Bounds(middle, middle)) < whole / 30
    assert read_bytes(offsets=Bounds(high=made[1].base - 1)) == len(made[0].data)
    # The last segment of a log may continue after its index ends.
    late = made[2].latest + 1000
    assert read_bytes(timestamps=Bounds(low=late)) == len(made[3].data)
    assert read_bytes(offsets=Bounds(5, 4)) == 0


def test_timestamps_of_the_log_are_used_where_the_broker_set_them(tmp_path: Path) -> None:
    segment = MadeSegment(0)
    segment.add(plain(0, 5), timestamp_type="LogAppendTime", max_timestamp=TIME + 100)
    segment.add(plain(5, 5), timestamp_type="LogAppendTime", max_timestamp=TIME + 200)
    segment.write(tmp_path / "a-0")
    assert read_offsets(tmp_path, timestamps=Bounds(low=TIME + 150)) == [5, 6, 7, 8, 9]
    assert read_offsets(tmp_path, starting_timestamp=TIME + 101) == [5, 6, 7, 8, 9]
