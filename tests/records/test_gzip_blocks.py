"""Blocks of every kind, in sequence and at every bit offset, inflate as in zlib."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.records.gzip_members import END, codewords, dynamic, member, number, to_bytes
from tests.records.test_gzip_library import by_zlib, run
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Sequence

FIXED = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8
# RFC 1951, 3.2.5: the lowest length or distance of each symbol, and its number of extra bits.
LENGTHS = [(least, 0) for least in range(3, 11)]
LENGTHS += [((4 + at % 4 << at // 4) + 3, at // 4) for at in range(4, 24)] + [(258, 0)]
DISTANCES = [(least, 0) for least in range(1, 5)]
DISTANCES += [((2 + at % 2 << at // 2) + 1, at // 2) for at in range(2, 28)]


def lengths_of(source: random.Random, symbols: Sequence[int], count: int) -> list[int]:
    """Return the codewords of a complete code for these symbols, and none for other symbols."""
    lengths = [0]
    while len(lengths) < len(symbols):
        at = source.choice([at for at, length in enumerate(lengths) if length < 15])
        lengths[at] += 1
        lengths.append(lengths[at])
    given = dict(zip(source.sample(symbols, len(symbols)), lengths, strict=True))
    return [given.get(symbol, 0) for symbol in range(count)]


class Stream:
    """The bits of a stream, and what they inflate to."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.bits = ""
        self.content = bytearray()
        self.stored_at = set[int]()

    def block(self, *, is_last: bool) -> None:
        """Write a random block of the given kind."""
        start = len(self.bits)
        self._source.choice([self._stored, self._fixed, self._dynamic])()
        self.bits = f"{self.bits[:start]}{int(is_last)}{self.bits[start + 1 :]}"

    def _stored(self) -> None:
        self.stored_at.add(len(self.bits) % 8)
        # After the longest content, a whole window precedes these bytes.
        size = self._source.choice([0, 0, 0, 1, 3, 40, 300, 33_000])
        content = self._source.randbytes(size)
        self.bits += "000" + "0" * (-(len(self.bits) + 3) % 8)
        self.bits += number(size, 16) + number(size ^ 0xFFFF, 16)
        self.bits += "".join(number(byte, 8) for byte in content)
        self.content += content

    def _fixed(self) -> None:
        self.bits += "010"
        self._symbols(FIXED, [5] * 30)

    def _dynamic(self) -> None:
        chance = self._source
        some = [*chance.sample(range(256), chance.choice([1, 2, 30])), END]
        matches = chance.sample(range(257, 286), chance.choice([0, 1, 29]))
        literals = lengths_of(chance, some + matches, 286)
        used = chance.sample(range(30), chance.choice([1, 2, 7, 30]))
        # A code of one distance is incomplete, but its codeword still takes a bit.
        distances = lengths_of(chance, used, 30)
        if len(used) == 1:
            distances[used[0]] = 1
        self.bits += dynamic(literals, distances)
        self._symbols(literals, distances)

    def _symbols(self, literals: Sequence[int], distances: Sequence[int]) -> None:
        chance, words, far = self._source, codewords(literals), codewords(distances)
        for _ in range(chance.choice([0, 1, 2, 9, 60])):
            symbol = chance.choice([one for one in words if one != END and one < 286])
            least, extra = DISTANCES[chance.choice([*far])] if symbol > END else (0, 0)
            reached = least + chance.getrandbits(extra) if extra else least
            if reached > len(self.content):
                continue
            self.bits += words[symbol]
            if symbol < END:
                self.content.append(symbol)
                continue
            self._match(symbol, reached, far)
        self.bits += words[END]

    def _match(self, symbol: int, reached: int, far: dict[int, str]) -> None:
        least, extra = LENGTHS[symbol - END - 1]
        more = self._source.getrandbits(extra) if extra else 0
        self.bits += number(more, extra)
        place = max(at for at, (low, _) in enumerate(DISTANCES) if low <= reached)
        low, width = DISTANCES[place]
        self.bits += far[place] + number(reached - low, width)
        for _ in range(least + more):
            self.content.append(self.content[-reached])


@pytest.mark.long
@pytest.mark.slow
def test_blocks_of_every_kind_follow_each_other_at_every_bit() -> None:
    source = random.Random(12)
    stored_at = set[int]()
    longest = 0
    for _ in range(times(60)):
        made = Stream(source)
        count = source.choice([1, 2, 5, 30])
        for left in reversed(range(count)):
            made.block(is_last=left == 0)
        stream, content = to_bytes(made.bits), bytes(made.content)
        assert by_zlib(stream) == content, "the stream is as it is meant"
        assert run(member(stream, content), size=len(content)) == content
        if content:
            assert run(member(stream, content), size=len(content) - 1) is None
        stored_at |= made.stored_at
        longest = max(longest, len(content))
    assert stored_at == set(range(8))
    assert longest > 33_000
