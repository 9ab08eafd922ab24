"""The gzip kernel inflates what zlib inflates, to the same bytes, or asks for it."""

from __future__ import annotations

import ctypes
import gzip
import random
import zlib
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pytest

from flexwire.columnar import records
from flexwire.columnar.program import address
from flexwire.columnar.records import decode_records
from flexwire.kernels.engine import kernel
from flexwire.kernels.records import inflating_layout as F  # noqa: N812 - as in the room
from flexwire.records import Record, encode_batch
from flexwire.wire.batch_layout import GZIP
from tests.columnar.gzip_members import (
    END,
    codewords,
    dynamic,
    member,
    number,
    stored,
    to_bytes,
    written,
)
from tests.columnar.inflated import (
    ROOM,
    by_blocks,
    by_zlib,
    inflated_by_kernel,
    needs_gzip,
    needs_parts,
)
from tests.columnar.lz4_frames import contents
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_gzip
run = partial(inflated_by_kernel, GZIP)


def texts(source: random.Random) -> list[bytes]:
    """Give contents of few letters and of many, short and long, whose codes are short and long."""
    uneven = [0.5 ** (at % 24) for at in range(256)]
    return [
        *contents(source),
        bytes(source.choices(range(256), uneven, k=90_000)),
        bytes(source.choices(b"abcdefgh", k=4000)),
        b"".join(source.randbytes(20) * source.randrange(1, 9) for _ in range(300)),
    ]


@pytest.mark.slow
def test_every_member_that_zlib_writes_is_inflated() -> None:
    source = random.Random(4)
    kinds = set()
    for content in texts(source):
        for one in written(content):
            assert run(one) == content
            kinds.add(one[10] >> 1 & 3)
        assert run(gzip.compress(content)) == content
    assert kinds == {0, 1, 2}


@pytest.mark.slow
def test_the_room_and_the_limit_may_end_with_the_content() -> None:
    source = random.Random(5)
    for content in texts(source):
        for data in written(content):
            for size in (len(content), len(content) + 1, len(content) + source.randrange(500)):
                assert run(data, size=size) == content
                assert run(data, limit=size) == content
            if content:
                assert run(data, size=len(content) - 1) is None
                assert run(data, limit=len(content) - 1) is None


def test_a_member_cut_anywhere_or_followed_by_more_is_for_the_library() -> None:
    source = random.Random(6)
    content = b"flexwire " * 30 + source.randbytes(50)
    for data in written(content):
        assert run(data) == content
        for size in range(1, len(data)):
            assert run(data[:size]) is None
        for behind in (b"\x00", b"\x07", bytes(8), data[-8:], data):
            assert run(data + behind) is None


def test_a_header_with_flags_and_a_wrong_trailer_are_for_the_library() -> None:
    content = b"flexwire " * 40
    data = gzip.compress(content, mtime=0)
    assert data[3] == 0, "no flags"
    assert run(data) == content
    for at in range(4):
        for bit in range(8):
            wrong = bytearray(data)
            wrong[at] ^= 1 << bit
            assert run(bytes(wrong)) is None
    # When it was written, and by what, is no one's concern.
    assert run(data[:4] + b"\xff" * 6 + data[10:]) == content
    for at in range(len(data) - 8, len(data)):
        wrong = bytearray(data)
        wrong[at] ^= 1
        assert run(bytes(wrong)) is None


# Streams, without what says of their content what it is.


def is_the_same(stream: bytes) -> bool | None:
    """Whether zlib takes a stream, and the kernel then makes the same of it; None if it asks."""
    expected, found = by_zlib(stream), by_blocks(stream)
    assert by_blocks(stream, behind=64) == found
    if found is None:
        return None if expected is not None else False
    assert found == expected
    assert run(member(stream, found)) == found
    return True


@pytest.mark.slow
def test_whatever_is_damaged_is_what_zlib_makes_of_it() -> None:
    source = random.Random(7)
    short = [content[: source.choice([30, 300, 3000])] for content in texts(source)]
    streams = [one[10:-8] for content in short for one in written(content)]
    taken = refused = 0
    count = times(6000)
    for _ in range(count):
        raw = bytearray(source.choice(streams))
        for _ in range(source.choice([1, 1, 2, 4])):
            # Most of the rules are about what stands at the beginning.
            at = source.randrange(min(len(raw), source.choice([90, len(raw)])))
            raw[at] = source.choice([raw[at] ^ 1 << source.randrange(8), source.randrange(256)])
        found = is_the_same(bytes(raw))
        assert found is not None, raw.hex()
        taken, refused = taken + found, refused + (not found)
    assert min(taken, refused) > count // 4


def complete(source: random.Random, count: int) -> list[int]:
    """Give the lengths of a complete code with so many codewords, some as long as may be."""
    lengths = [0]
    while len(lengths) < count:
        short = [at for at, length in enumerate(lengths) if length < 15]
        at = source.choice([min(short), max(short), source.choice(short)])
        lengths[at] += 1
        lengths.append(lengths[at])
    return lengths


def placed(source: random.Random, lengths: list[int], count: int) -> list[int]:
    """Give some symbols lengths, the others none."""
    found = [0] * count
    for at, length in zip(source.sample(range(count), len(lengths)), lengths, strict=True):
        found[at] = length
    return found


