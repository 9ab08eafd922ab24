"""Following growing logs returns each record once, in order, whatever state a log is in."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from flexwire.errors import CaptureError
from flexwire.logs import LogQuery, read_piece
from flexwire.logs.files import Partition
from flexwire.logs.follower import LogFollower, limit_offsets
from tests.capture.made_logs import ABORT, COMMIT, TIME, MadeSegment, plain

if TYPE_CHECKING:
    from pathlib import Path

A, B = Partition("a", 0), Partition("b", 3)
Offsets = dict[Partition, int]


class Growing:
    """A log that grows by a batch or a part of a batch, and is rewritten each time."""

    def __init__(self, root: Path, partition: Partition, seed: int) -> None:
        self.directory = root / str(partition)
        self.chance = random.Random(seed)
        self.segment = MadeSegment(0)
        self.offset = 0

    def grow(self) -> None:
        if self.segment.batches > 12:
            self.segment.write(self.directory)
            self.segment = MadeSegment(self.offset)
        count = self.chance.randint(1, 6)
        self.segment.add(plain(self.offset, count, TIME + self.offset))
        self.offset += count
        whole = bytes(self.segment.data)
        next_one = MadeSegment(0)
        next_one.add(plain(self.offset, 1))
        # A broker is writing the next batch, or has preallocated space.
        torn = next_one.data[: self.chance.randrange(len(next_one.data))]
        self.segment.data += bytes(self.chance.choice([b"", torn, bytes(100)]))
        self.segment.write(self.directory)
        self.segment.data[:] = whole


def follower(root: Path, *, fails_on_loss: bool = True, **query: object) -> LogFollower:
    asked = LogQuery(piece_bytes=600, **query)  # type: ignore[arg-type] # by name
    return LogFollower([root], asked, fails_on_loss=fails_on_loss)


def read(one: LogFollower, start: Offsets, end: Offsets) -> dict[Partition, list[int]]:
    found: dict[Partition, list[int]] = {}
    for task in one.tasks(start, end):
        for piece in task:
            for rows in read_piece(piece, ("offset",)):
                if isinstance(rows, pa.RecordBatch):
                    found.setdefault(piece.partition, []).extend(rows["offset"].to_pylist())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("most", [None, 1, 7])
@pytest.mark.parametrize("seed", [1, 2])
def test_each_record_is_read_once_whenever_it_is_looked_and_begun_anew(
    tmp_path: Path, seed: int, most: int | None
) -> None:
    chance = random.Random(seed)
    logs = [Growing(tmp_path, A, seed), Growing(tmp_path, B, seed + 10)]
    logs[0].grow()
    offsets = follower(tmp_path).first()
    assert offsets == {A: 0}
    found: dict[Partition, list[int]] = {A: [], B: []}
    planned: list[tuple[Offsets, Offsets, dict[Partition, list[int]]]] = []

    def step() -> bool:
        nonlocal offsets
        # A restarted process knows only the offsets.
        end = follower(tmp_path).latest(offsets, most)
        rows = read(follower(tmp_path), offsets, end)
        planned.append((offsets, end, rows))
        assert most is None or sum(map(len, rows.values())) <= most
        for partition, read_now in rows.items():
            found[partition] += read_now
        is_done, offsets = end == offsets, end
        return is_done

    for _ in range(40):
        chance.choice(logs).grow()
        if chance.random() < 0.5:
            step()
    while not step():
        pass
    assert found == {A: list(range(logs[0].offset)), B: list(range(logs[1].offset))}
    # A query that is killed between its plan and its commit requests the same offsets again.
    for start, end, rows in planned[:: 1 + len(planned) // 20]:
        assert read(follower(tmp_path), start, end) == rows


def test_a_stream_begins_where_it_is_told_to(tmp_path: Path) -> None:
    log = Growing(tmp_path, A, 3)
    while log.offset < 60:
        log.grow()
    assert follower(tmp_path).first(latest=True) == {A: log.offset}
    assert follower(tmp_path, starting={A: 23}).first(latest=True) == {A: 23}
    assert follower(tmp_path).first(latest={A}) == {A: log.offset}
    assert follower(tmp_path).first(latest={B}) == {A: 0}
    assert follower(tmp_path, starting_timestamp=TIME + 40).first() == {A: 40}
    by_partition = follower(tmp_path, starting_timestamps={A: TIME + 40})
    assert by_partition.first() == {A: 40}
    assert read(by_partition, {}, {A: 3}) == {A: [0, 1, 2]}
    late = follower(tmp_path, starting_timestamp=TIME + 9999)
    start = late.first()
    assert start == {A: log.offset}
    # New records are read, however late they arrive.
    log.grow()
    assert read(late, start, late.latest(start)) == {A: list(range(start[A], log.offset))}


def test_a_batch_has_about_as_many_tasks_as_were_asked_for(tmp_path: Path) -> None:
    log = Growing(tmp_path, A, 3)
    while log.offset < 200:
        log.grow()
    for wanted in (1, 4, 9):
        one = LogFollower([tmp_path], LogQuery(least_tasks=wanted))
        tasks = one.tasks({A: 10}, {A: 190})
        assert wanted <= len(tasks) <= 3 * wanted
        assert read(one, {A: 10}, {A: 190}) == {A: list(range(10, 190))}


def test_what_is_gone_before_it_was_read_is_an_error_unless_it_may_be(tmp_path: Path) -> None:
    for base in (0, 10, 20):
        segment = MadeSegment(base)
        segment.add(plain(base, 10))
        segment.write(tmp_path / "a-0")
    for file in (tmp_path / "a-0").glob(f"{0:020}.*"):
        file.unlink()
    strict, lenient = follower(tmp_path), follower(tmp_path, fails_on_loss=False)
    for call in (strict.latest, lambda start: strict.tasks(start, {A: 30})):
        with pytest.raises(
            CaptureError, match="begins with offset 10, but the next offset to read is 5"
        ):
            call({A: 5})
    assert lenient.latest({A: 5}) == {A: 30}
    assert read(lenient, {A: 5}, {A: 30}) == {A: list(range(10, 30))}
    with pytest.raises(
        CaptureError, match="ends before offset 30, but records up to 31 existed earlier"
    ):
        strict.latest({A: 31})
    assert lenient.latest({A: 31}) == {A: 31}
    with pytest.raises(CaptureError, match="b-3 no longer exists; offsets up to 4 had been read"):
        strict.latest({A: 30, B: 4})
    assert lenient.latest({A: 30, B: 4}) == {A: 30, B: 4}


def test_nothing_after_what_was_there_at_the_beginning_is_read_where_that_is_asked(
    tmp_path: Path,
) -> None:
    log = Growing(tmp_path, A, 5)
    log.grow()
    one = follower(tmp_path)
    until = one.latest({})
    log.grow()
    Growing(tmp_path, B, 5).grow()
    assert one.latest({}, until=until) == until
    assert one.latest({}).keys() == {A, B}


def test_the_ends_of_all_logs_are_known_whatever_a_batch_reads(tmp_path: Path) -> None:
    log = Growing(tmp_path, A, 5)
    log.grow()
    assert follower(tmp_path).ends is None
    one = follower(tmp_path)
    until = one.latest({})
    assert one.ends == until
    log.grow()
    other = Growing(tmp_path, B, 5)
    other.grow()
    there = {A: log.offset, B: other.offset}
    for how in ({"until": until}, {"most": 1}, {}):
        one.latest({A: 0}, **how)
        assert one.ends == there


def test_a_stream_of_what_is_committed_waits_for_the_end_of_transactions(tmp_path: Path) -> None:
    segment = MadeSegment(0)
    one = follower(tmp_path, isolation="read_committed")
    segment.add(plain(0, 2))
    segment.add(plain(2, 2), producer_id=1, is_transactional=True)
    segment.add(plain(4, 2), producer_id=2, is_transactional=True)
    segment.write(tmp_path / "a-0")
    assert one.latest({A: 0}) == {A: 2}
    assert read(one, {A: 0}, {A: 2}) == {A: [0, 1]}
    segment.end(6, 1, ABORT)
    segment.abort(1, 2, 6)
    segment.write(tmp_path / "a-0")
    assert one.latest({A: 2}) == {A: 4}
    segment.end(7, 2, COMMIT)
    segment.write(tmp_path / "a-0")
    end = one.latest({A: 2})
    assert end == {A: 8}
    assert read(one, {A: 2}, end) == {A: [4, 5]}


def test_a_limit_is_shared_and_kept() -> None:
    chance = random.Random(1)
    for _ in range(300):
        begin = {Partition("t", one): chance.randint(0, 50) for one in range(chance.randint(1, 5))}
        end = {one: first + chance.choice([0, 1, 3, 100]) for one, first in begin.items()}
        most = chance.randint(1, 60)
        got = limit_offsets(begin, end, most)
        assert all(begin[one] <= got[one] <= end[one] for one in begin)
        size = sum(end.values()) - sum(begin.values())
        assert sum(got.values()) - sum(begin.values()) == min(most, size)
