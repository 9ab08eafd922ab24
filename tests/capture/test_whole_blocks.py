"""A growing file is read to the end of its last complete block, and no further."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files.blocks import WholeBlocks
from flexwire.capture.files.reading import ForwardReader, begin_blocks
from flexwire.errors import CaptureError
from tests.capture.interleaved import SHAPES, write_capture

if TYPE_CHECKING:
    from pathlib import Path


def ends_of(data: bytes) -> list[int]:
    """Return the end of each block that is read."""
    source = ForwardReader("", io.BytesIO(data))
    return [0, *(source.offset for _ in begin_blocks(source))]


def looked(known: WholeBlocks, data: bytes, most: int | None = None) -> int:
    known.look(lambda at: io.BytesIO(data[at:]), len(data), most)
    return known.end


@pytest.mark.parametrize(("name", "files"), [("CLEAN", 1), ("MID_STREAM", 1), ("STRANGE", 1)])
def test_a_file_is_whole_up_to_its_last_block(name: str, files: int, tmp_path: Path) -> None:
    data = write_capture(tmp_path, 1, SHAPES[name])[files].read_bytes()[:6000]
    whole = []
    growing = WholeBlocks("a")
    for size in range(4, len(data)):
        whole.append(looked(growing, data[:size]))
        assert whole[-1] == looked(WholeBlocks("a"), data[:size])
    ends = sorted({*whole})
    data = data[: ends[-1]]
    assert ends == ends_of(data)
    assert all(end <= size for size, end in enumerate(whole, 4))
    for most in (1, 100, 1000):
        limited, known = [0], WholeBlocks("a")
        while looked(known, data, most) > limited[-1]:
            limited.append(known.end)
        assert limited[-1] == ends[-1]
        assert set(limited) <= set(ends)
        for before, after in pairwise(limited):
            assert after - before <= most or after == ends[ends.index(before) + 1]


def test_what_no_block_can_be_ends_a_file(tmp_path: Path) -> None:
    pcapng = write_capture(tmp_path / "a", 1, SHAPES["CLEAN"])[0].read_bytes()[:3000]
    pcap = write_capture(tmp_path / "b", 1, SHAPES["MID_STREAM"])[0].read_bytes()[:3000]
    for data, reason in (
        (pcapng[: ends_of_part(pcapng)[3]] + bytes(16), "invalid block length: 0"),
        (
            pcap[: ends_of_part(pcap)[3]] + b"\xff" * 16,
            "packet length exceeds the limit: 4294967295",
        ),
    ):
        known = WholeBlocks("a")
        assert looked(known, data) == len(data) - 16
        assert reason in (known.damage or "")
        assert looked(known, data + data) == len(data) - 16
    with pytest.raises(CaptureError, match="a, byte 0: neither pcap nor pcapng"):
        looked(WholeBlocks("a"), b"hello")


def ends_of_part(data: bytes) -> list[int]:
    known = WholeBlocks("a")
    looked(known, data)
    return ends_of(data[: known.end])
