"""Compressed bytes inflate to the original within the limit, or raise an error."""

from __future__ import annotations

import gzip
import random
import struct
from typing import Any

import cramjam
import pytest

from flexwire.errors import RecordError
from flexwire.records import Compression, decode_batches
from flexwire.records.compression import (
    inflate,
    lz4_bound,
    with_right_checksum,
    xxh32_short,
    zstd_bound,
)
from tests.records.batches import GZIP, ZSTD, batch, message, record

LIMIT = 1 << 20
XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"


def xerial(*chunks: bytes) -> bytes:
    raw = [bytes(cramjam.snappy.compress_raw(chunk)) for chunk in chunks]
    return XERIAL + b"".join(struct.pack(">i", len(part)) + part for part in raw)


DEFLATE: dict[str, tuple[Compression, Any]] = {
    "gzip": (Compression.GZIP, gzip.compress),
    "snappy raw": (Compression.SNAPPY, cramjam.snappy.compress_raw),
    "snappy xerial": (Compression.SNAPPY, lambda data: xerial(data[:99], data[99:])),
    "lz4": (Compression.LZ4, cramjam.lz4.compress),
    "zstd": (Compression.ZSTD, cramjam.zstd.compress),
}
_noise = random.Random(7).randbytes(3000)
CONTENTS = [b"", b"x", b"flexwire " * 900, _noise, _noise * 3, bytes(LIMIT)]


@pytest.mark.parametrize("form", DEFLATE)
def test_what_was_compressed_comes_back(form: str) -> None:
    compression, deflate = DEFLATE[form]
    for content in CONTENTS:
        data = bytes(deflate(content))
        assert inflate(compression, data, magic=2, limit=LIMIT) == content
        assert inflate(compression, data, magic=2, limit=len(content)) == content


@pytest.mark.parametrize("form", DEFLATE)
def test_one_byte_beyond_the_limit_is_an_error(form: str) -> None:
    compression, deflate = DEFLATE[form]
    for content in CONTENTS[1:]:
        with pytest.raises(RecordError, match="max_inflated"):
            inflate(compression, bytes(deflate(content)), magic=2, limit=len(content) - 1)


@pytest.mark.parametrize("form", DEFLATE)
def test_data_cut_anywhere_is_an_error(form: str) -> None:
    compression, deflate = DEFLATE[form]
    data = bytes(deflate(b"flexwire " * 30 + _noise[:50]))
    # A xerial stream may end after any chunk. The records are then cut off, which the batch
    # detects.
    ends = {16, 20 + int.from_bytes(data[16:20], "big")} if form == "snappy xerial" else set()
    for size in set(range(1, len(data))) - ends:
        with pytest.raises(RecordError):
            inflate(compression, data[:size], magic=2, limit=LIMIT)


@pytest.mark.parametrize("form", DEFLATE)
def test_trailing_bytes_are_an_error(form: str) -> None:
    compression, deflate = DEFLATE[form]
    with pytest.raises(RecordError):
        inflate(compression, bytes(deflate(b"flexwire")) + b"\x07", magic=2, limit=LIMIT)


@pytest.mark.parametrize("form", ["gzip", "snappy xerial", "lz4", "zstd"])
def test_streams_one_after_the_other_are_one(form: str) -> None:
    compression, deflate = DEFLATE[form]
    data = bytes(deflate(b"flex" * 40)) + bytes(deflate(b"wire" * 40))
    assert inflate(compression, data, magic=2, limit=320) == b"flex" * 40 + b"wire" * 40
    with pytest.raises(RecordError):
        inflate(compression, data, magic=2, limit=319)


def test_a_thousand_gzip_members_are_an_error() -> None:
    with pytest.raises(RecordError, match="members"):
        inflate(Compression.GZIP, gzip.compress(b"") * 1000, magic=2, limit=LIMIT)


def test_snappy_that_declares_more_than_it_can_hold_is_an_error() -> None:
    for data in (b"\xff\xff\xff\xff\x0f\x00", XERIAL + b"\x00\x00\x00\x06\xff\xff\xff\xff\x0f\x00"):
        with pytest.raises(RecordError, match="cannot inflate to 4294967295 bytes"):
            inflate(Compression.SNAPPY, data, magic=2, limit=2**40)


def test_a_xerial_chunk_longer_than_what_remains_is_an_error() -> None:
    for size in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x01"):
        with pytest.raises(RecordError, match="cut off"):
            inflate(Compression.SNAPPY, XERIAL + size, magic=2, limit=LIMIT)


