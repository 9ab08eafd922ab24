"""`flexwire view` shows every frame that fits, and keeps a bounded part of a capture in memory."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files.comments import CaptureFilter
from flexwire.capture.messages import UnusedBytes, read_frames, read_messages
from flexwire.cli.view import frames as frames_module
from flexwire.cli.view.frames import ViewedCapture
from flexwire.errors import CaptureError
from tests.cli.mcp.served import SECRET
from tests.cli.test_messages import Run, run
from tests.cli.view.captured import EXCHANGES, FIRST, MARKUP, SECOND, capture

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.cli.captured_frames import FrameRow

__all__ = ["run"]
ALL = CaptureFilter()
FRAMES = 2 + 3 * EXCHANGES


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the capture."""
    return capture(tmp_path_factory.mktemp("view"))


def _read(file: Path, only: CaptureFilter = ALL, skip: int = 0) -> ViewedCapture:
    viewed = ViewedCapture(file, only, skip)
    assert [*viewed.read()] == viewed.rows
    return viewed


def test_every_frame_of_kafka_is_a_row_and_all_else_is_counted(file: Path) -> None:
    viewed = _read(file)
    assert len(viewed.rows) == FRAMES
    assert [row.number for row in viewed.rows] == [*range(1, FRAMES + 1)]
    assert viewed.connections == {FIRST: 2, SECOND: 3 * EXCHANGES}
    items = [*read_frames([file])]
    unused = [item for item in items if isinstance(item, UnusedBytes)]
    assert len(items) - len(unused) == FRAMES
    assert f"{FRAMES} frames on 2 connections; " in viewed.summary
    assert f"{len(unused):,} not read (not Kafka)" in viewed.summary
    sizes = sum(row.size for row in viewed.rows)
    messages = [item for item in read_messages([file]) if not isinstance(item, UnusedBytes)]
    assert sizes > sum(len(item.body) for item in messages)


def test_frames_are_read_as_messages_are(file: Path) -> None:
    names = [row.name for row in _read(file).rows]
    messages = [item.name for item in read_messages([file]) if not isinstance(item, UnusedBytes)]
    assert names == messages


def test_fields_are_what_explain_prints(file: Path, run: Run) -> None:
    viewed = _read(file)
    shown = 0
    for packet in range(1, 60):
        printed = run("explain", str(file), "--frame-number", str(packet))
        if printed.code:
            continue
        where = printed.out.splitlines()[0]
        [row] = [
            row
            for row in viewed.rows
            if where == f"{row.connection}, {row.direction} {row.index} of the connection"
        ]
        assert "\n".join(viewed.lines(row)) + "\n" == printed.out
        shown += 1
    assert shown == FRAMES


def test_a_token_is_withheld(file: Path) -> None:
    viewed = _read(file)
    [row] = [row for row in viewed.rows if row.name == "SaslAuthenticateRequest"]
    text = "\n".join(viewed.lines(row))
    assert "1 credential is withheld" in text
    assert SECRET.decode() not in text
    assert SECRET.hex(" ") not in text


@pytest.mark.parametrize(
    ("only", "names"),
    [
        (CaptureFilter(apis=("Heartbeat",)), {"HeartbeatRequest", "SaslAuthenticateRequest"}),
        (
            CaptureFilter(client_ids=("*billing*",)),
            {"MetadataRequest", "MetadataResponse", "SaslAuthenticateRequest"},
        ),
    ],
)
def test_the_filter_is_that_of_the_tap(file: Path, only: CaptureFilter, names: set[str]) -> None:
    every, some = _read(file), _read(file, only)
    assert {row.name for row in some.rows} == names
    left_out = len(every.rows) - len(some.rows)
    assert f"{left_out} do not match: {only}" in some.summary
    places = [row.place for row in some.rows]
    assert places == [row.place for row in every.rows if row.place in places]
    assert all(row.client_id == MARKUP for row in some.rows if row.name == "MetadataResponse")


@pytest.mark.parametrize("most", [1, 5, FRAMES - 1, FRAMES])
@pytest.mark.parametrize("skip", [0, 1, 6, FRAMES, FRAMES + 5])
def test_what_is_beyond_the_limit_is_counted_and_skip_shows_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, most: int, skip: int
) -> None:
    every = _read(file).rows
    monkeypatch.setattr(frames_module, "MOST_FRAMES", most)
    viewed = _read(file, skip=skip)
    assert viewed.rows == every[skip : skip + most]
    more = max(FRAMES - skip - most, 0)
    assert (f"{more:,} more: --skip {skip + most} shows them" in viewed.summary) == (more > 0)
    assert ("skipped" in viewed.summary) == (skip > 0)


@pytest.mark.parametrize("held", [0, 1, 100, 500])
def test_payloads_that_are_not_held_are_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    whole = _read(file)
    monkeypatch.setattr(frames_module, "HELD_BYTES", held)
    viewed = _read(file)
    kept = [row for row in viewed.rows if viewed.is_held(row)]
    assert sum(row.size - 4 for row in kept) <= held
    assert len(kept) < FRAMES
    for row in viewed.rows:
        assert [*viewed.lines(row)] == [*whole.lines(row)]


def test_a_file_that_has_changed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames_module, "HELD_BYTES", 0)
    file = capture(tmp_path)
    viewed = _read(file)
    file.write_bytes(file.read_bytes()[:400])
    with pytest.raises(CaptureError, match="the file has changed"):
        list(viewed.lines(viewed.rows[-1]))


def test_fields_of_a_large_frame_are_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames_module, "MOST_LINES", 6)
    viewed = _read(file)
    lines = [*viewed.lines(viewed.rows[0])]
    assert len(lines) == 7
    assert lines[-1].startswith("… and more: flexwire explain")


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_capture_that_breaks_off_shows_what_there_is(
    file: Path, tmp_path: Path, cut: int
) -> None:
    part = tmp_path / "part.pcapng"
    part.write_bytes(file.read_bytes()[:-cut])
    viewed = _read(part)
    assert 0 < len(viewed.rows) <= FRAMES
    for row in viewed.rows:
        assert [*viewed.lines(row)]


def test_what_is_no_capture_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"no capture at all")
    with pytest.raises(CaptureError):
        _read(tmp_path / "a.pcap")


def test_a_row_is_small(file: Path) -> None:
    rows: list[FrameRow] = _read(file).rows
    assert len(pickle.dumps(rows)) / len(rows) < 400
