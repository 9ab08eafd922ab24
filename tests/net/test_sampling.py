"""A tap that samples captures each connection whole or not at all, and counts both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.capture.files.comments import share_in
from flexwire.capture.files.reading import open_capture
from flexwire.cli.app import app
from flexwire.errors import ArgumentError
from flexwire.tap import Tap
from flexwire.tap.recorder import is_sampled
from tests.net.broker import LOOPBACK, Broker, captured, connected, run, serving, settled, tapped
from tests.net.test_relay import answering, asking, echo
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS, ROUNDS = 6, 3


def shares(tap: Tap) -> list[float | None]:
    found = []
    for path in tap.capture_paths:
        with open_capture(str(path)) as (file, _):
            found.append(share_in(file))
    return found


def test_connections_are_captured_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter([True, False, False, True, False, True])
    monkeypatch.setattr("flexwire.tap.connections.is_sampled", lambda _: next(drawn))
    sent = [asking(b"%d" % number) for number in range(ROUNDS)]
    said = b"".join(frame(answering(b"%d" % number)) for number in range(ROUNDS))
    ports = []

    async def job() -> Tap:
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path, sample=0.4, max_bytes=600) as tap,
        ):
            for _ in range(CLIENTS):
                async with connected(tap.listen_address) as client:
                    for one in sent:
                        await client.ask(one)
                    ports.append((client.port, upstream.port))
                await settled(lambda: tap.stats.open_connections == 0)
        return tap

    tap = run(job())
    kept = [ports[0], ports[3], ports[5]]
    expected = {one: b"".join(map(frame, sent)) for one in kept}
    expected |= {one[::-1]: said for one in kept}
    assert captured(tap.capture_paths) == expected
    stats = tap.stats
    assert (stats.connections, stats.unsampled_connections) == (CLIENTS, 3)
    assert stats.unsampled_frames == 3 * ROUNDS * 2
    assert stats.unsampled_bytes == 3 * (len(said) + sum(len(frame(one)) for one in sent))
    assert stats.requests == CLIENTS * ROUNDS
    assert stats.is_captured
    assert len(tap.capture_paths) > 1
    assert set(shares(tap)) == {0.4}


def test_a_tap_that_captures_all_says_nothing_of_shares(tmp_path: Path) -> None:
    async def job() -> Tap:
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.ask(asking(b""))
        return tap

    tap = run(job())
    assert shares(tap) == [None]
    assert (tap.stats.unsampled_connections, tap.stats.unsampled_bytes) == (0, 0)


def test_about_the_share_is_drawn() -> None:
    # The limits are six standard deviations: a correct tap fails once in half a billion runs.
    assert 854 < sum(is_sampled(0.25) for _ in range(4000)) < 1165
    assert all(is_sampled(1.0) for _ in range(100))


@pytest.mark.parametrize("share", [0, -0.1, 1.1, float("nan")])
def test_what_is_not_a_share_is_said(share: float, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="expected a share above 0 and at most 1, got"):
        Tap((LOOPBACK, 0), (LOOPBACK, 1), tmp_path, sample=share)
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path), f"--sample={share}"]
    assert CliRunner().invoke(app, command).exit_code != 0