def without_rest(stream: bytes) -> bytes:
    """Give a stream without what stands after its last block, as zlib sees it."""
    inflater = zlib.decompressobj(-15)
    with suppress(zlib.error):
        inflater.decompress(stream, ROOM)
    return stream[: len(stream) - len(inflater.unused_data)]


@pytest.mark.slow
def test_any_codes_are_what_zlib_makes_of_them() -> None:
    source = random.Random(8)
    taken: dict[int, int] = {}
    refused = 0
    # What random bits find by any distance.
    before = stored(source.randbytes(33_000))
    count = times(600)
    for _ in range(count):
        many, few = source.randrange(257, 287), source.randrange(1, 31)
        literals = placed(source, complete(source, source.randrange(2, 257)), many)
        if source.random() < 0.95 and not literals[END]:
            at = next(at for at, length in enumerate(literals) if length)
            literals[at], literals[END] = 0, literals[at]
        distances = placed(source, complete(source, source.randrange(1, few + 1)), few)
        if source.random() < 0.2:
            distances = [0] * few
            distances[source.randrange(few)] = source.choice([0, 1, 2])
        words = [codewords(literals), codewords(distances)]
        # Literals, some any bits, and an end.
        some = [one for one in words[0] if one < END] or [END]
        data = "".join(words[0][one] for one in source.choices(some, k=source.choice([0, 40, 400])))
        width = source.choice([0, 9, 99, 999])
        data += number(source.getrandbits(width), width)
        stream = before + to_bytes(dynamic(literals, distances, data + words[0].get(END, "") * 3))
        for cut in (len(stream), *source.sample(range(len(before), len(stream)), 3)):
            found = is_the_same(without_rest(stream[:cut]))
            # One codeword for the end alone is no code to the kernel.
            assert found is not None or sum(map(bool, literals)) == 1
            longest = max(literals)
            taken[longest] = taken.get(longest, 0) + bool(found)
            refused += not found
    assert min(sum(taken.values()), refused) > count // 2
    # Some that the first table has no place for.
    assert taken[15] > count // 20


def test_the_longest_codewords_one_after_the_other_are_read() -> None:
    # Two literals of 11 bits, a length of 15 and 5 more, a distance of 15 and 13 more, so that what
    # is at hand ends within any of them.
    literals, distances = [0] * 286, [0] * 30
    for length, symbol in enumerate([END, *range(9), 97, *range(9, 13), 284], 1):
        literals[symbol] = min(length, 15)
    for length, symbol in enumerate([*range(14), 28, 29], 1):
        distances[symbol] = min(length, 15)
    words = [codewords(literals), codewords(distances)]
    before = random.Random(11).randbytes(32_768)
    for each in (1, 2, 3, 5):
        data = ""
        for extra in range(0, 31, each):
            data += words[0][97] * (extra % 3) + words[0][284] + number(extra, 5)
            data += words[1][29] + number(8191 - 97 * extra, 13)
        stream = stored(before) + to_bytes(dynamic(literals, distances, data + words[0][END]))
        assert is_the_same(stream)


@pytest.mark.slow
def test_every_match_is_copied_as_zlib_copies_it() -> None:
    source = random.Random(9)
    before = source.randbytes(32768)
    for distance in (*range(1, 80), 255, 256, 257, 16384, 16385, 32767, 32768):
        data = before[-max(distance, 3) :]
        for length in (*range(3, 90), 256, 257, 258):
            made = zlib.compressobj(9, zlib.DEFLATED, -15)
            whole = data + bytes((data[-distance:] * 258)[:length])
            stream = made.compress(whole) + made.flush()
            assert by_blocks(stream) == whole


@needs_parts
def test_a_crc_is_zlib_s() -> None:
    from flexwire.kernels.records.crc32 import crc32_of  # noqa: PLC0415 - a wheel cannot

    source = random.Random(10)
    data = np.frombuffer(source.randbytes(5000), np.uint8)
    for size in (*range(400), 1023, 1024, 1025, 4999):
        for start in range(min(size, 3) + 1):
            begin = address(data)
            expected = zlib.crc32(data[start:size].tobytes())
            assert crc32_of(begin + start, begin + size) == expected


def test_without_the_instruction_gzip_is_for_the_library() -> None:
    batches = [
        encode_batch([Record(at, at, b"k", b"v" * at, []) for at in range(9)], compression=one)
        for one in ("lz4", "gzip", "lz4", "gzip")
    ]
    asked = 0

    def lacking(name: str) -> Callable[[int, int, int], int] | None:
        found = kernel(name)

        def run_without(call: int, _unused: int, _also_unused: int) -> int:
            nonlocal asked
            asked += 1
            words = np.ctypeslib.as_array((ctypes.c_int64 * (F.INFLATE // 8)).from_address(call))
            words[F.I_GZIP // 8] = 0
            return F.ASK

        return run_without if name == "inflate_batches" else found

    data = b"".join(batches)
    with patch.object(records, "kernel", lacking):
        assert decode_records(data).equals(decode_records(data))
    # Once for each of lz4, in two readings, and never for gzip.
    assert asked == 4


def test_it_is_the_kernel_that_inflates_gzip() -> None:
    data = encode_batch([Record(0, 0, None, b"value", [])], compression="gzip")
    with patch.object(records, "inflate_into", side_effect=AssertionError):
        assert decode_records(data)["value"].to_pylist() == [b"value"]
