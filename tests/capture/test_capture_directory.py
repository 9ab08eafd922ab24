"""Capture files in a shared directory have the right names, modes, and counts of lost frames."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexwire.capture.files import pcapng
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.errors import CaptureError
from tests.capture.test_pcapng import CLIENT, SERVER, frames
from tests.capture.traffic import request
from tests.searching import TIMED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from io import FileIO
    from pathlib import Path

    from flexwire.capture.files.pcapng import TappedConnection

SMALL = 200  # each request starts a new file


def send(connection: TappedConnection, first: int, last: int) -> list[int]:
    """Send requests with these correlation ids. Return the ids of the failed requests."""
    lost = []
    for number in range(first, last):
        try:
            connection.send("request", request(number))
        except CaptureError:
            lost.append(number)
    return lost


def correlation_ids(paths: list[Path]) -> list[int]:
    found = frames(paths)
    return [int.from_bytes(one.payload[4:8], "big") for one in found if one.error is None]


def in_the_way(kind: str, path: Path) -> None:
    if kind == "file":
        path.write_bytes(b"theirs")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(path.with_name("nowhere"))


@settings(max_examples=30, suppress_health_check=[*TIMED, HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.integers(1, 12), st.sampled_from(["file", "directory", "link"]), max_size=12
    ),
    st.integers(0, 12),
)
def test_names_that_exist_are_passed_over_and_left_alone(
    tmp_path: Path, taken: dict[int, str], before: int
) -> None:
    out = tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    names = {number: out / f"tap-{number:05}.pcapng" for number in taken}
    for number in sorted(taken)[:before]:
        in_the_way(taken[number], names[number])
    with PcapngWriter(out, max_bytes=SMALL) as writer:
        for number in sorted(taken)[before:]:
            if not names[number].exists():
                in_the_way(taken[number], names[number])
        connection = writer.open_connection(CLIENT, SERVER)
        assert send(connection, 0, 6) == []
    assert correlation_ids(writer.paths) == list(range(6))
    assert len(set(writer.paths)) == len(writer.paths) == 7
    assert writer.paths == sorted(writer.paths)
    for number, kind in taken.items():
        if kind == "file" and names[number] not in writer.paths:
            assert names[number].read_bytes() == b"theirs"


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
@settings(max_examples=30, suppress_health_check=[*TIMED, HealthCheck.function_scoped_fixture])
def test_writers_share_a_directory(tmp_path: Path, turns: list[int]) -> None:
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    writers = [PcapngWriter(tmp_path / "out", max_bytes=SMALL) for _ in range(3)]
    connections = [
        writer.open_connection((CLIENT[0], 1000 + number), SERVER)
        for number, writer in enumerate(writers)
    ]
    for number, who in enumerate(turns):
        assert send(connections[who], number, number + 1) == []
    for who, writer in enumerate(writers):
        writer.close()
        expected = [number for number, one in enumerate(turns) if one == who]
        assert correlation_ids(writer.paths) == expected
    names = Counter(path for writer in writers for path in writer.paths)
    assert set(names.values()) == {1}
    # Together, the files in the directory form three captures.
    assert sorted(correlation_ids(sorted(names))) == list(range(len(turns)))


@pytest.mark.parametrize("digits", [10, 240])
def test_a_number_that_is_none_of_ours_is_not_counted_on_from(tmp_path: Path, digits: int) -> None:
    (tmp_path / f"tap-{'9' * digits}.pcapng").touch()
    with PcapngWriter(tmp_path) as writer:
        assert [path.name for path in writer.paths] == ["tap-00001.pcapng"]


def test_the_next_file_is_tried_again_with_every_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, room = pcapng._write_whole, [True]

    def disk(file: FileIO, pieces: Sequence[bytes]) -> int:
        written = real(file, pieces if room[0] else [pieces[0][:20]])
        if not room[0]:
            raise OSError(28, "No space left on device")
        return written

    monkeypatch.setattr(pcapng, "_write_whole", disk)
    with PcapngWriter(tmp_path, max_bytes=SMALL) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        assert send(connection, 0, 2) == []
        room[0] = False
        assert send(connection, 2, 5) == [2, 3, 4]
        room[0] = True
        assert send(connection, 5, 7) == []
    assert correlation_ids(writer.paths) == [0, 1, 5, 6]
    assert sorted(tmp_path.iterdir()) == writer.paths
    assert writer.lost_frames == 0


@pytest.mark.parametrize("max_bytes", [SMALL, 1 << 20])
@pytest.mark.parametrize(
    "remove", [shutil.rmtree, lambda place: [one.unlink() for one in place.iterdir()]]
)
def test_every_frame_is_in_a_file_or_counted_whatever_is_deleted(
    tmp_path: Path, max_bytes: int, remove: Callable[[Path], object]
) -> None:
    out = tmp_path / "out"
    with PcapngWriter(out, max_bytes=max_bytes) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        assert send(connection, 0, 4) == []
        # The owner may delete finished files.
        finished = sum(len(frames([path])) for path in writer.paths[:-1])
        remove(out)
        assert send(connection, 4, 8) == []
        there = correlation_ids([path for path in writer.paths if path.exists()])
        assert there == [4, 5, 6, 7]
        assert writer.lost_frames == 4 - finished
        remove(out)
    kept = len(correlation_ids([path for path in writer.paths if path.exists()]))
    finished = finished if max_bytes > SMALL else finished + 3
    assert kept + finished + writer.lost_frames == 8


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_a_file_that_cannot_be_closed_is_counted(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        connection.send("request", request(1) + request(2), frames=2)
        assert writer._file is not None
        os.close(writer._file.fileno())
    assert writer.lost_frames == 2


@pytest.mark.long
@pytest.mark.own_process
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_captures_are_their_owners_alone_and_a_directory_that_exists_keeps_its_mode(
    tmp_path: Path, umask: int
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    theirs.chmod(0o755)
    before = os.umask(umask)
    try:
        for out in (theirs, tmp_path / "new" / "place"):
            with PcapngWriter(out, max_bytes=SMALL) as writer:
                send(writer.open_connection(CLIENT, SERVER), 0, 2)
            assert len(writer.paths) == 3
            assert {path.stat().st_mode & 0o777 for path in writer.paths} == {0o600}
    finally:
        os.umask(before)
    assert theirs.stat().st_mode & 0o777 == 0o755
    for made in (tmp_path / "new", tmp_path / "new" / "place"):
        assert made.stat().st_mode & 0o777 == 0o700
    with suppress(OSError):
        theirs.chmod(0o700)
