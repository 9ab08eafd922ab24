"""Readers receive a tap's capture over a socket, and can slow down the tap only within limits."""

from __future__ import annotations

import asyncio
import socket
import stat
from contextlib import closing
from pathlib import Path

import pytest

from flexwire.activity.live import LiveCapture, LiveCaptures
from flexwire.activity.reading import ActivityReader
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.capture.messages import read_messages
from flexwire.errors import ArgumentError, CaptureError, TapError
from flexwire.tap import Tap
from flexwire.tap.live import MOST_READERS, LiveReaders
from flexwire.tap.metrics import TapStatistics
from tests.net.broker import LOOPBACK, Broker, connected, run, serving, settled, tapped
from tests.net.test_relay import asking, echo

NOTHING = b"\0"
HOSTS = ("10.0.0.9", 50000), ("10.0.0.1", 9092)


def frame(size: int) -> bytes:
    return size.to_bytes(4, "big") + bytes(size)


def received(reader: socket.socket) -> bytes:
    """Return everything that is available, without waiting for more."""
    data = b""
    while True:
        try:
            piece = reader.recv(1 << 20)
        except BlockingIOError:
            return data
        if not piece:
            return data
        data += piece


def connect(path: Path) -> socket.socket:
    reader = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    reader.connect(str(path))
    reader.setblocking(False)
    return reader


def test_who_reads_a_running_tap(tmp_path: Path) -> None:
    path = tmp_path / "tap.sock"

    async def job() -> None:
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path / "out", live=str(path)) as tap,
            connected(tap.listen_address) as client,
        ):
            # The reader does not receive traffic from before its connection.
            await client.ask(asking(NOTHING))
            reader = ActivityReader()
            with closing(LiveCaptures([path])) as live:
                # The tap accepts the reader in a later step of its event loop.
                await asyncio.sleep(0.1)
                for count in range(1, 4):
                    await client.ask(asking(NOTHING))

                    def seen() -> list[tuple[int, int]]:
                        reader.read(live.poll())
                        return [(row.requests, row.responses) for row in reader]

                    await settled(lambda count=count: seen() == [(count, count)])  # type: ignore[misc]  # of this round
                [row] = reader
                assert row.client == f"{LOOPBACK}:{client.port}"
        assert not path.exists()
        assert tap.counts().live_readers_dropped == 0

    run(job())


def test_a_reader_gets_the_frames_of_the_files(tmp_path: Path) -> None:
    path, got = tmp_path / "tap.sock", tmp_path / "got.pcapng"

    async def job() -> None:
        with PcapngWriter(tmp_path / "out", max_bytes=2000) as writer:
            live = LiveReaders(path, writer, TapStatistics())
            live.start()
            before = writer.open_connection(*HOSTS)
            before.send("request", frame(10))
            with connect(path) as reader:
                await settled(lambda: len(live) == 1)
                for size in (20, 3000, 40, 200_000, 50):
                    before.send("request", frame(size))
                    before.send("response", frame(size))
                data = b""

                async def all_of_it() -> None:
                    nonlocal data
                    while len(data) < 400_000:
                        data += received(reader)
                        await asyncio.sleep(0)
                    await asyncio.sleep(0.05)
                    data += received(reader)

                await asyncio.wait_for(all_of_it(), 60)
                got.write_bytes(data)
            live.close()

    run(job())
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) > 2
    in_files = [repr(one).partition("source=")[0] for one in read_messages(files)]
    given = [repr(one).partition("source=")[0] for one in read_messages([got])]
    assert len(given) == len(in_files) - 1 == 10


def test_a_slow_reader_is_closed_and_nobody_waits_for_it(tmp_path: Path) -> None:
    path, statistics = tmp_path / "tap.sock", TapStatistics()

    async def job() -> None:
        with PcapngWriter(tmp_path / "out") as writer:
            live = LiveReaders(path, writer, statistics, most_waiting=100_000)
            live.start()
            connection = writer.open_connection(*HOSTS)
            with connect(path):
                await settled(lambda: len(live) == 1)
                for _ in range(100):
                    connection.send("request", frame(50_000))
                assert len(live) == 0
                assert writer.copy_to is None
            live.close()

    run(job())
    assert statistics.live_readers_dropped == 1


