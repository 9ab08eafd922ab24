"""If a log is read repeatedly as it grows, each batch and each damaged byte is read once."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.logs import LogQuery
from flexwire.logs.discovery import find_logs
from flexwire.logs.follower import LogResumption, resume_log
from flexwire.tables.log_rows import LogTableRows, LogWork
from flexwire.tables.log_schema import BATCHES
from tests.capture.made_logs import COMMIT, TIME, MadeSegment, plain, write_log

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from flexwire.logs import LogPiece

GARBAGE = b"not a batch, and more of it"


def rows_of(pieces: Iterable[LogPiece]) -> list[dict[str, Any]]:
    work = LogWork(tuple((0, one) for one in pieces), frozenset(), {}, 0)
    rows = LogTableRows(work, lambda *_: None)
    return [row for table, found in rows if table == BATCHES for row in found.to_pylist()]


def read(directory: Path, first: int | None, size: int = 600) -> LogResumption:
    [log] = find_logs([directory], LogQuery())
    return resume_log(log, first, size)


def placed(row: dict[str, Any]) -> tuple[Any, ...]:
    name = row["file"].rpartition("/")[2]
    return name, row["position"], row["size"], row["base_offset"], row["records"], row["error"]


@pytest.mark.slow
@pytest.mark.parametrize("indexed", ["log index timeindex", "log"])
@pytest.mark.parametrize("seed", range(4))
def test_each_batch_and_each_damaged_byte_comes_once(
    tmp_path: Path, seed: int, indexed: str
) -> None:
    chance = random.Random(seed)
    log = tmp_path / "orders-0"
    segment, offset, known = MadeSegment(0, every=3), 0, None
    found: list[dict[str, Any]] = []
    for turn in range(30):
        for _ in range(chance.randint(0, 4)):
            if chance.random() < 0.2:
                # No broker continues a log after such bytes, but a disk may still contain them.
                segment.data += GARBAGE
            count = chance.randint(1, 5)
            segment.add(plain(offset, count, TIME + offset, bytes(chance.randint(0, 90))))
            offset += count
            if chance.random() < 0.2:
                segment.end(offset, 7, COMMIT)
                offset += 1
        whole = bytes(segment.data)
        torn = chance.choice([b"", GARBAGE[:9], bytes(100), whole[: chance.randrange(60)]])
        segment.data += torn
        segment.write(log, kinds=indexed)
        segment.data[:] = whole
        if turn % 7 == 6:
            segment.write(log, kinds=indexed)
            segment = MadeSegment(offset, every=3)
            if chance.random() < 0.5:
                segment.write(log, kinds=indexed)
        done = read(log, known)
        assert (done.next_offset, done.is_behind, done.is_gone) == (offset, False, False)
        assert done.waiting >= len(torn) * bool(segment.batches)
        found += rows_of(done.pieces)
        known = done.next_offset
        assert not read(log, known).pieces, "nothing is new"
    segment.write(log, kinds=indexed)
    final = read(log, None)
    assert sorted(map(placed, found), key=repr) == sorted(
        map(placed, rows_of(final.pieces)), key=repr
    )
    assert any(row["error"] for row in found)


def test_what_a_compaction_made_of_several_segments_is_known(tmp_path: Path) -> None:
    one, other = MadeSegment(0), MadeSegment(10)
    one.add(plain(0, 10))
    other.add(plain(10, 10))
    log = write_log(tmp_path / "orders-0", [one, other])
    assert read(log, None).next_offset == 20
    (log / f"{10:020}.log").unlink()
    merged, active = MadeSegment(0), MadeSegment(20)
    merged.add(plain(9, 1))
    merged.add(plain(10, 10))
    merged.add(plain(20, 3))
    active = MadeSegment(23)
    active.add(plain(23, 2))
    write_log(log, [merged, active])
    done = read(log, 20)
    assert done.next_offset == 25
    assert [row["base_offset"] for row in rows_of(done.pieces)] == [20, 23]


def test_what_was_deleted_before_it_was_read_and_what_ends_before_it_is_said(
    tmp_path: Path,
) -> None:
    segment = MadeSegment(50)
    segment.add(plain(50, 10))
    log = write_log(tmp_path / "orders-0", [segment])
    gone = read(log, 20)
    assert (gone.is_gone, gone.next_offset, len(rows_of(gone.pieces))) == (True, 60, 1)
    behind = read(log, 61)
    assert (behind.is_behind, behind.next_offset, behind.pieces) == (True, 61, ())
    assert not read(log, 60).is_behind
