"""The lz4 kernel inflates what the lz4 library inflates, to the same bytes, or asks for it."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import cramjam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.columnar.program import address
from flexwire.errors import RecordError
from flexwire.kernels.engine import kernel
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - as in the room
from flexwire.kernels.records import inflating_layout as F  # noqa: N812 - as in the room
from flexwire.records import Compression
from flexwire.records.compression import deflate, inflate
from flexwire.wire.batch_layout import LZ4
from tests.columnar.inflated import LIMIT, inflated_by_kernel
from tests.columnar.lz4_frames import (
    BLOCK_CHECKSUM,
    CONTENT_CHECKSUM,
    CONTENT_SIZE,
    INDEPENDENT,
    MAGIC,
    RAW,
    contents,
    frame,
    header,
    library_frames,
)
from tests.searching import times

run = partial(inflated_by_kernel, LZ4)
# Five letters, then four bytes of 5 before, then a last sequence of five letters.
BLOCK = b"\x50abcde" + b"\x05\x00" + b"\x50fghij"


def library(data: bytes, limit: int = LIMIT) -> bytes | None:
    try:
        return inflate(Compression.LZ4, data, magic=2, limit=limit)
    except RecordError:
        return None


def test_every_frame_of_the_library_is_inflated() -> None:
    source = random.Random(4)
    kinds: dict[int, int] = {}
    for content in contents(source):
        frames = [*library_frames(content), deflate(Compression.LZ4, content, level=None, magic=2)]
        for one in frames:
            assert run(one) == content
            kinds[one[4]] = kinds.get(one[4], 0) + 1
        joined = frames[1] + frames[-1]
        assert run(joined) == content * 2
    # Blocks that stand alone and that do not, with and without each checksum and the content size.
    flags = set(kinds)
    assert {bool(one & INDEPENDENT) for one in flags} == {False, True}
    assert {bool(one & BLOCK_CHECKSUM) for one in flags} == {False, True}
    assert {bool(one & CONTENT_CHECKSUM) for one in flags} == {False, True}


def test_the_room_and_the_limit_may_end_with_the_content() -> None:
    source = random.Random(5)
    for content in contents(source):
        # A match may not end where the room does: then the library is asked.
        data = bytes(cramjam.lz4.compress(content))
        for size in (len(content), len(content) + 1, len(content) + 11, len(content) + 12):
            for given_ in ({"size": size}, {"limit": size}):
                assert run(data, **given_) in (content, None)
        assert run(data, size=len(content) + 12) == content
        assert run(data, limit=len(content) + 12) == content
        if content:
            assert run(data, size=len(content) - 1) is None
            assert run(data, limit=len(content) - 1) is None


def test_a_frame_cut_anywhere_is_for_the_library() -> None:
    source = random.Random(6)
    content = b"flexwire " * 30 + source.randbytes(50)
    for data in (*library_frames(content), deflate(Compression.LZ4, content, level=None, magic=2)):
        assert run(data) == content
        for size in range(1, len(data)):
            assert run(data[:size]) is None
        for behind in (b"\x00", b"\x07", MAGIC, bytes(4), bytes(11), data[:-1]):
            assert run(data + behind) is None


def test_whatever_is_damaged_is_what_the_library_makes_of_it() -> None:
    source = random.Random(7)
    frames = []
    for content in contents(source):
        short = content[: source.choice([30, 300, 3000])]
        # Mostly without checksums, which would see the damage.
        frames += [deflate(Compression.LZ4, short, level=None, magic=2)] * 9
        frames += library_frames(short)
    same = asked = 0
    for _ in range(20_000):
        raw = bytearray(source.choice(frames))
        for _ in range(source.choice([1, 1, 2, 4])):
            at = source.randrange(7, len(raw))
            raw[at] = source.choice([0, 1, 0x0F, 0xF0, 0xFF, source.randrange(256)])
        found = run(bytes(raw), size=1 << 17)
        if found is None:
            asked += 1
        else:
            same += 1
            assert found == library(bytes(raw))
    assert same > 2000
    assert asked > 2000


@settings(max_examples=times(150))
@given(st.binary(max_size=60), st.sampled_from([0, INDEPENDENT]))
def test_any_bytes_as_a_block_are_what_the_library_makes_of_them(block: bytes, flags: int) -> None:
    data = frame(BLOCK, block, flags=flags)
    found = run(data, size=1 << 17)
    assert found is None or found == library(data)


def test_a_block_is_read_by_the_strictest_rules() -> None:
    assert run(frame(BLOCK)) == b"abcdeabcdfghij"
    # An offset of none, one before the block, and one before the frame.
    for offset in (b"\x00\x00", b"\x06\x00", b"\xff\xff"):
        assert run(frame(BLOCK.replace(b"\x05\x00", offset))) is None
    # Without a last sequence of literals, with too short a one, and with less than it declares.
    for end in (b"", b"\x00", b"\x40fghi", b"\x60fghij", b"\xf0"):
        assert run(frame(BLOCK[:8] + end)) is None
    # Blocks that stand alone do not reach into each other; others do.
    back = b"\x50ABCDE" + b"\x13\x00" + b"\x50fghij"
    assert run(frame(BLOCK, back)) is None
    linked = frame(BLOCK, back, flags=0)
    assert run(linked) == library(linked) == b"abcdeabcdfghij" + b"ABCDE" + b"abcd" + b"fghij"
    assert run(frame(BLOCK, flags=0) + frame(back, flags=0)) is None


def test_a_block_makes_no_more_than_its_frame_says() -> None:
    # Literals and one match that fill 64 KiB but for the last literals, or one byte more.
    for more in (0, 1):
        rest = 65536 - 5 - 5 - 4 - 15 + more
        lengths = b"\xff" * (rest // 255) + bytes([rest % 255])
        data = frame(b"\x5fabcde" + b"\x05\x00" + lengths + b"\x50fghij")
        whole = (b"abcde" * 14_000)[: 65531 + more] + b"fghij"
        assert run(data) == (None if more else whole)
        assert run(data.replace(header(INDEPENDENT), header(INDEPENDENT, 5))) == whole
    # Four literals behind a match that ends where the fifth would stand: the library refuses them.
    data = frame(b"\x5fabcde" + b"\x05\x00" + lengths + b"\x40fghi")
    assert run(data) is None
    assert library(data) is None
    # A match that begins less than 12 bytes before that end.
    for before in (10, 11, 12):
        length = before - 5
        rest = 65521 - length - 4 - 15
        lengths = b"\xff" * (rest // 255) + bytes([rest % 255])
        second = bytes([0x50 + length - 4]) + b"fghij" + b"\x05\x00"
        near = frame(b"\x5fabcde" + b"\x05\x00" + lengths + second + b"\x50klmno")
        assert run(near) == library(near)
        assert (run(near) is None) == (before < 12)
        large = near.replace(header(INDEPENDENT), header(INDEPENDENT, 5))
        assert len(run(large) or b"") == 65536
    stored = (65537 | RAW).to_bytes(4, "little") + bytes(65537) + bytes(4)
    assert run(header(INDEPENDENT) + stored) is None
    assert run(header(INDEPENDENT, 5) + stored) == bytes(65537)


@pytest.mark.parametrize(
    "data",
    [
        MAGIC + b"\x20\x40" + b"\x00" * 5,
        header(0x80),
        header(0x02),
        header(0x01),
        header(INDEPENDENT, 3),
        header(INDEPENDENT, 8),
        b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd",
        b"\x02" + header(INDEPENDENT)[1:],
    ],
)
def test_a_header_that_is_not_known_is_for_the_library(data: bytes) -> None:
    assert run(frame(BLOCK)) is not None
    assert run(data + frame(BLOCK)[7:]) is None
    assert run(data + bytes(4)) is None


def test_a_wrong_checksum_or_content_size_is_for_the_library() -> None:
    content = b"flexwire " * 40
    compressor = cramjam.lz4.Compressor(level=4, content_checksum=True, block_linked=False)
    compressor.compress(content)
    data = bytes(compressor.finish())
    assert data[4] & (CONTENT_CHECKSUM | BLOCK_CHECKSUM) == CONTENT_CHECKSUM | BLOCK_CHECKSUM
    size = int.from_bytes(data[7:11], "little")
    # The header's own, the block's, the content's.
    for at in (6, 11 + size, len(data) - 1):
        wrong = bytearray(data)
        wrong[at] ^= 1
        assert run(bytes(wrong)) is None
    body = (len(content) | RAW).to_bytes(4, "little") + content + bytes(4)
    flags = INDEPENDENT | CONTENT_SIZE
    assert run(header(flags, 4, len(content)) + body) == content
    assert run(header(flags, 4, len(content) + 1) + body) is None


def test_batches_of_a_table_are_passed_over_inflated_or_asked_for() -> None:
    sound = np.frombuffer(frame(BLOCK), np.uint8)
    begin, end = address(sound), address(sound) + len(sound)
    rows: list[dict[int, Any]] = [
        {L.B_ATTRIBUTES: 0},
        {L.B_ATTRIBUTES: LZ4, L.B_SKIP: 1},
        {L.B_ATTRIBUTES: LZ4},
        {L.B_ATTRIBUTES: LZ4, L.B_END: begin},
        {L.B_ATTRIBUTES: LZ4 | 0x08},
        {L.B_ATTRIBUTES: 4},
        {L.B_ATTRIBUTES: LZ4},
    ]
    table = np.zeros((len(rows), L.BATCH // 8), np.int64)
    for number, row in enumerate(rows):
        for word, value in ({L.B_START: begin, L.B_END: end} | row).items():
            table[number, word // 8] = value
    room = np.zeros(1000, np.uint8)
    words = np.zeros(F.INFLATE // 8, np.int64)
    for word, value in (
        (F.I_TABLE, address(table)),
        (F.I_ROWS, len(rows)),
        (F.I_ENOUGH, 1000),
        (F.I_TARGET, address(room)),
        (F.I_STOP, address(room) + 1000),
        (F.I_LIMIT, 1000),
    ):
        words[word // 8] = value
    inflate_batches = kernel("inflate_batches")
    assert inflate_batches is not None
    assert inflate_batches(address(words), 0, 0) == F.ASK
    assert words[F.I_FIRST // 8] == 5
    assert words[F.I_TOTAL // 8] == len(sound) + 14 + 14
    assert room[:28].tobytes() == b"abcdeabcdfghij" * 2
    words[F.I_FIRST // 8], words[F.I_ENOUGH // 8] = 6, 14 + words[F.I_TOTAL // 8]
    assert inflate_batches(address(words), 0, 0) == F.INFLATED
    assert words[F.I_FIRST // 8] == 7
    # With enough, nothing more is inflated.
    words[F.I_FIRST // 8] = 6
    assert inflate_batches(address(words), 0, 0) == F.INFLATED
    assert words[F.I_FIRST // 8] == 6