def test_readers_that_talk_leave_or_are_too_many_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tap.sock"

    async def job() -> None:
        with PcapngWriter(tmp_path / "out") as writer:
            live = LiveReaders(path, writer, TapStatistics())
            live.start()
            readers = [connect(path) for _ in range(MOST_READERS)]
            await settled(lambda: len(live) == MOST_READERS)
            readers[0].send(b"x" * 1000)
            readers[1].shutdown(socket.SHUT_WR)  # nc does this at the end of its input
            with connect(path) as another:
                await settled(lambda: received_end(another))
            readers[2].close()
            with connect(path) as another:
                await settled(lambda: bool(received(another)))
            connection = writer.open_connection(*HOSTS)
            for reader in (readers[0], readers[1], readers[3]):
                received(reader)
            connection.send("request", frame(10))
            for reader in (readers[0], readers[1], readers[3]):
                await settled(lambda reader=reader: bool(received(reader)))  # type: ignore[misc]  # of this round
            for reader in readers:
                reader.close()
            live.close()

    def received_end(reader: socket.socket) -> bool:
        try:
            return reader.recv(1 << 20) == b""
        except BlockingIOError:
            return False

    run(job())


def test_the_socket_is_this_users_alone_and_replaces_one_that_was_left(tmp_path: Path) -> None:
    path = tmp_path / "tap.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))

    async def job() -> None:
        with PcapngWriter(tmp_path / "out") as writer:
            live = LiveReaders(path, writer, TapStatistics())
            live.start()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            other = LiveReaders(path, writer, TapStatistics())
            with pytest.raises(TapError, match="cannot listen on"):
                other.start()
            live.close()
            path.write_text("a file")
            with pytest.raises(TapError, match="cannot listen on"):
                other.start()
            assert path.read_text() == "a file"
            other.close()
            assert path.read_text() == "a file"

    run(job())


def test_a_tap_of_several_processes_gives_no_live_capture(tmp_path: Path) -> None:
    wording = "processes: expected 1, because --live sends the capture of a single process, got 2"
    with pytest.raises(ArgumentError, match=wording):
        Tap((LOOPBACK, 0), (LOOPBACK, 1), tmp_path, live=str(tmp_path / "s"), processes=2)


def test_a_path_that_is_too_long_is_an_error_of_the_tap(tmp_path: Path) -> None:
    async def job() -> None:
        tap = Tap((LOOPBACK, 0), (LOOPBACK, 1), tmp_path / "out", live=str(tmp_path / ("s" * 200)))
        with pytest.raises(TapError, match="cannot listen on"):
            await tap.start()

    run(job())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"this is no capture", "neither pcap nor pcapng"),
        (bytes.fromhex("0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000") + b"\6\0\0\0"
         + (1 << 30).to_bytes(4, "little") + bytes(17 << 20), "a block is larger than"),
        (bytes.fromhex("0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000")
         + b"\6\0\0\0\5\0\0\0abcd", "invalid block length: 5"),
        (b"", "the tap closed the connection"),
    ],
)  # fmt: skip
def test_what_is_no_capture_ends_the_reading_with_a_note(
    data: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        with closing(LiveCapture(path)) as live:
            sender, _ = listening.accept()
            sender.setblocking(False)
            at = 0
            while at < len(data) and not live.notes:
                at += sender.send(data[at : at + 100_000])
                assert list(live.poll()) == []
            sender.close()
            assert list(live.poll()) == []
            assert reason in live.notes[0]
            count = len(live.notes)
            assert list(live.poll()) == []
            assert len(live.notes) == count


def test_where_nobody_listens_there_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir()))
    for nobody in (path, tmp_path / "nothing"):
        with pytest.raises(CaptureError, match="no tap is listening on this socket"):
            LiveCaptures([nobody])
    assert len(list(open_files.iterdir())) == before
