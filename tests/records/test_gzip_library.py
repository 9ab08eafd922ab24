"""The gzip library accepts exactly the streams that zlib accepts, with the same bytes."""

from __future__ import annotations

import gzip
import random
import zlib
from contextlib import suppress

import pytest

from flexwire.records import Compression, compression
from flexwire.records.compression import inflate_into
from tests.records.gzip_members import (
    END,
    codewords,
    dynamic,
    member,
    number,
    stored,
    to_bytes,
    written,
)
from tests.records.lz4_frames import contents
from tests.searching import times

ROOM = 1 << 18


def test_it_is_not_zlib_itself() -> None:
    assert compression.fast_zlib.__name__ == "zlib_ng.zlib_ng"


def run(data: bytes, size: int = 1 << 21) -> bytes | None:
    """Inflate into a buffer; return None if the reference must decide.

    Nothing is written after its end.
    """
    memory = bytearray(b"\xa5" * (size + 64))
    found = inflate_into(Compression.GZIP, memoryview(data), memoryview(memory)[:size])
    assert memory[size:] == b"\xa5" * 64
    return None if found < 0 else bytes(memory[:found])


def by_zlib(stream: bytes) -> bytes | None:
    """Inflate one whole stream; return None if zlib refuses it, or if bytes are missing or left
    over.
    """
    inflater = zlib.decompressobj(-15)
    try:
        content = inflater.decompress(stream, ROOM)
    except zlib.error:
        return None
    return content if inflater.eof and not inflater.unused_data else None


def texts(source: random.Random) -> list[bytes]:
    """Return short and long contents with few and many letters, and with short and long codes."""
    uneven = [0.5 ** (at % 24) for at in range(256)]
    return [
        *contents(source),
        bytes(source.choices(range(256), uneven, k=90_000)),
        bytes(source.choices(b"abcdefgh", k=4000)),
        b"".join(source.randbytes(20) * source.randrange(1, 9) for _ in range(300)),
    ]


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.slow
def test_the_room_may_end_with_the_content() -> None:
    source = random.Random(5)
    for content in texts(source):
        for data in written(content):
            for size in (len(content), len(content) + 1, len(content) + source.randrange(500)):
                assert run(data, size) == content
            if content:
                assert run(data, len(content) - 1) is None


@pytest.mark.long
@pytest.mark.slow
def test_a_member_cut_anywhere_or_followed_by_more_is_for_the_library() -> None:
    source = random.Random(6)
    content = b"flexwire " * 30 + source.randbytes(50)
    for data in written(content):
        assert run(data) == content
        for size in range(1, len(data)):
            assert run(data[:size]) is None
        for behind in (b"\x00", b"\x07", bytes(8), data[-8:], data):
            assert run(data + behind) is None


def test_a_wrong_header_or_trailer_is_for_the_reference() -> None:
    content = b"flexwire " * 40
    data = gzip.compress(content, mtime=0)
    assert run(data) == content
    for at in range(3):
        for bit in range(8):
            wrong = bytearray(data)
            wrong[at] ^= 1 << bit
            assert run(bytes(wrong)) is None
    # The time and the program that wrote the member do not matter.
    assert run(data[:4] + b"\xff" * 6 + data[10:]) == content
    for at in range(len(data) - 8, len(data)):
        wrong = bytearray(data)
        wrong[at] ^= 1
        assert run(bytes(wrong)) is None


# Streams without the CRC and the size of their content.


def is_the_same(stream: bytes) -> bool:
    """Return whether zlib accepts a stream; the library must have the same result."""
    expected = by_zlib(stream)
    with suppress(zlib.error):
        content = expected or zlib.decompressobj(-15).decompress(stream, ROOM)
        # The CRC and size are correct, so only the stream is wrong.
        assert run(member(stream, content), ROOM) == expected
        return expected is not None
    assert run(member(stream, b""), ROOM) is None
    return False


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
            # Most of the rules concern the beginning of a stream.
            at = source.randrange(min(len(raw), source.choice([90, len(raw)])))
            raw[at] = source.choice([raw[at] ^ 1 << source.randrange(8), source.randrange(256)])
        found = is_the_same(bytes(raw))
        taken, refused = taken + found, refused + (not found)
    assert min(taken, refused) > count // 4


def complete(source: random.Random, count: int) -> list[int]:
    """Return the lengths of a complete code with this many codewords, some of them the longest."""
    lengths = [0]
    while len(lengths) < count:
        short = [at for at, length in enumerate(lengths) if length < 15]
        at = source.choice([min(short), max(short), source.choice(short)])
        lengths[at] += 1
        lengths.append(lengths[at])
    return lengths


def placed(source: random.Random, lengths: list[int], count: int) -> list[int]:
    """Return these lengths for some of the symbols, and 0 for all other symbols."""
    found = [0] * count
    for at, length in zip(source.sample(range(count), len(lengths)), lengths, strict=True):
        found[at] = length
    return found


def without_rest(stream: bytes) -> bytes:
    """Return a stream without the bytes after its last block, as zlib sees it."""
    inflater = zlib.decompressobj(-15)
    with suppress(zlib.error):
        inflater.decompress(stream, ROOM)
    return stream[: len(stream) - len(inflater.unused_data)]


@pytest.mark.long
@pytest.mark.slow
def test_any_codes_are_what_zlib_makes_of_them() -> None:
    source = random.Random(8)
    taken: dict[int, int] = {}
    refused = 0
    # Distances that random bits can select.
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
        # Literals, some random bits, and an end.
        some = [one for one in words[0] if one < END] or [END]
        data = "".join(words[0][one] for one in source.choices(some, k=source.choice([0, 40, 400])))
        width = source.choice([0, 9, 99, 999])
        data += number(source.getrandbits(width), width)
        stream = before + to_bytes(dynamic(literals, distances, data + words[0].get(END, "") * 3))
        for cut in (len(stream), *source.sample(range(len(before), len(stream)), 3)):
            found = is_the_same(without_rest(stream[:cut]))
            longest = max(literals)
            taken[longest] = taken.get(longest, 0) + bool(found)
            refused += not found
    assert min(sum(taken.values()), refused) > count // 2
    # Some codewords do not fit into the first table.
    assert taken[15] > count // 20


def test_the_longest_codewords_one_after_the_other_are_read() -> None:
    # Two literals of 11 bits, a length of 15 and 5 more, a distance of 15 and 13 more, so that the
    # buffered bits end within any of them.
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
            assert run(member(stream, whole), ROOM) == whole