def _zstd_bomb(blocks: int) -> bytes:
    # Each of these blocks stands for one byte repeated over 128 KiB, in four bytes.
    block = (131072 << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"
    last = (1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * blocks + last


def test_a_zstd_frame_of_repeated_bytes_is_bounded_by_the_limit() -> None:
    bomb = _zstd_bomb(8)
    assert zstd_bound(bomb) == LIMIT
    assert inflate(Compression.ZSTD, bomb, magic=2, limit=LIMIT) == bytes(LIMIT)
    with pytest.raises(RecordError, match="max_inflated"):
        inflate(Compression.ZSTD, _zstd_bomb(100_000), magic=2, limit=LIMIT)


def test_the_bounds_hold() -> None:
    for content in CONTENTS:
        assert lz4_bound(bytes(cramjam.lz4.compress(content))) >= len(content)
        for level in (1, 3, 19):
            assert zstd_bound(bytes(cramjam.zstd.compress(content, level))) >= len(content)


def test_a_content_size_that_lies_does_not_matter_to_the_bound() -> None:
    frame = bytearray(cramjam.zstd.compress(b"flexwire " * 900, 3))
    flags = frame[4]
    assert flags >> 6 == 1, "a content size of two bytes"
    frame[5:7] = b"\x00\x00"
    with pytest.raises(RecordError):
        inflate(Compression.ZSTD, bytes(frame), magic=2, limit=LIMIT)


def _lz4_with_old_checksum(content: bytes) -> bytes:
    frame = bytearray(cramjam.lz4.compress(content))
    end = 14 if frame[4] & 0x08 else 6
    frame[end] = xxh32_short(bytes(frame[:end])) >> 8 & 0xFF
    return bytes(frame)


def test_the_old_clients_lz4_checksum_is_read_in_magic_0_only() -> None:
    content = b"flexwire " * 40
    right = bytes(cramjam.lz4.compress(content))
    old = _lz4_with_old_checksum(content)
    assert old != right
    assert with_right_checksum(old) == with_right_checksum(right) == right
    assert inflate(Compression.LZ4, old, magic=0, limit=LIMIT) == content
    for magic in (1, 2):
        with pytest.raises(RecordError):
            inflate(Compression.LZ4, old, magic=magic, limit=LIMIT)


def test_any_other_lz4_checksum_is_an_error() -> None:
    right = bytes(cramjam.lz4.compress(b"flexwire"))
    end = 14 if right[4] & 0x08 else 6
    accepted = 0
    for checksum in range(256):
        frame = right[:end] + bytes([checksum]) + right[end + 1 :]
        try:
            accepted += inflate(Compression.LZ4, frame, magic=0, limit=LIMIT) == b"flexwire"
        except RecordError as error:
            assert "checksum" in str(error)  # noqa: PT017 - all but two of 256 raise
    assert accepted == 2


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects"[:0], 0x02CC5D05),
    ],
)
def test_xxh32_of_known_bytes(data: bytes, expected: int) -> None:
    assert xxh32_short(data) == expected


def test_inflated_records_are_bounded_in_number() -> None:
    count = 40_000
    body = bytes(cramjam.zstd.compress(b"\x0c\x00\x00\x00\x01\x01\x00" * count))
    [read] = decode_batches(batch(body, count, attributes=ZSTD), max_inflated=LIMIT)
    with pytest.raises(RecordError, match="too many"):
        _ = read.records
    [read] = decode_batches(batch(body, count, attributes=ZSTD), max_inflated=2 * LIMIT)
    assert len(read.records) == count


def test_inflated_record_headers_are_bounded_in_number() -> None:
    body = record(0, headers=[(b"", None)] * 20_000) + record(1, headers=[(b"", None)] * 20_000)
    data = batch(bytes(cramjam.zstd.compress(body)), 2, attributes=ZSTD)
    [read] = decode_batches(data, max_inflated=LIMIT)
    with pytest.raises(RecordError, match="too many"):
        _ = read.records
    [read] = decode_batches(batch(body, 2), max_inflated=0)
    assert sum(len(r.headers) for r in read.records) == 40_000, "not inflated, so not bounded"


@pytest.mark.slow
def test_inner_messages_are_bounded_in_number() -> None:
    inner = gzip.compress(message(None, magic=0) * 40_000)
    data = message(inner, magic=0, attributes=GZIP)
    [read] = decode_batches(data, max_inflated=LIMIT)
    with pytest.raises(RecordError, match="too many"):
        _ = read.records
    [read] = decode_batches(data, max_inflated=2 * LIMIT)
    assert len(read.records) == 40_000


def test_an_error_inside_inflated_bytes_says_so_and_points_at_the_batch() -> None:
    first = batch(record(), 1)
    second = batch(gzip.compress(record() + b"\x00"), 1, attributes=GZIP)
    _, read = decode_batches(first + second)
    with pytest.raises(RecordError, match="at byte 7 of the inflated records") as caught:
        _ = read.records
    assert caught.value.offset == len(first)
