"""For hand-made deflate streams, the gzip library applies each of zlib's rules."""

from __future__ import annotations

from typing import Any

from tests.each import each
from tests.records.gzip_members import (
    END,
    codewords,
    dynamic,
    member,
    number,
    stored,
    symbols,
    to_bytes,
)
from tests.records.test_gzip_library import by_zlib, run

FIXED = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8
# Complete codes for "a" and the end, for two distances, and for "a", the end, and matches of 3.
TWO = [0] * 97 + [1] + [0] * 158 + [1]
PAIR = [1, 1]
THREE = [0] * 97 + [1] + [0] * 158 + [2, 2]
# A length code for 0, 1, and all repeats.
REPEATS = [2, 2, *[0] * 14, 2, 3, 3]
WORDS = codewords(REPEATS)


def fixed(*parts: str) -> bytes:
    """Return the bytes of a last block in the fixed code."""
    return to_bytes("110" + "".join(parts) + symbols([END], FIXED))


A, MATCH = symbols([97], FIXED), symbols([257], FIXED)


# A stream and zlib's result, or None if zlib refuses the stream.
RULES: dict[str, tuple[bytes, bytes | None]] = {
    "a block of no type": (to_bytes("111"), None),
    "nothing": (fixed(), b""),
    "literals": (fixed(A * 3), b"aaa"),
    "a match": (fixed(A, MATCH + number(0, 5)), b"aaaa"),
    "a match before the beginning": (fixed(A, MATCH + number(1, 4) + "0"), None),
    "a match of nothing": (fixed(MATCH + number(0, 5)), None),
    "a distance of no meaning": (fixed(A, MATCH + "11110"), None),
    "the other": (fixed(A, MATCH + "11111"), None),
    "a distance of no meaning, with enough before it": (
        stored(bytes(40_000)) + fixed(MATCH + "11110" + number(0, 14)),
        None,
    ),
    "the longest distance": (
        stored(b"ab" + bytes(32_766)) + fixed(MATCH + "11101" + number((1 << 13) - 1, 13)),
        b"ab" + bytes(32_766) + b"ab\0",
    ),
    "a length of no meaning": (fixed(A, symbols([286], FIXED), "00000"), None),
    "another": (fixed(A, symbols([287], FIXED), "00000"), None),
    "the longest match": (fixed(A, symbols([285], FIXED) + "00000"), b"a" * 259),
    "the longest but one, in 5 bits more": (
        fixed(A, symbols([284], FIXED) + number(30, 5) + "00000"),
        b"a" * 258,
    ),
    "and that can be as long": (
        fixed(A, symbols([284], FIXED) + number(31, 5) + "00000"),
        b"a" * 259,
    ),
    "a stored block": (b"\x01\x03\x00\xfc\xffabc", b"abc"),
    "two": (b"\x00\x03\x00\xfc\xffabc\x01\x01\x00\xfe\xffd", b"abcd"),
    "a stored block of nothing": (b"\x01\x00\x00\xff\xff", b""),
    "a size that is not its complement": (b"\x01\x03\x00\xfc\xfeabc", None),
    "a stored block that is cut off": (b"\x01\xf3\x01\x0c\xfeabc", None),
    "two literals": (to_bytes(dynamic(TWO, PAIR, symbols([97, END], TWO))), b"a"),
    "no distance": (to_bytes(dynamic(TWO, [0], symbols([97, END], TWO))), b"a"),
    "one distance": (
        to_bytes(dynamic(THREE, [1], symbols([97, 257], THREE) + "0" + symbols([END], THREE))),
        b"aaaa",
    ),
    "of one distance the other": (
        to_bytes(dynamic(THREE, [1], symbols([97, 257], THREE) + "1" + symbols([END], THREE))),
        None,
    ),
    "of no distance one": (
        to_bytes(dynamic(THREE, [0], symbols([97, 257], THREE) + "0" + symbols([END], THREE))),
        None,
    ),
    "one distance of two bits": (to_bytes(dynamic(TWO, [2], symbols([END], TWO))), None),
    "three distances of two bits": (to_bytes(dynamic(TWO, [2] * 3, symbols([END], TWO))), None),
    "too many distances": (to_bytes(dynamic(TWO, [1] * 3, symbols([END], TWO))), None),
    "no end": (to_bytes(dynamic([1, 1, *[0] * 255], PAIR, "0" * 20)), None),
    "too few literals": (to_bytes(dynamic([*TWO[:256], 2], PAIR, "0" * 20)), None),
    "too many literals": (to_bytes(dynamic([1, *TWO[1:]], PAIR, "0" * 20)), None),
    "286 literals": (to_bytes(dynamic(TWO + [0] * 29, PAIR, symbols([END], TWO))), b""),
    "287": (to_bytes(dynamic(TWO + [0] * 30, PAIR, symbols([END], TWO))), None),
    "30 distances": (to_bytes(dynamic(TWO, PAIR + [0] * 28, symbols([END], TWO))), b""),
    "31": (to_bytes(dynamic(TWO, PAIR + [0] * 29, symbols([END], TWO))), None),
}


def repeating(lengths: str, data: str = "", **given: Any) -> bytes:
    """Return a block of this many literals and two distances with lengths written in WORDS."""
    counts = given.pop("counts", (257, 2))
    return to_bytes(dynamic([], [], data, lengths=lengths, code=REPEATS, counts=counts, **given))


def zeros(count: int) -> str:
    """Return zeros, in as few symbols as possible."""
    if count > 10:
        return WORDS[18] + number(min(count, 138) - 11, 7) + zeros(count - min(count, 138))
    return WORDS[17] + number(count - 3, 3) if count >= 3 else WORDS[0] * count


def again(count: int) -> str:
    """Return the repeat of the last length, 3 to 6 times."""
    return WORDS[16] + number(count - 3, 2)


ONE = WORDS[1]
# Lengths: 97 zeros, "a", a zero, the end, two distances.
PLAIN = zeros(97) + ONE + zeros(158) + ONE
DATA = "0" + "1"
RULES |= {
    "repeats": (repeating(PLAIN + ONE * 2, DATA), b"a"),
    "three distances as the last again": (repeating(PLAIN + again(3), DATA, counts=(257, 3)), None),
    "lengths that go over from literals to distances": (
        repeating(zeros(253) + ONE + zeros(2) + WORDS[1] + WORDS[1] + WORDS[1], DATA),
        b"\xfd",
    ),
    "a last length before the first": (
        repeating(again(3) + zeros(94) + ONE + zeros(158) + ONE * 3, DATA),
        None,
    ),
    "more repeated than there are": (repeating(PLAIN + ONE + again(3), DATA), None),
    "more zeros than there are": (repeating(PLAIN + ONE + zeros(3), DATA), None),
    "one more": (repeating(PLAIN + ONE + zeros(3), DATA, counts=(257, 3)), None),
    "many more": (repeating(PLAIN + ONE + zeros(138), DATA), None),
    "a code of lengths that is not complete": (
        to_bytes(dynamic(TWO, PAIR, DATA, code=[3, *[4] * 13, 0, 0, 0, 0, 0])),
        None,
    ),
}


@each("rule", RULES)
def test_a_rule_is_zlib_s(rule: tuple[bytes, bytes | None]) -> None:
    stream, content = rule
    assert by_zlib(stream) == content
    assert run(member(stream, content or b"")) == content
