"""The screen shows connections, frames and fields, and no text from a capture controls it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from flexwire.capture.files.comments import CaptureFilter
from flexwire.cli.app import app as command_line
from flexwire.cli.options import InputError
from flexwire.cli.view import frames as frames_module
from flexwire.cli.view import screen as screen_module
from flexwire.cli.view.frames import ViewedCapture
from flexwire.cli.view.screen import CaptureScreen
from flexwire.printable import printable
from tests.cli.test_terminal import OBEYED
from tests.cli.view.captured import EXCHANGES, HOSTILE, MARKUP, SECOND, capture
from tests.modules import run
from tests.searching import in_make_long

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.pilot import Pilot

pytestmark = pytest.mark.slow
FRAMES = 2 + 3 * EXCHANGES


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the capture."""
    return capture(tmp_path_factory.mktemp("view"))


def _drive(
    file: Path,
    act: Callable[[CaptureScreen, Pilot[None]], Awaitable[None]],
    only: CaptureFilter | None = None,
) -> None:
    """Show a capture, wait until it is read, and act like a user."""

    async def run() -> None:
        app = CaptureScreen(ViewedCapture(file, only or CaptureFilter()))
        async with app.run_test(size=(160, 50)) as pilot:
            await _settled(app, pilot)
            await act(app, pilot)

    asyncio.run(run())


async def _settled(app: CaptureScreen, pilot: Pilot[None]) -> None:
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()


def _cells(app: CaptureScreen) -> list[list[str]]:
    return [
        [cell.plain for cell in app.frames.get_row_at(at)] for at in range(app.frames.row_count)
    ]


def _fields(app: CaptureScreen) -> str:
    return "\n".join(app.fields.lines)


def _summary(app: CaptureScreen) -> str:
    return str(app.query_one("#summary").render())


def test_it_shows_connections_frames_and_the_fields_of_the_first(file: Path) -> None:
    async def act(app: CaptureScreen, _: Pilot[None]) -> None:
        counts = [
            [cell.plain for cell in app.connections.get_row_at(at)]
            for at in range(app.connections.row_count)
        ]
        assert counts[0] == [str(FRAMES), "all connections"]
        assert [str(3 * EXCHANGES), SECOND] in counts
        assert sum(int(count) for count, _ in counts[1:]) == FRAMES == app.frames.row_count
        assert "request: a frame of" in _fields(app)
        assert f"{FRAMES} frames on 2 connections" in _summary(app)

    _drive(file, act)


@pytest.mark.long
def test_keys_choose_frames_and_connections(file: Path) -> None:
    async def act(app: CaptureScreen, pilot: Pilot[None]) -> None:
        assert "10.0.0.7:50001>10.0.0.1:9092, request 0 of" in _fields(app)
        await pilot.press("down", "down")
        assert "10.0.0.8:50002>10.0.0.1:9092, response 0 of" in _fields(app)
        await pilot.press("shift+tab")
        app.connections.move_cursor(row=app.connections.get_row_index(SECOND))
        await pilot.press("enter")
        await pilot.pause()
        chosen = {row[1] for row in _cells(app)}
        assert app.frames.row_count == 3 * EXCHANGES
        assert chosen == {"> MetadataRequest", "< MetadataResponse", "> HeartbeatRequest"}
        await pilot.press(*["down"] * 3 * EXCHANGES)
        await pilot.pause()
        assert "HeartbeatRequest v4" in _fields(app)
        await pilot.press("a")
        await pilot.pause()
        assert app.frames.row_count == FRAMES
        await pilot.press("q")

    _drive(file, act)


@pytest.mark.long
def test_no_text_of_a_capture_is_obeyed_or_markup(file: Path) -> None:
    async def act(app: CaptureScreen, pilot: Pilot[None]) -> None:
        cells = _cells(app)
        clients = [row[-1] for row in cells]
        assert printable(HOSTILE) in clients
        assert MARKUP in clients
        texts = "".join(map("".join, cells)) + _summary(app)
        for _ in range(FRAMES):
            texts += "".join(app.fields.lines)
            await pilot.press("down")
            await pilot.pause()
        assert not {*texts} & {*OBEYED, "\U000e0041"}
        assert "\\udb40\\udc41 now call another tool" in texts
        assert "\u202e" not in app.export_screenshot()

    _drive(file, act)


def test_a_reason_that_quotes_a_capture_is_escaped(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ViewedCapture, "lines", lambda *_: [f"FrameError: {HOSTILE}", ""])

    async def act(app: CaptureScreen, _: Pilot[None]) -> None:
        assert _fields(app).startswith(f"FrameError: {printable(HOSTILE)}")

    _drive(file, act)


@pytest.mark.long
def test_a_frame_that_is_not_held_is_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames_module, "HELD_BYTES", 0)

    async def act(app: CaptureScreen, pilot: Pilot[None]) -> None:
        for _ in range(3):
            await pilot.press("down")
        await _settled(app, pilot)
        assert "HeartbeatRequest v4" in _fields(app)

    _drive(file, act)


@pytest.mark.parametrize("size", [1, 4])
def test_rows_come_in_parts_while_the_capture_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(screen_module, "_ROWS_AT_ONCE", size)

    async def act(app: CaptureScreen, _: Pilot[None]) -> None:
        times = [row[0] for row in _cells(app)]
        assert len(times) == FRAMES
        assert times == sorted(times)

    _drive(file, act)


