"""The reader returns exactly the part of a cluster's metadata that snapshots and log cover."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import CaptureError
from flexwire.logs.metadata import (
    MetadataCoverage,
    SnapshotName,
    StateBase,
    find_metadata,
    parse_snapshot,
    survey,
)
from tests.capture import log_vectors
from tests.capture.made_metadata import TIME, batch, elected, log, snapshot, value, write

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = value("NoOpRecord")


def covered(path: Path, time: int | None = None) -> MetadataCoverage:
    runs, snapshots = survey(find_metadata(path), time)
    return MetadataCoverage(tuple(runs), tuple(snapshots))


def bases(path: Path) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in covered(path).spans()]


def test_what_real_brokers_wrote(tmp_path: Path) -> None:
    log_vectors.write_all(tmp_path)
    found = covered(tmp_path / "4.4.0")
    assert [(one.start, one.end, one.voters) for one in found.runs] == [(0, 345, 1)]
    names = [(0, 0), (96, 1), (186, 1), (344, 2)]
    assert [one.name for one in found.snapshots] == names
    assert not any(one.problem for one in found.snapshots)
    # The snapshot at offset 0 contains the records with which the cluster was formatted.
    assert found.base(95) == StateBase(SnapshotName(0, 0), 0, 95)
    assert found.base(96) == StateBase(SnapshotName(96, 1), 96, 96)
    assert found.base(200, oldest=True) == StateBase(SnapshotName(0, 0), 0, 200)
    assert found.committed() == 345
    older = covered(tmp_path / "__cluster_metadata-0")
    assert [(one.start, one.end) for one in older.runs] == [(0, 130)]
    assert older.base(127) == StateBase(None, 0, 127)


def test_a_directory_above_both_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, {"0": log([NOTHING])})
    with pytest.raises(CaptureError, match=r"expected one __cluster_metadata-0 directory .*, got"):
        find_metadata(tmp_path)
    shutil.rmtree(tmp_path / "two")
    assert find_metadata(tmp_path).directory == str(tmp_path / "one" / "__cluster_metadata-0")


def test_what_a_broker_removes_is_not_read(tmp_path: Path) -> None:
    there = write(tmp_path, {"0": log([NOTHING] * 9), "4-1": snapshot([])})
    name = SnapshotName(6, 1).file
    for ending in (".deleted", ".part", "-8812.part"):
        (there / f"{name}{ending}").write_bytes(snapshot([]))
        assert parse_snapshot(f"{name}{ending}") is None
    (there / f"{4:020}.log.deleted").write_bytes(b"")
    assert bases(there) == [(0, 10), (4, 10)]
    assert parse_snapshot("9" * 20 + "-0000000001.checkpoint") is None
    assert parse_snapshot("bootstrap.checkpoint") is None


def test_the_state_is_known_where_nothing_is_missing(tmp_path: Path) -> None:
    """With these snapshots, the state is known except in the gap between offsets 14 and 18."""
    files = {
        "10": batch(10, [NOTHING] * 5),
        "18": batch(18, [NOTHING] * 2),
        "12-1": snapshot([]),
        "15-1": snapshot([]),
        "30-2": snapshot([]),
    }
    there = write(tmp_path, files)
    found = covered(there)
    assert bases(there) == [(12, 15), (15, 15), (30, 30)]
    assert found.base(15) == StateBase(SnapshotName(15, 1), 15, 15)
    assert found.base(15, oldest=True) == StateBase(SnapshotName(12, 1), 12, 15)
    known = "it is known from 12 to 15, at 30"
    for offset in (0, 11, 16, 19, 20, 31):
        with pytest.raises(CaptureError, match=f"as of offset {offset} is not known; {known}"):
            found.base(offset)
    # A snapshot does not include the later records of the log.
    assert found.committed() == 15


def test_without_a_snapshot_a_log_must_begin_at_0(tmp_path: Path) -> None:
    there = write(tmp_path, {"3": batch(3, [NOTHING])})
    with pytest.raises(CaptureError, match="is not known; no state is known"):
        covered(there).base(4)
    assert bases(write(tmp_path, {"0": log([NOTHING, NOTHING])})) == [(0, 4)]
    assert bases(write(tmp_path / "empty", {"0": b""})) == [(0, 0)]
    assert bases(write(tmp_path / "fetched", {"7": b"", "7-1": snapshot([])})) == [(7, 7)]


def test_a_torn_end_is_cut_off_and_damage_within_is_a_gap(tmp_path: Path) -> None:
    whole = log([NOTHING], [NOTHING], [NOTHING])
    sizes = [len(log()), len(log([NOTHING])), len(log([NOTHING], [NOTHING]))]
    for cut in range(sizes[-1] + 1, len(whole)):
        assert bases(write(tmp_path, {"0": whole[:cut]})) == [(0, 3)]
    assert bases(write(tmp_path, {"0": whole + bytes(4096)})) == [(0, 4)]
    damaged = bytearray(whole)
    damaged[sizes[0] + 16] = 7
    there = write(tmp_path, {"0": bytes(damaged)})
    assert [(one.start, one.end) for one in covered(there).runs] == [(0, 1), (2, 4)]
    assert bases(there) == [(0, 1)]


def test_a_snapshot_that_is_not_whole_or_not_of_this_log_is_not_used(tmp_path: Path) -> None:
    whole, name = snapshot([NOTHING] * 3), SnapshotName(3, 1).file
    for cut in range(len(whole)):
        found = covered(write(tmp_path, {"5": batch(5, [NOTHING]), "3-1": whole[:cut]}))
        assert "with a snapshot " in (found.snapshots[0].problem or "")
        with pytest.raises(
            CaptureError, match=f"{name} is not used: the file does not (begin|end)"
        ):
            found.base(3)
    found = covered(write(tmp_path / "more", {"0": b"", "3-1": whole + NOTHING}))
    assert found.snapshots[0].problem == "the file does not end with a snapshot footer"
    begin, end = whole.index(batch(1, [NOTHING] * 3)), len(batch(1, [NOTHING] * 3))
    lacking = whole[:begin] + whole[begin + end :]
    found = covered(write(tmp_path / "lacking", {"0": b"", "3-1": lacking}))
    assert found.snapshots[0].problem == "the file does not end with a snapshot footer"
    # The log before the gap has a different epoch, because another leader wrote it.
    found = covered(write(tmp_path / "other", {"0": log([NOTHING] * 5), "3-2": whole}))
    assert "the log has epoch 1 at offset 2" in (found.snapshots[0].problem or "")
    assert found.base(3) == StateBase(None, 0, 3)


def test_a_time_is_before_the_first_later_record(tmp_path: Path) -> None:
    """A time means the state before the first record with a later time."""
    data = log([NOTHING], [NOTHING], [NOTHING])
    whole = write(tmp_path, {"0": data, "3-1": snapshot([], time=TIME + 2000)})
    for milliseconds, offset in ((-1, 0), (0, 1), (999, 1), (1000, 2), (2500, 3), (9000, 4)):
        assert covered(whole, TIME + milliseconds).at_time(TIME + milliseconds) == offset
    late = {"3": batch(3, [NOTHING], time=TIME + 3000), "3-1": snapshot([], time=TIME + 2000)}
    there = write(tmp_path / "late", late)
    assert covered(there, TIME + 2000).at_time(TIME + 2000) == 3
    assert covered(there, TIME + 3000).at_time(TIME + 3000) == 4
    with pytest.raises(CaptureError, match=f"at {TIME + 1999} ms is not known; .* from 3 to 4"):
        covered(there, TIME + 1999).at_time(TIME + 1999)


def test_what_is_known_to_be_committed(tmp_path: Path) -> None:
    alone, three = log([NOTHING] * 4), log([NOTHING] * 4, voters=(1, 2, 3))
    assert covered(write(tmp_path / "alone", {"0": alone})).committed() == 5
    assert covered(write(tmp_path / "three", {"0": three})).committed() == 0
    with_one = {"0": three, "3-1": snapshot([])}
    assert covered(write(tmp_path / "snapshot", with_one)).committed() == 3
    # The last election decides.
    joined = alone + elected(5, 1, 2, epoch=2)
    assert covered(write(tmp_path / "joined", {"0": joined})).committed() == 0
    # A snapshot that a follower fetched does not show the follower's earlier records.
    ahead = {"0": three, "9-1": snapshot([])}
    assert covered(write(tmp_path / "ahead", ahead)).committed() == 0
