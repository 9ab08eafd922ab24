"""A packet of a capture leads to its frames, and a response leads to its request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files.packets import tcp_packet
from flexwire.capture.messages import find_packet_frames
from flexwire.errors import CaptureError
from flexwire.wire.segment_layout import ACK, SYN
from tests.capture.traffic import FAR, NEAR, pcap, request, response

if TYPE_CHECKING:
    from pathlib import Path


def _packets() -> list[bytes]:
    """Return a request in two packets, two responses in one packet, and a packet without TCP."""
    one, two = request(1, 20), request(2)
    answers = response(1, 5) + response(2, 5)
    sent = [
        (NEAR, 999, SYN, b""),
        (FAR, 4999, SYN | ACK, b""),
        (NEAR, 1000, ACK, one[:10]),
        (NEAR, 1010, ACK, one[10:]),
        (NEAR, 1000 + len(one), ACK, two),
        (FAR, 5000, ACK, answers),
    ]
    packets = [
        tcp_packet(
            source,
            FAR if source is NEAR else NEAR,
            sequence=sequence,
            acknowledgment=5000 if source is NEAR else 1000,
            flags=flags,
            payload=payload,
        )
        for source, sequence, flags, payload in sent
    ]
    udp = bytearray(packets[0])
    udp[9] = 17
    return [*packets, bytes(udp)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "capture.pcap"
    found.write_bytes(pcap(_packets()))
    return found


def test_a_packet_has_the_frames_that_end_in_it(path: Path) -> None:
    [found] = find_packet_frames(path, 5)
    assert (found.frame.direction, found.turn.correlation_id) == ("request", 2)
    first, second = find_packet_frames(path, 6)
    assert [one.turn.correlation_id for one in (first, second)] == [1, 2]
    assert [one.turn.request.api_name for one in (first, second) if one.turn.request] == [
        "ApiVersions"
    ] * 2


def test_a_packet_within_a_frame_has_that_frame(path: Path) -> None:
    [began], [ended] = find_packet_frames(path, 3), find_packet_frames(path, 4)
    assert began == ended
    assert began.turn.correlation_id == 1


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (1, "packet 1 contains no TCP payload; packet 3 does"),
        (7, "packet 7 contains no TCP segment"),
        (8, "there is no packet 8; the last packet is 7"),
    ],
)
def test_a_packet_without_frames_says_why(path: Path, number: int, reason: str) -> None:
    with pytest.raises(CaptureError, match=reason):
        find_packet_frames(path, number)


def test_a_capture_that_ends_in_damage_gives_what_came_before_it(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    assert len(find_packet_frames(path, 6)) == 2
    with pytest.raises(CaptureError, match="cannot read beyond packet 6"):
        find_packet_frames(path, 7)
