"""The files that the pcapng writer writes yield the same frames when they are read."""

from __future__ import annotations

import os
import shutil
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import dpkt  # type: ignore[import-untyped]  # dpkt ships no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexwire.capture.files import packets, pcapng
from flexwire.capture.files.links import Segment, read_segments
from flexwire.capture.files.packets import word_sum
from flexwire.capture.files.pcapng import SEGMENT_BYTES, PcapngWriter
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.errors import CaptureError
from flexwire.wire.segment_layout import FIN, RST, SYN
from tests.capture.traffic import framed, of, request, response
from tests.searching import TIMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from io import FileIO
    from pathlib import Path

    from flexwire.capture.reassembly.connections import CapturedFrame

CLIENT, SERVER = ("10.0.0.9", 50000), ("10.0.0.1", 9092)


def segments(paths: Iterable[Path]) -> list[Segment]:
    items = [item for path in paths for item in read_segments(path)]
    assert all(isinstance(item, Segment) for item in items)
    return [item for item in items if isinstance(item, Segment)]


def frames(paths: Iterable[Path]) -> list[CapturedFrame]:
    assemblers: dict[str, FrameAssembler] = {}
    found = []
    for segment in segments(paths):
        key = connection_key(segment)
        found += assemblers.setdefault(key, FrameAssembler()).push(segment)
    return found + [frame for one in assemblers.values() for frame in one.finish()]


@pytest.mark.slow
@settings(suppress_health_check=[*TIMED, HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from(["request", "response"]),
            st.integers(0, 300) | st.sampled_from([SEGMENT_BYTES, 3 * SEGMENT_BYTES + 1]),
            st.integers(0, 2**50),
        ),
        max_size=12,
    ),
    st.sampled_from([CLIENT, ("::1", 50000)]),
    st.tuples(st.integers(0, 2**32 - 1), st.integers(2**32 - 500, 2**32 - 1)),
    st.integers(1, 2000),
)
def test_what_is_written_reads_back(
    tmp_path: Path,
    sent: list[tuple[int, Literal["request", "response"], int, int]],
    client: tuple[str, int],
    sequences: tuple[int, int],
    max_bytes: int,
) -> None:
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    with PcapngWriter(tmp_path / "out", max_bytes=max_bytes) as writer:
        ends = [client, (client[0], 50001)]
        connections = [
            writer.open_connection(end, SERVER, timestamp_us=0, initial_sequences=sequences)
            for end in ends
        ]
        for number, direction, size, at in sent:
            connections[number].send(direction, framed(b"\xff" * size), at)
        for connection in connections:
            connection.close(timestamp_us=2**51)
    found = frames(writer.paths)
    for number in (0, 1):
        for direction in ("request", "response"):
            expected = [
                (size, at) for to, way, size, at in sent if (to, way) == (number, direction)
            ]
            mine = [one for one in of(found, direction) if f":{50000 + number}>" in one.connection]
            # The reader treats two consecutive empty frames as damage.
            if any(a[0] == b[0] == 0 for a, b in pairwise(expected)):
                continue
            assert [one.error for one in mine] == [None] * len(mine)
            assert [(len(one.payload), one.timestamp_us) for one in mine] == expected


def test_files_turn_at_frame_boundaries_and_each_can_be_read_alone(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path, max_bytes=3000) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        for n in range(30):
            connection.send("request", request(100 + n, 200))
            connection.send("response", response(100 + n, 5000 if n == 7 else 100))
        connection.close()
    assert [path.name for path in writer.paths[:2]] == ["tap-00001.pcapng", "tap-00002.pcapng"]
    assert len(writer.paths) > 4
    large = [path for path in writer.paths if path.stat().st_size > 3000]
    assert len(large) == 1
    assert len(frames(large)) == 1
    alone = [frame for path in writer.paths for frame in frames([path])]
    together = frames(writer.paths)
    assert [(one.connection, one.direction, one.payload, one.error) for one in alone] == [
        (one.connection, one.direction, one.payload, one.error) for one in together
    ]
    assert len(together) == 60


