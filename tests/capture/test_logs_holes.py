"""The gaps that batch headers reveal, piece by piece, are the offsets without a record."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from flexwire.logs import LogQuery
from flexwire.logs import records as log_records
from flexwire.logs.discovery import find_logs
from flexwire.logs.holes import Holes, holes_of, offsets_of
from flexwire.logs.pieces import pieces_of
from flexwire.records import Record, encode_batch
from tests.capture.made_logs import TIME, MadeSegment, write_log

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.logs.replicas import Replica


def holes(directory: Path, piece_bytes: int) -> Holes:
    [log] = find_logs([directory], LogQuery())
    pieces = pieces_of(log, LogQuery(piece_bytes=piece_bytes))
    # The results are in the order in which tasks finish, which is arbitrary.
    held = [one for piece in pieces if (one := offsets_of(piece)) is not None]
    random.Random(1).shuffle(held)
    return holes_of(log, held)


def records(offsets: list[int]) -> list[Record]:
    return [Record(one, TIME, b"k", b"v" * 9, []) for one in offsets]


def damaged(drawn: random.Random, share: float) -> tuple[list[MadeSegment], set[int], set[int]]:
    """Make a log from which records were removed as compaction does.

    Also return the log's offsets, and the offsets that may be reported as missing: all offsets of
    each batch that lacks a record.
    """
    made, at, there, doubtful = [], 0, set[int](), set[int]()
    for _ in range(drawn.randint(1, 4)):
        segment = MadeSegment(at)
        made.append(segment)
        for _ in range(drawn.randint(0, 20)):
            offsets = list(range(at, at + drawn.randint(1, 4)))
            at = offsets[-1] + 1
            kept = [one for one in offsets if drawn.random() >= share]
            there |= {*kept}
            if not kept and drawn.random() < 0.7:
                doubtful |= {*offsets}
                continue
            if len(kept) < len(offsets):
                doubtful |= {*offsets}
            segment.data += encode_batch(
                records(kept), base_offset=offsets[0], last_offset=offsets[-1]
            )
    return made, there, doubtful


@pytest.mark.parametrize("share", [0, 0.02, 0.3, 0.95])
@pytest.mark.parametrize("seed", range(12))
def test_holes_are_what_is_missing(
    seed: int, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, there, doubtful = damaged(random.Random(seed), share)
    write_log(tmp_path / "a-0", made)
    # A piece is read in several steps of one or two batches.
    monkeypatch.setattr(log_records, "_ROOM", 150)
    found = {holes(tmp_path / "a-0", size) for size in (1, 300, 1 << 20)}
    assert len(found) == 1
    [one] = found
    # The batches show only where the log begins and ends, so nothing before or after the batches
    # counts as missing.
    missing = {*range(one.log_end)} - there
    assert missing <= {*range(one.first, one.end)}
    assert one.log_end >= max(there, default=-1) + 1
    if not missing:
        assert (one.first, one.end) == (one.log_end, 0)
    else:
        lost = {at for at in doubtful if at < one.log_end}
        assert (one.first, one.end) == (min(lost), max(lost) + 1)


def test_the_start_of_a_log_is_a_hole(tmp_path: Path) -> None:
    segment = MadeSegment(0)
    for at in range(9):
        segment.add(records([at]))
    write_log(tmp_path / "a-0", [segment])
    assert holes(tmp_path / "a-0", 1) == Holes(9, 0, 9)
    start = tmp_path / "log-start-offset-checkpoint"
    start.write_text("0\n1\na 0 4\n")
    assert holes(tmp_path / "a-0", 1) == Holes(0, 4, 9)
    start.unlink()
    later = MadeSegment(20)
    write_log(tmp_path / "a-0", [later])
    # The last segment is empty, and the earlier ones were deleted.
    assert holes(tmp_path / "a-0", 1) == Holes(9, 20, 20)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_message_sets_prove_nothing_that_is_not_so(
    magic: int, compression: str, tmp_path: Path
) -> None:
    segment = MadeSegment(0)
    old = [Record(one, TIME if magic else -1, b"k", b"v", []) for one in range(3)]
    segment.data += encode_batch(old, magic=magic, compression=compression)
    segment.add(records([3, 4]))
    write_log(tmp_path / "a-0", [segment])
    found = holes(tmp_path / "a-0", 1 << 20)
    # A wrapper message does not state how many messages it contains, so some messages may be
    # missing.
    assert found == (Holes(5, 0, 5) if compression == "none" else Holes(0, 3, 5))


def test_a_log_without_a_batch_has_no_hole(tmp_path: Path) -> None:
    write_log(tmp_path / "a-0", [MadeSegment(0)])
    log: Replica
    [log] = find_logs([tmp_path / "a-0"], LogQuery())
    assert holes_of(log, []) == Holes(0, 0, 0)
