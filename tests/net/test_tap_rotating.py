"""With a ring of files, SIGHUP ends a file, old files are removed, and everything is counted."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.capture.files.retention import KeepLimit
from flexwire.cli.app import app
from flexwire.cli.options import InputError
from flexwire.tap import Tap, TapStatistics, run_tap
from tests.capture.test_pcapng import frames
from tests.net.broker import LOOPBACK, Broker, connected, run, serving, settled, tapped
from tests.net.test_relay import asking, echo

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
@pytest.mark.parametrize("is_gone", [False, True])
def test_sighup_rotates_or_stops_where_the_terminal_is_gone(
    is_gone: bool,  # noqa: FBT001  # pytest passes each case
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def job() -> TapStatistics:
        monkeypatch.setattr("os.isatty", lambda _: True)
        started: asyncio.Future[Tap] = asyncio.get_running_loop().create_future()
        async with serving(Broker(echo)) as upstream:
            program = asyncio.create_task(
                run_tap(f"{LOOPBACK}:0", str(upstream), tmp_path, ready=started.set_result)
            )
            tap = await started
            async with connected(tap.listen_address) as client:
                await client.ask(asking(b"one"))
                monkeypatch.setattr("os.isatty", lambda _: not is_gone)
                os.kill(os.getpid(), signal.SIGHUP)
                if not is_gone:
                    await settled(lambda: len(tap.capture_paths) == 2)
                    await client.ask(asking(b"two"))
                    os.kill(os.getpid(), signal.SIGTERM)
                stats = await program
            held = [len(frames([path])) for path in tap.capture_paths]
            assert held == ([2] if is_gone else [2, 2])
            return stats

    assert run(job()).is_captured
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


def test_a_ring_counts_what_it_lets_go(tmp_path: Path) -> None:
    async def job() -> Tap:
        keep = KeepLimit(max_files=2)
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path, max_bytes=400, keep=keep) as tap,
            connected(tap.listen_address) as client,
        ):
            for number in range(9):
                await client.ask(asking(b"%d" % number))
            assert tap.counts().removed_files > 0
        return tap

    tap = run(job())
    assert sorted(tmp_path.iterdir()) == tap.capture_paths
    assert len(tap.capture_paths) == 2
    assert tap.stats.removed_frames + len(frames(tap.capture_paths)) == 18
    assert tap.stats.removed_bytes >= 100 * tap.stats.removed_files
    # Frames that the tap drops because of its options are not counted as lost.
    assert tap.stats.is_captured


def test_a_capture_that_cannot_be_rotated_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def job() -> None:
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.ask(asking(b"one"))
            with monkeypatch.context() as patched:
                patched.setattr("flexwire.capture.files.pcapng.create_private_file", full)
                tap.rotate()
            await client.ask(asking(b"two"))
            assert len(frames(tap.capture_paths)) == 4
            assert len(tap.capture_paths) == 1

    run(job())
    assert "the capture continues in the same file" in caplog.text


def test_what_is_kept_holds_two_files(tmp_path: Path) -> None:
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path / "out")]
    with pytest.raises(InputError, match="at least 2 times --rotate 64, got 127"):
        CliRunner().invoke(app, [*command, "--keep-mib", "127"], catch_exceptions=False)
    assert not (tmp_path / "out").exists()
