"""If a tap's capture fails, clients continue, and every frame is captured or counted as lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.capture.files import pcapng
from flexwire.cli.app import app
from flexwire.errors import CaptureError
from flexwire.tap import Tap, TapStatistics
from tests.capture.test_pcapng import frames
from tests.net.broker import LOOPBACK, Broker, connected, run, serving
from tests.net.test_relay import answering, asking, echo
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from io import FileIO
    from pathlib import Path

ROUNDS = 6
HALF = ROUNDS // 2 * 3 * 2  # three requests and three responses each time


def held(out: Path) -> int:
    files = [path for path in sorted(out.glob("*.pcapng")) if path.is_file()]
    return sum(one.error is None for one in frames(files))


def relayed(out: Path, between: Callable[[], None], *, max_bytes: int) -> TapStatistics:
    """Return a tap's counts after exchanges on one connection. ``between`` runs halfway."""

    async def job() -> TapStatistics:
        async with (
            serving(Broker(echo)) as upstream,
            Tap((LOOPBACK, 0), upstream, out, max_bytes=max_bytes) as tap,
            connected(tap.listen_address) as client,
        ):
            for number in range(ROUNDS):
                if number == ROUNDS // 2:
                    between()
                # Three requests are sent together. The tap may receive them in one piece or in
                # several.
                await client.send(b"".join(frame(asking(b"%d" % one)) for one in range(3)))
                for one in range(3):
                    assert await client.receive() == answering(b"%d" % one)
        await tap.close()
        return tap.stats

    return run(job())


@pytest.mark.parametrize("max_bytes", [200, 1 << 20])
def test_every_frame_is_captured_or_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int
) -> None:
    real = pcapng._write_whole

    def full(file: FileIO, pieces: Sequence[bytes]) -> int:
        real(file, [pieces[0][:10]])
        raise OSError(28, "No space left on device")

    out = tmp_path / "names"
    stats = relayed(out, lambda: occupy_free(out), max_bytes=max_bytes)
    assert (held(out), stats.capture_failures) == (2 * HALF, 0)
    assert stats.is_captured

    out = tmp_path / "deleted"
    stats = relayed(out, lambda: shutil.rmtree(out), max_bytes=1 << 20)
    assert (held(out), stats.capture_failures) == (HALF, HALF)
    assert not stats.is_captured

    with monkeypatch.context() as patched:
        out = tmp_path / "full"
        stats = relayed(
            out, lambda: patched.setattr(pcapng, "_write_whole", full), max_bytes=max_bytes
        )
    assert (held(out), stats.capture_failures, stats.unended) == (HALF, HALF, 1)


def occupy_free(out: Path) -> None:
    for number in range(1, 40):
        path = out / f"tap-{number:05}.pcapng"
        if not path.exists():
            path.mkdir()


def test_two_taps_share_a_directory(tmp_path: Path) -> None:
    async def job() -> None:
        async with (
            serving(Broker(echo)) as upstream,
            Tap((LOOPBACK, 0), upstream, tmp_path, max_bytes=200) as one,
            Tap((LOOPBACK, 0), upstream, tmp_path, max_bytes=200) as two,
            connected(one.listen_address) as first,
            connected(two.listen_address) as second,
        ):
            for number in range(ROUNDS):
                for client in (first, second):
                    await client.ask(asking(b"%d" % number))
            for tap in (one, two):
                found = [one for one in frames(tap.capture_paths) if one.error is None]
                assert len(found) == 2 * ROUNDS
        assert not set(one.capture_paths) & set(two.capture_paths)
        assert one.stats.is_captured
        assert two.stats.is_captured

    run(job())
    assert held(tmp_path) == 4 * ROUNDS


def test_a_connection_that_cannot_be_captured_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def job() -> TapStatistics:
        async with (
            serving(Broker(echo)) as upstream,
            Tap((LOOPBACK, 0), upstream, tmp_path) as tap,
        ):
            monkeypatch.setattr(pcapng, "_write_whole", full)
            async with connected(tap.listen_address) as client:
                with pytest.raises((OSError, asyncio.IncompleteReadError)):
                    await client.ask(asking(b""))
        return tap.stats

    stats = run(job())
    assert (stats.not_captured, stats.capture_failures, stats.is_captured) == (1, 0, False)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
@pytest.mark.parametrize("lost", [0, 3335])
def test_the_command_exits_with_1_and_says_how_many_frames_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    real = Tap.start

    async def start(tap: Tap) -> None:
        await real(tap)
        tap.stats.capture_failures = lost
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Tap, "start", start)
    result = CliRunner().invoke(
        app,
        ["tap", "--upstream", "127.0.0.1:9", "--listen", "127.0.0.1:0", "--out", str(tmp_path)],
    )
    if lost:
        assert result.exit_code == 1
        assert isinstance(result.exception, CaptureError)
        assert "3,335 frames are missing" in str(result.exception)
    else:
        assert (result.exit_code, result.exception) == (0, None)
