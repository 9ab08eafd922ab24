"""CRC-32, the checksum of gzip, by carry-less products.

Four stretches of 16 bytes are folded side by side into the 64 bytes after them, then into one,
which is reduced to a remainder. Numbers are polynomials over GF(2), their lowest power in the
highest bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types

from flexwire.kernels.machine import intrinsic, load_uint8, part
from flexwire.kernels.records.crc import HAS_CRC
from flexwire.wire.frame_layout import CRC32_POLYNOMIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    Fold = Callable[[int, int, int], int]

_WORD, _HALF = ir.IntType(64), ir.IntType(32)
_LANE = ir.VectorType(_WORD, 2)
_ALL = 0xFFFFFFFF
_LANE_SIZE, _LANES = 16, 4
_LOW, _HIGH = 0x00, 0x11


def _power(exponent: int) -> int:
    """Give x to a power, modulo the polynomial."""
    remainder = 1 << 31
    for _ in range(exponent):
        remainder = remainder >> 1 ^ (CRC32_POLYNOMIAL if remainder & 1 else 0)
    return remainder


def _quotient() -> int:
    """Give x^64 divided by the polynomial, the lowest power in the highest of 33 bits."""
    divisor = int(f"{CRC32_POLYNOMIAL:032b}1"[::-1], 2)
    rest, quotient = 1 << 64, 0
    for shift in range(32, -1, -1):
        if rest >> (shift + 32) & 1:
            rest ^= divisor << shift
            quotient |= 1 << shift
    return int(f"{quotient:033b}"[::-1], 2)


def _ahead(size: int) -> tuple[int, int]:
    """Give what moves the halves of 16 bytes on by ``size`` bytes; products stand a bit too low."""
    return _power(8 * size + 32) << 1, _power(8 * size - 32) << 1


class _Code:
    """Writes the code of `_fold`."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        kind = ir.FunctionType(_LANE, [_LANE, _LANE, ir.IntType(8)])
        known = builder.module.globals.get("llvm.x86.pclmulqdq")
        self._product = known or ir.Function(builder.module, kind, "llvm.x86.pclmulqdq")

    def load(self, position: Any) -> Any:
        pointer = self._builder.inttoptr(position, _LANE.as_pointer())
        return self._builder.load(pointer, align=1)

    def multiply(self, left: Any, right: Any, halves: int) -> Any:
        return self._builder.call(self._product, [left, right, ir.Constant(ir.IntType(8), halves)])

    def onto(self, lane: Any, size: int, after: Any) -> Any:
        """Move a lane on by so many bytes, and add it to what is there."""
        ahead = ir.Constant(_LANE, list(_ahead(size)))
        low, high = (self.multiply(lane, ahead, one) for one in (_LOW, _HIGH))
        return self._builder.xor(self._builder.xor(low, high), after)

    def lane(self, low: Any, high: Any) -> Any:
        made = self._builder.insert_element(ir.Constant(_LANE, [0, 0]), low, ir.Constant(_HALF, 0))
        return self._builder.insert_element(made, high, ir.Constant(_HALF, 1))

    def half(self, lane: Any, which: int) -> Any:
        return self._builder.extract_element(lane, ir.Constant(_HALF, which))

    def turns(self, lanes: list[Any], position: Any, end: Any) -> tuple[list[Any], Any]:
        """Fold all lanes into what follows, as long as there is enough; gives where it stopped."""
        builder, size = self._builder, _LANE_SIZE * len(lanes)
        before = builder.block
        test, body, done = (builder.append_basic_block() for _ in range(3))
        builder.branch(test)
        builder.position_at_end(test)
        now = [builder.phi(_LANE) for _ in lanes]
        at = builder.phi(_WORD)
        has_more = builder.icmp_signed(">=", builder.sub(end, at), ir.Constant(_WORD, size))
        builder.cbranch(has_more, body, done)
        builder.position_at_end(body)
        places = [
            builder.add(at, ir.Constant(_WORD, _LANE_SIZE * number)) for number in range(len(lanes))
        ]
        folded = [
            self.onto(one, size, self.load(place)) for one, place in zip(now, places, strict=True)
        ]
        further = builder.add(at, ir.Constant(_WORD, size))
        builder.branch(test)
        for phi, first, later in zip(
            [*now, at], [*lanes, position], [*folded, further], strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(later, body)
        builder.position_at_end(done)
        return now, at

    def reduce(self, lane: Any) -> Any:
        """Give the remainder of a lane, in the low half of a word."""
        builder, mask = self._builder, ir.Constant(_WORD, _ALL)
        zero = ir.Constant(_WORD, 0)

        def product(left: Any, right: int) -> Any:
            return self.multiply(self.lane(left, zero), ir.Constant(_LANE, [right, 0]), _LOW)

        # 128 bits to 96, these to 64.
        moved = product(self.half(lane, 0), _ahead(_LANE_SIZE)[1])
        low = builder.xor(self.half(moved, 0), self.half(lane, 1))
        high = self.half(moved, 1)
        moved = self.half(product(builder.and_(low, mask), _power(64) << 1), 0)
        shifted = builder.or_(
            builder.lshr(low, ir.Constant(_WORD, 32)), builder.shl(high, ir.Constant(_WORD, 32))
        )
        low = builder.xor(moved, shifted)
        # By the quotient: what to take away is a multiple of the polynomial.
        times = builder.and_(self.half(product(builder.and_(low, mask), _quotient()), 0), mask)
        taken = self.half(product(times, CRC32_POLYNOMIAL << 1 | 1), 0)
        return builder.lshr(builder.xor(low, taken), ir.Constant(_WORD, 32))


@intrinsic
def _fold(typing_context: Any, crc: Any, position: Any, end: Any) -> Any:
    """Give the remainder with all whole 16 bytes from a position on; there are 64 at least."""
    del typing_context, crc, position, end

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        if not HAS_CRC:
            return ir.Constant(_WORD, 0)
        code, (crc, position, end) = _Code(builder), arguments
        lanes = [
            code.load(builder.add(position, ir.Constant(_WORD, _LANE_SIZE * number)))
            for number in range(_LANES)
        ]
        lanes[0] = builder.xor(lanes[0], code.lane(crc, ir.Constant(_WORD, 0)))
        first = builder.add(position, ir.Constant(_WORD, _LANE_SIZE * _LANES))
        lanes, at = code.turns(lanes, first, end)
        one = lanes[0]
        for lane in lanes[1:]:
            one = code.onto(one, _LANE_SIZE, lane)
        (one,), _ = code.turns([one], at, end)
        return code.reduce(one)

    word = types.int64
    return word(word, word, word), code


fold: Fold = _fold


@part
def crc32_of(position: int, end: int) -> int:
    """Give the CRC-32 of the bytes from ``position`` to ``end``: a number of 32 bits, unsigned.

    It is not a crc where the processor lacks the instruction, as `HAS_CRC` says.
    """
    crc: int = _ALL
    size = end - position
    if size >= _LANE_SIZE * _LANES:
        crc = fold(crc, position, end)
        position = end - size % _LANE_SIZE
    while position < end:
        crc ^= load_uint8(position)
        for _ in range(8):
            crc = crc >> 1 ^ (CRC32_POLYNOMIAL & -(crc & 1))
        position += 1
    return crc ^ _ALL
