"""One end of a connection forwards everything in order, and buffers no more than it must."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from flexwire.client.tls import client_context, server_context
from flexwire.tap.ends import End, EndCallbacks
from tests.net.broker import connected, run, serving, settled, tapped
from tests.net.test_relay import asking
from tests.protocol.payloads import frame
from tests.tls import Authority

if TYPE_CHECKING:
    from pathlib import Path


class Wire(asyncio.Transport):
    """A transport that records each call."""

    def __init__(self, end: End) -> None:
        super().__init__()
        self.end = end
        self._reads = True
        self.written = b""
        self.closed = False
        end.connection_made(self)

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True

    def is_read(self) -> bool:
        return self._reads

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.written += b"|end"

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Heard:
    """Record the events of one end of a connection."""

    def __init__(self, most: int | None = None) -> None:
        self.all: list[object] = []
        self.calls = EndCallbacks(self.take, lambda: self.all.append("ended"), self.all.append)
        self._most = most

    def take(self, data: bytes) -> int:
        self.all.append(data[: self._most])
        return len(data[: self._most])


def two(*, over_tls: bool = False) -> tuple[Wire, Wire]:
    return Wire(End(over_tls=over_tls)), Wire(End())


def test_what_comes_early_waits_and_nothing_more_is_read() -> None:
    async def job() -> None:
        one, other = two()
        one.end.data_received(b"early")
        assert not one.is_read()
        one.end.eof_received()
        heard = Heard()
        one.end.call(heard.calls, other.end)
        assert heard.all == [b"early", "ended"]
        # The end is reported once, whatever the handler does.
        one.end.connection_lost(None)
        assert heard.all == [b"early", "ended"]

    run(job())


def test_a_connection_that_is_lost_early_is_told_as_lost() -> None:
    async def job() -> None:
        one, other = two()
        error = ConnectionResetError()
        one.end.connection_lost(error)
        heard = Heard()
        one.end.call(heard.calls, other.end)
        assert heard.all == [error]

    run(job())


def test_an_end_that_is_full_stops_the_other_until_it_is_not() -> None:
    async def job() -> None:
        one, other = two()
        # The buffer is full before anyone is notified.
        other.end.pause_writing()
        one.end.data_received(b"x")
        one.end.call(Heard().calls, other.end)
        assert not one.is_read()
        other.end.call(Heard().calls, one.end)
        other.end.resume_writing()
        assert one.is_read()
        other.end.pause_writing()
        assert (one.is_read(), other.is_read()) == (False, True)

    run(job())


def test_an_end_that_is_ignored_tells_nothing_and_is_read_to_its_end() -> None:
    async def job() -> None:
        one, other = two()
        heard = Heard()
        one.end.call(heard.calls, other.end)
        other.end.call(Heard().calls, one.end)
        other.end.pause_writing()
        one.end.ignore()
        assert one.is_read()
        one.end.data_received(b"late")
        one.end.connection_lost(OSError())
        other.end.pause_writing()
        assert heard.all == []
        assert one.is_read()

    run(job())


async def one_step() -> None:
    await asyncio.sleep(0)


LOST = ConnectionResetError()


@pytest.mark.parametrize("lost", [None, LOST])
def test_what_is_not_taken_comes_again_in_order_before_any_end(lost: Exception | None) -> None:
    async def job() -> None:
        one, other = two()
        heard = Heard(most=2)
        one.end.call(heard.calls, other.end)
        one.end.data_received(b"abcde")
        # asyncio may have read more bytes, and the end, before it was told to pause.
        one.end.data_received(b"f")
        one.end.eof_received()
        one.end.connection_lost(lost)
        assert heard.all == [b"ab"]
        assert not one.is_read()
        await one_step()
        assert heard.all == [b"ab", b"cd"]
        await one_step()
        ends = ["ended"] if lost is None else ["ended", lost]
        assert heard.all == [b"ab", b"cd", b"ef", *ends]

    run(job())


def test_more_is_read_once_all_is_taken_unless_the_other_is_full() -> None:
    async def job() -> None:
        one, other = two()
        one.end.call(Heard(most=1).calls, other.end)
        other.end.call(Heard().calls, one.end)
        one.end.data_received(b"abc")
        other.end.pause_writing()
        other.end.resume_writing()
        assert not one.is_read()
        other.end.pause_writing()
        for _ in range(3):
            await one_step()
        assert not one.is_read()
        other.end.resume_writing()
        assert one.is_read()

    run(job())


@pytest.mark.parametrize("is_called", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
def test_what_came_before_an_end_was_ignored_is_told_and_nothing_later(
    *, at_once: bool, is_called: bool
) -> None:
    async def job() -> None:
        one, other = two()
        heard = Heard(most=1)
        if is_called:
            one.end.call(heard.calls, other.end)
        one.end.data_received(b"abcde")
        one.end.eof_received()
        one.end.ignore()
        one.end.data_received(b"late")
        if at_once:
            one.end.tell_rest_at_once()
        else:
            await one.end.tell_rest()
        assert heard.all == ([b"a", b"b", b"c", b"d", b"e"] if is_called else [])
        await one_step()
        assert b"".join(one for one in heard.all if isinstance(one, bytes)) in {b"abcde", b""}

    run(job())


def test_what_fails_in_a_later_step_ends_the_connection_as_in_the_first() -> None:
    async def job() -> None:
        one, other = two()
        heard = Heard(most=1)
        error = ValueError("a defect")

        def fails_then(data: bytes) -> int:
            if heard.all:
                raise error
            return heard.take(data)

        one.end.call(heard.calls._replace(said=fails_then), other.end)
        one.end.data_received(b"abc")
        await one_step()
        assert heard.all == [b"a", error]

    run(job())


@pytest.mark.parametrize("over_tls", [True, False])
def test_only_without_tls_can_be_written_to_what_has_ended(over_tls: bool) -> None:  # noqa: FBT001  # pytest passes each case
    async def job() -> None:
        one, _ = two(over_tls=over_tls)
        assert one.end.eof_received() is not over_tls
        one.end.write(b"more")
        assert one.end.is_closing is over_tls
        assert one.written == (b"" if over_tls else b"more")

    run(job())


def test_to_end_a_direction_of_what_was_reset_meanwhile_is_no_error() -> None:
    async def job() -> None:
        near, far = socket.socket(), socket.create_server(("127.0.0.1", 0))
        near.connect(far.getsockname())
        peer, _ = far.accept()
        near.setblocking(False)
        end = End()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: end, near)
        # Nothing is read, so the reset has arrived but is not yet noticed.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        far.close()
        end.half_close()
        heard = Heard()
        end.call(heard.calls, Wire(End()).end)
        await settled(lambda: bool(heard.all))
        assert isinstance(heard.all[0], ConnectionResetError)
        await end.close(1)

    run(job())


def test_an_end_is_gone_whatever_comes_of_its_calls() -> None:
    async def job() -> None:
        one, other = two()

        def fails() -> None:
            raise ValueError

        one.end.call(EndCallbacks(len, fails, lambda _: fails()), other.end)
        with pytest.raises(ValueError, match=r"^$"):
            one.end.connection_lost(None)
        await one.end.close(1)

    run(job())


@pytest.mark.slow
def test_a_broker_that_does_not_read_stops_its_client(tmp_path: Path) -> None:
    piece = frame(asking(bytes(1 << 20)))
    may_read = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await may_read.wait()
        for _n in range(64):
            await reader.readexactly(len(piece))

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            sending = asyncio.ensure_future(client.send(piece * 64))
            before = -1
            while before != tap.stats.request_bytes or not before:
                before = tap.stats.request_bytes
                await asyncio.sleep(0.1)
            assert tap.stats.request_bytes < 32 << 20
            may_read.set()
            await sending
            await settled(lambda: tap.stats.requests == 64)

    run(job())


def test_a_peer_that_takes_nothing_is_dropped_in_time_though_it_was_asked_to_close_already(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)

    async def job() -> None:
        over = asyncio.Event()

        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is read as well
            await over.wait()

        async with serving(silent, server_context(*authority.certificate())) as address:
            _, end = await asyncio.get_running_loop().create_connection(
                lambda: End(over_tls=True), *address, ssl=client_context(authority.path)
            )
            end.write(bytes(32 << 20))
            end.transport.close()
            await end.close(0.1)
            over.set()

    run(job())


def test_each_wait_begins_after_the_one_before_and_the_end_comes_last() -> None:
    async def job() -> None:
        loop = asyncio.get_running_loop()
        one, other = two()
        for wire, over in ((one, other), (other, one)):
            wire.end.call(Heard().calls, over.end)
        begin = loop.time()
        one.end.write(b"0")
        for text in (b"1", b"2", b"3"):
            one.end.wait(0.02)
            one.end.write(text)
        one.end.half_close()
        assert (one.written, one.end.is_full, other.is_read()) == (b"0", True, False)
        await settled(lambda: one.written.endswith(b"|end"))
        assert one.written == b"0123|end"
        # On a busy machine, the timer may be late but never early.
        assert loop.time() >= begin + 0.06
        assert (one.end.is_full, other.is_read()) == (False, True)

    run(job())


def test_a_muted_end_is_not_read_whatever_the_other_takes() -> None:
    async def job() -> None:
        one, other = two()
        for wire, over in ((one, other), (other, one)):
            wire.end.call(Heard().calls, over.end)
        one.end.mute(600)
        other.end.pause_writing()
        other.end.resume_writing()
        assert not one.is_read()
        one.end.mute(0.001)
        await settled(one.is_read)

    run(job())


def test_a_deaf_end_gets_what_was_written_before_and_nothing_later() -> None:
    async def job() -> None:
        one, other = two()
        one.end.call(Heard().calls, other.end)
        one.end.wait(0.001)
        one.end.write(b"before")
        one.end.is_deaf = True
        one.end.write(b"later")
        await settled(lambda: not one.end.is_full)
        assert one.written == b"before"

    run(job())
