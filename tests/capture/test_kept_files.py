"""A writer keeps no more files than requested, and each kept file is whole."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.capture.files.retention import KeepLimit
from flexwire.errors import ArgumentError
from tests.capture.test_pcapng import CLIENT, SERVER, frames
from tests.capture.traffic import request
from tests.searching import TIMED

if TYPE_CHECKING:
    from pathlib import Path


@settings(max_examples=40, suppress_health_check=[*TIMED, HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 900) | st.just(None), min_size=15, max_size=30),
    st.none() | st.integers(4_000, 9_000),
    st.none() | st.integers(1, 4),
)
def test_what_stays_is_within_the_limit_and_the_rest_is_counted(
    tmp_path: Path, sizes: list[int | None], keep_bytes: int | None, keep_files: int | None
) -> None:
    out = tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)
    sent = 0
    keep = KeepLimit(keep_bytes, keep_files)
    with PcapngWriter(out, max_bytes=1_500, keep=keep) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        for size in sizes:
            if size is None:
                writer.rotate()
            else:
                connection.send("request", request(1, size))
                sent += 1
            there = sorted(out.iterdir())
            assert there == writer.paths
            assert keep_files is None or len(there) <= keep_files
            size_there = sum(one.stat().st_size for one in there)
            assert keep_bytes is None or size_there <= keep_bytes
            # Only one file was removed.
            if writer.kept.removed and keep_files is None and keep_bytes is not None:
                assert size_there > keep_bytes - 3_000
    removed = writer.kept.removed
    kept = [one for path in writer.paths for one in frames([path])]
    assert all(one.error is None for one in kept)
    assert len(kept) + sum(one.frames for one in removed) == sent
    assert writer.lost_frames == 0
    # The oldest file was removed, and no file was removed too early.
    assert [one.path for one in removed] == sorted(one.path for one in removed)
    assert all(one.path < writer.paths[0] for one in removed)
    assert removed == [] or keep_bytes or keep_files


def test_a_frame_beyond_the_limit_is_whole_and_alone(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path, max_bytes=1_000, keep=KeepLimit(4_000)) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        for size in (100, 50_000):
            connection.send("request", request(1, size))
        assert [one.stat().st_size > 50_000 for one in tmp_path.iterdir()] == [True]
        connection.send("request", request(2))
        assert sum(one.stat().st_size for one in tmp_path.iterdir()) < 1_000
    assert len(frames(writer.paths)) == 1


def test_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "tap-00001.pcapng").write_bytes(b"of an earlier run")
    with PcapngWriter(tmp_path, keep=KeepLimit(max_files=1)) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        moved = writer.paths[0]
        # An operator removed the file, and another tap now uses its name.
        moved.rename(tmp_path / "taken.pcapng")
        moved.write_bytes(b"of another tap")
        writer.rotate()
        connection.send("request", request(1))
        deleted = writer.paths[-1]
        writer.rotate()
        connection.send("request", request(2))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "taken.pcapng",
        "tap-00001.pcapng",
        "tap-00002.pcapng",
        "tap-00004.pcapng",
    ]
    assert [one.path for one in writer.kept.removed] == [deleted]


def test_a_file_that_nothing_stands_in_is_not_ended(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path) as writer:
        assert writer.rotate() is False
        writer.open_connection(CLIENT, SERVER)
        assert (writer.rotate(), writer.rotate()) == (True, False)
    assert writer.rotate() is False
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "tap-00001.pcapng",
        "tap-00002.pcapng",
    ]


@pytest.mark.parametrize(("size", "files"), [(0, None), (None, 0), (-1, 3)])
def test_nothing_is_not_a_limit(size: int | None, files: int | None) -> None:
    with pytest.raises(ArgumentError, match=r"expected at least 1 .* to keep, got"):
        KeepLimit(size, files)
