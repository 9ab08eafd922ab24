"""Compressed data inflates to the original, in the form that Kafka's own readers expect."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.records import Compression
from flexwire.records.compression import deflate, inflate, with_right_checksum

_noise = random.Random(7).randbytes(200_000)
CONTENTS = [b"", b"x", b"flexwire " * 30_000, _noise, _noise[:70_000] + bytes(70_000)]
LEVELS: dict[Compression, list[int | None]] = {
    Compression.NONE: [None],
    Compression.GZIP: [None, 1, 9],
    Compression.SNAPPY: [None],
    Compression.LZ4: [None, 1, 9, 17],
    Compression.ZSTD: [None, -131072, -1, 0, 3, 22],
}


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("compression", Compression)
def test_what_is_compressed_comes_back(compression: Compression, magic: int) -> None:
    for level in LEVELS[compression]:
        for content in CONTENTS:
            data = deflate(compression, content, level=level, magic=magic)
            assert inflate(compression, data, magic=magic, limit=len(content)) == content
            if compression is not Compression.NONE:
                assert len(data) < len(content) * 1.001 + 50
                # The bytes are the same each time, whatever the clock says.
                assert deflate(compression, content, level=level, magic=magic) == data


@given(st.binary(max_size=300), st.sampled_from(Compression), st.integers(0, 2))
def test_any_bytes_come_back(content: bytes, compression: Compression, magic: int) -> None:
    data = deflate(compression, content, level=None, magic=magic)
    assert inflate(compression, data, magic=magic, limit=len(content)) == content


def test_a_level_changes_what_is_written() -> None:
    source = random.Random(3)
    content = b" ".join(b"%x" % source.getrandbits(n % 40 + 1) for n in range(20_000))
    for compression, levels in LEVELS.items():
        sizes = [len(deflate(compression, content, level=one, magic=2)) for one in levels]
        assert sizes[-1] == min(sizes)
        assert len(set(sizes)) >= min(len(sizes), 3)


def test_snappy_is_xerial_in_blocks_of_32_kib() -> None:
    data = deflate(Compression.SNAPPY, bytes(70_000), level=None, magic=2)
    assert data[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    position, sizes = 16, []
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        block = data[position + 4 : position + 4 + size]
        sizes.append(len(inflate(Compression.SNAPPY, block, magic=2, limit=70_000)))
        position += 4 + size
    assert sizes == [32768, 32768, 70_000 - 65536]


def test_lz4_has_independent_blocks_and_stores_what_does_not_get_smaller() -> None:
    content = _noise[:65536] + bytes(65536)
    assert deflate(Compression.LZ4, content, level=9, magic=2)[:6].hex() == "04224d187040"
    data = deflate(Compression.LZ4, content, level=None, magic=2)
    # Version 1, independent blocks (Java's readers accept no others), 64 KiB each; with a level,
    # each block has a checksum.
    assert data[:6].hex() == "04224d186040"
    assert int.from_bytes(data[7:11], "little") == 1 << 31 | 65536
    assert int.from_bytes(data[11 + 65536 :][:4], "little") < 1000
    assert data[-4:] == bytes(4)


def test_lz4_of_magic_0_has_the_old_clients_checksum() -> None:
    frames = [deflate(Compression.LZ4, b"flexwire", level=None, magic=m) for m in (0, 1, 2)]
    assert frames[1] == frames[2] != frames[0]
    # The checksum includes the frame's magic number, as in kafka-python and Kafka's Java code.
    assert (frames[0][6], frames[1][6]) == (0x1A, 0x82)
    assert with_right_checksum(frames[0]) == frames[1]