# The server has the higher port, and no file contains the request of a response. Only the comments
# in a file show where the frames begin and who sent them.
ODD_ENDS = ("10.0.0.9", 2000), ("10.0.0.1", 40_000)
# Each segment of such a body begins with bytes that look like two responses.
MISLEADING = response(41, 8) * (2 * SEGMENT_BYTES // 16)


@pytest.mark.parametrize(
    "sizes",
    [[10, 40_000, 17 * 1024 * 1024, 3], [100] * 40, [70_000, 5, 70_000, 5, 5]],
    ids=["longer than is guessed", "short", "mixed"],
)
def test_each_file_alone_gives_exactly_its_part_of_the_frames(
    tmp_path: Path, sizes: list[int]
) -> None:
    sent: dict[Path, list[tuple[str, bytes]]] = {}
    with PcapngWriter(tmp_path, max_bytes=2000) as writer:
        connection = writer.open_connection(*ODD_ENDS)
        for direction in ("request", "response"):
            for number, size in enumerate(sizes):
                body = (MISLEADING * (size // len(MISLEADING) + 1))[:size]
                payload = struct.pack(">i", number) + body
                connection.send(
                    "request" if direction == "request" else "response", framed(payload)
                )
                sent.setdefault(writer.paths[-1], []).append((direction, payload))
        connection.close()
    assert len(sent) > 1
    for path in writer.paths:
        found = frames([path])
        assert {one.connection for one in found} <= {"10.0.0.9:2000>10.0.0.1:40000"}
        assert [one.error for one in found] == [None] * len(found)
        assert [(one.direction, one.payload) for one in found] == sent.get(path, [])
    # If the file between two others is lost, the frames of the others are still found.
    without = [path for number, path in enumerate(writer.paths) if number % 3 != 1]
    whole = [(one.direction, one.payload) for one in frames(without) if one.error is None]
    for direction in ("request", "response"):
        expected = [one for path in without for one in sent.get(path, []) if one[0] == direction]
        assert [one for one in whole if one[0] == direction] == expected


def test_frames_written_together_are_still_known_for_frames(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path, max_bytes=200) as writer:
        connection = writer.open_connection(*ODD_ENDS)
        for n in range(4):
            connection.send("response", response(n) + response(n + 100, 300))
    assert [len(frames([path])) for path in writer.paths] == [0, 2, 2, 2, 2]
    assert [one.error for path in writer.paths for one in frames([path])] == [None] * 8


@pytest.mark.parametrize(
    "first",
    [b"\x16\x03\x01\x02\x00\x01", request(1, 500)[:100], b"\xff" * 40, b"\x00"],
    ids=["TLS", "broken off", "no length", "one byte"],
)
def test_of_bytes_that_are_no_frames_no_file_says_that_they_are(
    tmp_path: Path, first: bytes
) -> None:
    with PcapngWriter(tmp_path, max_bytes=500) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        for data in (first, request(1), b"\x17\x03\x03" + b"\xff" * 300, request(2)):
            connection.send("request", data)
    assert len(writer.paths) > 1
    said = [one for one in segments(writer.paths) if one.payload and one.begins]
    # The first bytes could be a frame. Only the reader can decide that they are not a frame.
    assert [one.payload for one in said] == [first]


def test_each_stream_in_each_file_is_told_once(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path, max_bytes=5000) as writer:
        connections = [writer.open_connection((CLIENT[0], port), SERVER) for port in (1, 2)]
        for n in range(60):
            connections[n % 2].send("request", request(n, 100))
            connections[n % 2].send("response", response(n, 100))
    assert len(writer.paths) > 3
    for path in writer.paths:
        held = segments([path])
        first = {one.source + one.destination: one for one in reversed(held) if one.payload}
        assert [one for one in held if one.begins] == sorted(first.values(), key=held.index)
        for one in first.values():
            assert one.begins == ("response" if one.source.endswith(":9092") else "request")


def test_a_frame_is_on_disk_when_send_returns(tmp_path: Path) -> None:
    writer = PcapngWriter(tmp_path)
    connection = writer.open_connection(CLIENT, SERVER)
    for n in range(3):
        connection.send("request", request(n))
        assert len(frames(writer.paths)) == n + 1
    writer.close()
    with pytest.raises(CaptureError, match="the writer is closed"):
        connection.send("request", request(9))


def test_a_frame_that_broke_off_is_told(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        connection.send("request", request(1, 500)[:100])
        connection.close(reset=True)
    (frame,) = frames(writer.paths)
    assert frame.error == "the connection ended after 100 of a frame's 518 bytes"


def test_handshake_and_end_have_the_flags_that_tcp_has(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path) as writer:
        first = writer.open_connection(CLIENT, SERVER)
        first.close()
        first.close()
        with pytest.raises(CaptureError, match="the connection is closed"):
            first.send("request", b"late")
        writer.open_connection(CLIENT, SERVER).close(reset=True)
    flags = [one.flags & (SYN | FIN | RST) for one in segments(writer.paths)]
    assert flags == [SYN, SYN, 0, FIN, FIN, 0, SYN, SYN, 0, RST]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("by_broker", [False, True])
def test_who_ended_a_connection_ends_it_first(
    tmp_path: Path, *, by_broker: bool, reset: bool
) -> None:
    with PcapngWriter(tmp_path) as writer:
        connection = writer.open_connection(("10.0.0.9", 5), ("10.0.0.1", 9092))
        connection.send("request", framed(b"asked"))
        connection.close(by_broker=by_broker, reset=reset)
    ends = [one.source for one in segments(writer.paths) if one.flags & (FIN | RST)]
    assert ends[0] == ("10.0.0.1:9092" if by_broker else "10.0.0.9:5")
    assert len(ends) == (1 if reset else 2)


def test_an_earlier_run_is_left_alone(tmp_path: Path) -> None:
    for number in (1, 2):
        with PcapngWriter(tmp_path / "new" / "place", prefix="run") as writer:
            writer.open_connection(CLIENT, SERVER)
        assert [path.name for path in writer.paths] == [f"run-{number:05}.pcapng"]


def test_hosts_are_addresses_and_ports_are_ports(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match="localhost"):
            writer.open_connection(("localhost", 1), SERVER)
        with pytest.raises(ValueError, match="from 0 to 65535, got 65536"):
            writer.open_connection(("127.0.0.1", 65536), SERVER)


def test_a_failed_write_leaves_a_file_that_reads_and_a_gap_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pcapng._write_whole

    def full(file: FileIO, pieces: Sequence[bytes]) -> int:
        real(file, [pieces[0][:20]])
        raise OSError(28, "No space left on device")

    with PcapngWriter(tmp_path) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        connection.send("request", request(1))
        with monkeypatch.context() as patched:
            patched.setattr(pcapng, "_write_whole", full)
            with pytest.raises(CaptureError, match="No space left"):
                connection.send("request", request(2))
        connection.send("request", request(3))
        connection.close()
    found = frames(writer.paths)
    assert [(one.size, one.error is None) for one in found] == [(18, True), (18, False), (18, True)]
    # After the gap, the file's comment marks the next frame, whatever that frame contains.
    assert [one.begins for one in segments(writer.paths) if one.payload] == ["request"] * 2


def test_an_unwritable_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match="cannot create"):
        PcapngWriter(tmp_path / "file")


def test_an_independent_reader_agrees(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path) as writer:
        for client in (CLIENT, ("::1", 50000)):
            connection = writer.open_connection(client, SERVER)
            connection.send("request", request(1, 140_001), 1_700_000_000_123_456)
    with writer.paths[0].open("rb") as file:
        reader = dpkt.pcapng.Reader(file)
        assert reader.datalink() == pcapng.LINKTYPE_RAW
        packets = list(reader)
    assert packets[3][0] == pytest.approx(1_700_000_000.123456, abs=1e-6)
    own = segments(writer.paths)
    assert len(packets) == len(own) == 12
    for (_, data), segment in zip(packets, own, strict=True):
        packet = dpkt.ip6.IP6(data) if data[0] >> 4 == 6 else dpkt.ip.IP(data)
        assert (packet.data.seq, packet.data.ack) == (segment.sequence, segment.acknowledgment)
        assert packet.data.data == segment.payload
        written = packet.data.sum
        packet.data.sum = 0
        if data[0] >> 4 == 4:
            assert word_sum(data[:20]) == 0
            packet.sum = 0
            # When dpkt packs, it computes each checksum that is 0.
            assert dpkt.ip.IP(bytes(packet)).data.sum == written
        else:
            assert dpkt.ip6.IP6(bytes(packet)).data.sum == written


@pytest.mark.parametrize("with_numpy", [True, False])
@given(
    st.binary(max_size=200),
    st.sampled_from([1, 30, 700]),
    st.sampled_from([b"", b"\x01", b"\xff\xff\xff"]),
)
def test_the_checksum_is_the_one_of_rfc_1071(
    with_numpy: bool,  # noqa: FBT001  # pytest passes each case
    part: bytes,
    times: int,
    end: bytes,
) -> None:
    data = part * times + end
    total = 0
    padded = data + bytes(len(data) % 2)
    for (word,) in struct.iter_unpack(">H", padded):
        total += word
        total = (total & 0xFFFF) + (total >> 16)
    with pytest.MonkeyPatch.context() as patched:
        if not with_numpy:
            patched.setattr(packets, "np", None)
        # Ones' complement has two zeros, which differ only if all data is zero.
        assert word_sum(data) == total % 0xFFFF


def test_packets_of_one_frame_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    real = pcapng._write_whole

    def counting(file: FileIO, pieces: Sequence[bytes]) -> int:
        written.append(real(file, pieces))
        return written[-1]

    with PcapngWriter(tmp_path) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        monkeypatch.setattr(pcapng, "_write_whole", counting)
        connection.send("request", b"".join(request(n) for n in range(200)))
        assert len(written) == 1
        connection.send("request", request(200, 3 * SEGMENT_BYTES))
        assert len(written) == 2
        connection.send("request", request(201, 100 * SEGMENT_BYTES))
        # A long block is written in parts, because a copy would double the memory use.
        assert max(written) < 50 * SEGMENT_BYTES
    found = frames(writer.paths)
    assert [one.error for one in found] == [None] * 202


@pytest.mark.parametrize("most", [1, 7, 1000, 70_000])
def test_a_system_that_takes_a_part_only_gets_the_rest(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = [request(1, 10), request(2, 3000 if most == 1 else 200_000)]
    with PcapngWriter(tmp_path) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        monkeypatch.setattr(
            os, "writev", lambda file, pieces: os.write(file, b"".join(pieces)[:most])
        )
        for one in sent:
            connection.send("request", one)
    assert [framed(one.payload) for one in frames(writer.paths)] == sent
    assert writer.paths[0].stat().st_size == writer._size
