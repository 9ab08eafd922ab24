"""In ordinary files, the reader finds the next block from any byte of the file."""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files.blocks import guess_boundary, read_file_head
from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import read_packets
from tests.capture.interleaved import Shape, write_capture

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ["pcapng", "pcap", "nanoseconds"]


def packets_of(path: Path) -> list[int]:
    """Return the beginning of each packet."""
    return [one.offset for one in read_packets(path) if isinstance(one, CapturedPacket)]


@pytest.mark.parametrize("kind", FORMATS)
def test_the_next_packet_is_found_from_any_byte(kind: str, tmp_path: Path) -> None:
    for seed in range(3):
        (path,) = write_capture(tmp_path / str(seed), seed, Shape(formats=(kind,), acks=1.0))
        known = read_file_head(str(path))
        assert known is not None
        begins, size = packets_of(path), path.stat().st_size
        source = random.Random(seed)
        for offset in [*source.sample(range(1, size), 60), *begins[:3], begins[-1]]:
            place = bisect_left(begins, offset)
            expected = begins[place] if place < len(begins) else None
            assert guess_boundary(str(path), known, offset) == expected


def test_a_head_says_what_is_known_at_the_first_packet(tmp_path: Path) -> None:
    (path,) = write_capture(tmp_path, 1, Shape(links=(101, 1)))
    known = read_file_head(str(path))
    assert known is not None
    first = next(one for one in read_packets(path) if isinstance(one, CapturedPacket))
    assert known.first_us == first.timestamp_us


def test_there_is_no_guess_in_a_file_that_is_compressed_or_without_packets(tmp_path: Path) -> None:
    for number, shape in enumerate((Shape(compressed=1.0), Shape(connections=0))):
        (path,) = write_capture(tmp_path / str(number), 1, shape)
        assert read_file_head(str(path)) is None


def test_bytes_that_are_no_blocks_are_not_taken_for_some(tmp_path: Path) -> None:
    for kind in FORMATS:
        shape = replace(Shape(), formats=(kind,))
        (path,) = write_capture(tmp_path / kind, 1, shape)
        known = read_file_head(str(path))
        assert known is not None
        noise = tmp_path / f"{kind}-noise"
        noise.write_bytes(random.Random(kind).randbytes(200_000))
        assert guess_boundary(str(noise), known, 4) is None
