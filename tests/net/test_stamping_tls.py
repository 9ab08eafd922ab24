"""With TLS, the broker receives the tags, and the capture contains neither tags nor credentials."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.comments import read_stamps
from flexwire.protocol import parse_request
from flexwire.tap import TapSecurity
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from flexwire.tap.recorder import withhold_rest
from tests.net.broker import captured, connected, run, serving, settled, tapped
from tests.net.test_relay import asking
from tests.net.test_stamping import OURS, STAMPING, stamped
from tests.net.test_tap_tls import Made, made
from tests.net.test_withholding import SECRET, TOKEN, sasl, scram
from tests.protocol.payloads import frame, request_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.tap import Tap

__all__ = ["made"]
# More frames than the comments of one packet can describe.
MANY = 150


class Listening:
    """A broker that stores all received bytes until its client ends, and sends nothing."""

    def __init__(self) -> None:
        self.heard = bytearray()

    async def __call__(self, reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self.heard += data


def passed(made: Made, out: Path, said: bytes, pieces: int, *, connects: bool) -> tuple[Any, ...]:
    """Return the bytes that the broker received, and the bytes in the capture."""
    security = TapSecurity(made.listen, made.upstream if connects else None)
    broker = Listening()

    async def job() -> tuple[Tap, bytes]:
        async with (
            serving(broker, made.broker if connects else None) as upstream,
            tapped(upstream, out, security=security, stamping=STAMPING) as tap,
        ):
            async with connected(tap.listen_address, made.client) as client:
                for at in range(pieces):
                    await client.send(said[at : at + 1])
                    await asyncio.sleep(0)
                await client.send(said[pieces:])
                await settled(lambda: tap.stats.request_bytes == len(said))
            await settled(lambda: tap.stats.open_connections == 0)
            return tap, captured(tap.capture_paths).get((client.port, upstream.port), b"")

    tap, kept = run(job())
    return bytes(broker.heard), kept, tap


@pytest.mark.parametrize("connects", [False, True])
@pytest.mark.parametrize("pieces", [0, 300])
def test_what_authenticates_is_withheld_and_what_follows_is_stamped(
    pieces: int, connects: Any, made: Made, tmp_path: Path
) -> None:
    many = [asking(b"", correlation_id=one) for one in range(10, 10 + MANY)]
    keys = request_payload(*scram(), correlation_id=9)
    said = [*sasl(), keys, *many]
    heard, kept, tap = passed(made, tmp_path, b"".join(map(frame, said)), pieces, connects=connects)
    expected = [*sasl(), *(stamped(one).payload for one in (keys, *many))]
    assert heard == b"".join(map(frame, expected))
    assert kept == b"".join(
        frame(one.replace(TOKEN, b"*" * len(TOKEN)).replace(SECRET, b"*" * len(SECRET)))
        for one in said
    )
    assert (tap.stats.stamped, tap.stats.unstamped_sasl, tap.stats.withheld) == (1 + MANY, 2, 2)
    stamps = [one for path in tap.capture_paths for one in read_stamps(path)]
    assert [one.correlation_id for one in stamps] == [9, *range(10, 10 + MANY)]
    assert all(one.tags == OURS for one in stamps)


def test_bare_tokens_pass_and_nothing_after_them_is_stamped(made: Made, tmp_path: Path) -> None:
    said = [asking(b"", correlation_id=1), sasl(0)[0], TOKEN, asking(b"", correlation_id=2)]
    heard, kept, tap = passed(made, tmp_path, b"".join(map(frame, said)), 0, connects=True)
    assert heard == b"".join(map(frame, [stamped(said[0]).payload, *said[1:]]))
    assert kept == b"".join(map(frame, said)).replace(TOKEN, b"*" * len(TOKEN))
    assert (tap.stats.stamped, tap.stats.unstamped_sasl) == (1, 3)


@pytest.mark.parametrize("connects", [False, True])
@pytest.mark.parametrize(
    "rest", [frame(TOKEN)[:-1], frame(sasl()[1])[:-1], b"\xff\xff\xff\xff" + SECRET]
)
def test_what_was_held_back_goes_on_when_a_client_ends(
    rest: bytes, connects: Any, made: Made, tmp_path: Path
) -> None:
    before = asking(b"", correlation_id=1)
    heard, kept, tap = passed(made, tmp_path, frame(before) + rest, 0, connects=connects)
    assert heard == frame(stamped(before).payload) + rest
    assert kept.startswith(frame(before))
    assert len(kept) == len(frame(before) + rest)
    assert SECRET not in kept
    assert tap.stats.broken_off + tap.stats.not_frames == 1


def test_half_a_token_is_not_taken_for_the_head_of_a_request() -> None:
    for token in (TOKEN, b"\0\0" + SECRET, b"n,,n=alice,r=" + SECRET, b"\0"):
        cut = frame(token + b"rest")[: 4 + len(token)]
        assert withhold_rest(cut, is_request=True) == cut[:4] + b"*" * len(token)


def test_each_connection_has_a_number_of_its_own(made: Made, tmp_path: Path) -> None:
    stamping = StampConfig([HeaderTag(10042, "{connection}")])
    numbers: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        length = int.from_bytes(await reader.readexactly(4), "big")
        header: Any = parse_request(await reader.readexactly(length)).header
        numbers.append(header.unknown_tagged_fields[10042])

    async def job() -> None:
        security = TapSecurity(made.listen, made.upstream)
        async with (
            serving(handler, made.broker) as upstream,
            tapped(upstream, tmp_path, security=security, stamping=stamping) as tap,
        ):

            async def one() -> None:
                async with connected(tap.listen_address, made.client) as client:
                    await client.send(frame(asking(b"")))
                    await client.reader.read()

            await asyncio.gather(*(one() for _ in range(5)))
            await settled(lambda: tap.stats.open_connections == 0)

    run(job())
    assert sorted(numbers) == [b"1", b"2", b"3", b"4", b"5"]
