"""A capture that is decoded range by range yields the same rows as in a single range.

test_reference.py checks that these are the rows of the reference.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from flexwire.storage.file_search import list_captures
from flexwire.survey.ranges import FRAMES, decode_range
from flexwire.survey.survey import AnalysisRequest, RangeContext, Surveyor, range_context_name
from flexwire.tables.parquet import TableWriter
from tests.capture.interleaved import OVERLAPPING, SHAPES, write_capture
from tests.reference.frames import captured
from tests.searching import times, trying_few

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.survey.survey import Survey

Rows = dict[str, list[dict[str, Any]]]


def surveyed(files: list[Path], **how: Any) -> tuple[AnalysisRequest, Survey, dict[str, bytes]]:
    asked = AnalysisRequest(tuple(list_captures(files)), record_bytes=True, **how)
    kept: dict[str, bytes] = {}
    return asked, Surveyor(asked, kept.__setitem__).run(), kept


def rows_of(asked: AnalysisRequest, survey: Survey, kept: dict[str, bytes]) -> Rows:
    """Return the rows of all ranges by table, sorted."""
    found: Rows = defaultdict(list)
    for number in range(survey.ranges):
        for table, batch in decode_range(asked, number, kept.__getitem__):
            found[table] += batch.to_pylist()
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


def known_together(survey: Survey, kept: dict[str, bytes]) -> RangeContext:
    """Return the information for a range that is the whole capture."""
    known = [pickle.loads(kept[range_context_name(one)]) for one in range(survey.ranges)]  # noqa: S301 - ours
    return RangeContext.joined(known)


# Two shapes contain everything that a capture can contain, one shape has several taps, and one
# shape has a single connection.
FEW = ("EVERYTHING", "HOSTS", "ONE_CONNECTION", "UNORDERED")


@pytest.mark.slow
@pytest.mark.parametrize("name", trying_few(sorted(SHAPES), FEW))
def test_ranges_give_the_rows_of_the_whole(name: str, tmp_path: Path) -> None:
    for seed in range(times(1)):
        files = write_capture(tmp_path / str(seed), seed, SHAPES[name])
        whole = surveyed(files)
        assert whole[1].ranges == 1
        parts = surveyed(files, range_bytes=15_000, chunk_bytes=3_000)
        assert parts[1].ranges > 1
        assert whole[1].is_merged == parts[1].is_merged
        assert parts[1].connections == whole[1].connections
        assert known_together(*parts[1:]) == known_together(*whole[1:])
        expected, got = rows_of(*whole), rows_of(*parts)
        assert got.keys() == expected.keys()
        for table, rows in expected.items():
            assert got[table] == rows, (seed, table)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["EVERYTHING", "HOSTS"])
def test_a_range_gives_the_same_files_each_time(name: str, tmp_path: Path) -> None:
    files = write_capture(tmp_path / "capture", 1, SHAPES[name])
    asked, survey, kept = surveyed(files, range_bytes=30_000, chunk_bytes=5_000)

    def digests(out: Path) -> dict[str, str]:
        out.mkdir()
        writers: dict[str, TableWriter] = {}
        for table, batch in decode_range(asked, survey.ranges - 1, kept.__getitem__):
            if table not in writers:
                writers[table] = TableWriter(out / table.replace("/", "-"), batch.schema)
            writers[table].write(batch)
        for writer in writers.values():
            writer.close()
        return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in out.iterdir()}

    first = digests(tmp_path / "first")
    assert FRAMES in first
    assert digests(tmp_path / "second") == first


def test_frames_of_many_small_files_are_decoded_together(tmp_path: Path) -> None:
    files = write_capture(tmp_path / "capture", 1, replace(SHAPES["CLEAN"], files=8))
    assert len(files) == 8
    asked, _, kept = surveyed(files)
    tables = [table for table, _ in decode_range(asked, 0, kept.__getitem__)]
    # A table contains more than one batch of a range only if it is made from two messages.
    assert tables.count(FRAMES) == 1
    assert max(tables.count(one) for one in tables if one.startswith("messages/")) == 1


@pytest.mark.long
@pytest.mark.slow
def test_rows_do_not_depend_on_how_many_frames_are_decoded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_capture(tmp_path / "capture", 2, SHAPES["EVERYTHING"])
    found = []
    for held in (1_000_000, 1):
        monkeypatch.setattr("flexwire.survey.ranges._CHUNKS_HELD", held)
        asked, survey, kept = surveyed(files, range_bytes=60_000, chunk_bytes=6_000)
        batches = [
            one for n in range(survey.ranges) for one in decode_range(asked, n, kept.__getitem__)
        ]
        rows: Rows = defaultdict(list)
        for table, batch in batches:
            rows[table] += batch.to_pylist()
        found.append((len(batches), rows))
    (alone, one), (together, other) = found
    assert together < alone
    assert sorted(one.pop("records"), key=repr) == sorted(other.pop("records"), key=repr)
    # Each table contains the rows in the same order, except the table of records, which comes from
    # two messages.
    assert other == one


@pytest.mark.slow
@pytest.mark.parametrize("name", OVERLAPPING)
def test_files_that_overlap_in_time_and_share_connections_are_merged(
    name: str, tmp_path: Path
) -> None:
    # Some frames are known only at the end of the capture.
    shape = replace(SHAPES[name], connections=5, begun=0.5, unended=0.8, loss=0.02)
    files = write_capture(tmp_path, 1, shape)
    frames, connections = assembled(files)
    columns = ("connection", "direction", "frame_index", "size", "source")
    for how in ({}, {"range_bytes": 15_000, "chunk_bytes": 3_000}):
        asked, survey, kept = surveyed(files, **how)
        assert survey.is_merged
        assert survey.ranges > 1 or not how
        rows = rows_of(asked, survey, kept)[FRAMES]
        assert sorted(tuple(row[name] for name in columns) for row in rows) == frames
        assert by_name(survey.connections) == connections


@pytest.mark.slow
def test_a_clock_that_goes_back_within_a_file_changes_nothing(tmp_path: Path) -> None:
    shape = replace(SHAPES["UNORDERED"], taps=1, files=1)
    files = write_capture(tmp_path, 3, shape)
    frames, connections = assembled(files)
    columns = ("connection", "direction", "frame_index", "size", "source")
    asked, survey, kept = surveyed(files, range_bytes=15_000, chunk_bytes=3_000)
    assert survey.ranges > 1
    assert not survey.is_merged
    rows = rows_of(asked, survey, kept)[FRAMES]
    assert sorted(tuple(row[name] for name in columns) for row in rows) == frames
    assert by_name(survey.connections) == connections


def assembled(files: list[Path]) -> tuple[list[tuple[Any, ...]], list[CapturedConnection]]:
    """Return frames and connections that objects make from segments in the reference's order."""
    found = captured(files)
    frames = [
        (one.connection, one.direction, one.index, one.size, file) for file, one in found.frames
    ]
    return sorted(frames), by_name(found.connections)


def by_name(connections: list[CapturedConnection]) -> list[CapturedConnection]:
    """Return connections without the facts that the survey reads from their frames."""
    bare = [
        msgspec.structs.replace(
            one, client_id=None, client_software_name=None, client_software_version=None
        )
        for one in connections
    ]
    return sorted(bare, key=lambda one: one.connection)


@pytest.mark.slow
def test_many_files_at_once_are_merged_with_few_of_them_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_capture(tmp_path, 1, SHAPES["HOSTS"])
    how: dict[str, Any] = {"range_bytes": 30_000, "chunk_bytes": 3_000}
    _, expected, _ = surveyed(files, **how)
    assert expected.ranges > 2
    monkeypatch.setattr("flexwire.capture.reassembly.merging.MOST_OPEN", 2)
    _, found, _ = surveyed(files, **how)
    assert found.connections == expected.connections
    assert sorted(map(repr, found.notes)) == sorted(map(repr, expected.notes))


def test_files_that_only_overlap_in_time_are_read_one_after_the_other(tmp_path: Path) -> None:
    alone = replace(SHAPES["HOSTS"], shared=0.0, files=1, reuse=0.0)
    assert not surveyed(write_capture(tmp_path, 1, alone))[1].is_merged