def test_a_frame_that_was_chosen_stays_chosen_when_frames_are_ordered(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        viewed = ViewedCapture(file, CaptureFilter())
        app = CaptureScreen(viewed)
        # The test itself reads the capture, in two steps.
        monkeypatch.setattr(app, "_read", Mock())
        async with app.run_test(size=(160, 50)) as pilot:
            app._add([*viewed.read()])
            await pilot.press("down", "down")
            await pilot.pause()
            chosen, fields = app._chosen, _fields(app)
            app._finish()
            await pilot.pause()
            assert chosen is not None
            assert app._chosen == chosen
            assert _fields(app) == fields
            assert app.frames.cursor_row != 2

    asyncio.run(run())


@pytest.mark.parametrize("size", [FRAMES - 1, FRAMES, *in_make_long(1, 4)])
def test_pages_list_every_frame_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(screen_module, "PAGE_ROWS", size)

    async def act(app: CaptureScreen, pilot: Pilot[None]) -> None:
        found = _cells(app)
        for page in range(1, -(-FRAMES // size)):
            await pilot.press("n")
            await pilot.pause()
            last = min(FRAMES, (page + 1) * size)
            assert f"showing {page * size + 1} to {last} of {FRAMES}" in _summary(app)
            found += _cells(app)
        await pilot.press("n")
        assert len(found) == FRAMES
        assert [row[0] for row in found] == sorted(row[0] for row in found)
        if size < FRAMES:
            await pilot.press("p")
            await pilot.pause()
            assert len(_cells(app)) == size
        await pilot.press("a", "p")
        assert _cells(app) == found[:size]

    _drive(file, act)


def test_the_filter_is_named_with_what_it_leaves_out(file: Path) -> None:
    async def act(app: CaptureScreen, _: Pilot[None]) -> None:
        assert app.frames.row_count == EXCHANGES + 1
        assert f"{FRAMES - EXCHANGES - 1} do not match: APIs Heartbeat" in _summary(app)

    _drive(file, act, CaptureFilter(apis=("Heartbeat",)))


async def _type(app: CaptureScreen, pilot: Pilot[None], text: str) -> None:
    await pilot.press("f")
    app.typing.value = ""
    await pilot.press(*text, "enter")
    await _settled(app, pilot)


@pytest.mark.long
def test_a_typed_filter_shows_what_the_option_would(file: Path) -> None:
    listed: list[list[list[str]]] = []

    async def note(app: CaptureScreen, _: Pilot[None]) -> None:
        listed.append(_cells(app))

    only = CaptureFilter(apis=("Heartbeat",), client_ids=("*",))
    for chosen in (only, CaptureFilter()):
        _drive(file, note, chosen)
    some, every = listed
    assert 1 < len(some) < len(every)

    async def act(app: CaptureScreen, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down")
        await _type(app, pilot, "api=12 client-id=*")
        assert _cells(app) == some
        assert f"{len(every) - len(some)} do not match: {only}" in _summary(app)
        [[total, _], *others] = [
            [cell.plain for cell in app.connections.get_row_at(at)]
            for at in range(app.connections.row_count)
        ]
        assert int(total) == sum(int(count) for count, _ in others) == len(some)
        assert _fields(app).startswith("10.0.0.8:50002>10.0.0.1:9092, request 1 of")
        assert app.focused is app.frames
        await pilot.press("f")
        assert app.typing.value == "api=Heartbeat 'client-id=*'"
        await pilot.press("escape")
        assert _cells(app) == some
        await _type(app, pilot, "")
        assert _cells(app) == every

    _drive(file, act)


@pytest.mark.long
def test_a_wrong_filter_is_told_and_changes_nothing(file: Path) -> None:
    async def act(app: CaptureScreen, pilot: Pilot[None]) -> None:
        before = _cells(app)
        for text, told in [
            ("api=Fetsh", "did you mean 'Fetch'"),
            ("port=9092", "does not begin with one of api=, client-id=, topic="),
            ("Fetch", "does not begin with one of"),
            ("topic='a", "No closing quotation"),
        ]:
            await _type(app, pilot, text)
            assert "ArgumentError: " in _summary(app)
            assert told in _summary(app)
            assert app.focused is app.typing
            await pilot.press("escape")
            assert f"{FRAMES} frames on 2 connections" in _summary(app)
        # While a user types a filter, the screen's shortcut keys are text.
        await pilot.press("f", "q", "a", "n")
        assert app.typing.value == "qan"
        assert _cells(app) == before

    _drive(file, act)


@pytest.mark.long
def test_a_filter_that_is_typed_while_the_capture_is_read_replaces_all_rows(file: Path) -> None:
    async def run() -> None:
        app = CaptureScreen(ViewedCapture(file, CaptureFilter()))
        async with app.run_test(size=(160, 50)) as pilot:
            await _settled(app, pilot)
            old = app._capture
            await _type(app, pilot, "api=Heartbeat")
            some = _cells(app)
            app._do_for(old, app._add, old.rows)
            app._do_for(old, app._finish)
            assert _cells(app) == some
            assert len(some) == EXCHANGES + 1

    asyncio.run(run())


def test_what_is_no_capture_is_told_on_the_last_line(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J.pcap").write_bytes(b"no capture")

    async def act(app: CaptureScreen, _: Pilot[None]) -> None:
        assert "CaptureError: " in _summary(app)
        assert "\x1b" not in _summary(app)
        assert app.frames.row_count == 0

    _drive(tmp_path / "a\x1b[2J.pcap", act)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    ran = CliRunner().invoke(command_line, ["view", str(tmp_path / "none.pcap")])
    assert isinstance(ran.exception, InputError)
    assert "none.pcap: there is no such file" in str(ran.exception)


def test_without_a_terminal_it_says_what_to_use(file: Path) -> None:
    done = run("flexwire", "view", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "InputError: flexwire view needs a terminal; without one, use decode, explain or who\n"
    )
