"""Bytes folded to sixteen that have the same remainder, by carry-less products of whole vectors.

A vector has a pair of words for every sixteen bytes. Moved on by a number of bytes, a pair is the
sum of its words' products with two remainders: so what stands before is added to what follows, four
vectors side by side, and these at last to one, and its pairs to one.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types

from flexwire.kernels.machine import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

_CONFIG: Any = import_module("numba.core.config")


def features() -> set[str]:
    """Give what LLVM may use: of this processor, or of the kind that numba compiles for."""
    if _CONFIG.CPU_NAME is None and _CONFIG.CPU_FEATURES is None:
        return {name for name, has in get_host_cpu_features().items() if has}
    return {one[1:] for one in (_CONFIG.CPU_FEATURES or "").split(",") if one.startswith("+")}


FOLDS = {"vpclmulqdq", "avx512f"} <= features()
"""Whether kernels may fold; if not, what `fold` gives is of no use."""
# Vectors of half the width are folded no sooner than three stretches are done side by side.
_WIDTH, _VECTORS = 64, 4
BLOCK = _VECTORS * _WIDTH
"""So many bytes are folded in a turn."""

_WORD = types.int64
# numba has no types of its own for what makes a type.
_TUPLE: Any = types.UniTuple
_PAIR_OF_WORDS = _TUPLE(_WORD, 2)
# x^32 + … + 1 of CRC-32C, the lowest power in the highest bit, without x^32.
_POLYNOMIAL = 0x82F63B78
_PAIR = 16
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
# Which words of pairs are multiplied: both first, or both second.
_FIRSTS, _SECONDS = 0x00, 0x11
_PRODUCT = "llvm.x86.pclmulqdq.512"


def power(exponent: int) -> int:
    """Give x to a power, modulo the polynomial, the lowest power in the highest of 32 bits."""
    remainder = 1 << 31
    for _ in range(exponent):
        remainder = remainder >> 1 ^ (_POLYNOMIAL if remainder & 1 else 0)
    return remainder


def _moved(size: int) -> list[int]:
    """Give what both words of a pair are multiplied with to move it ``size`` bytes on.

    A product of a word and a 32-bit remainder stands 33 bits too high; the first word 64 more.
    """
    return [power(8 * size + 31), power(8 * size - 33)]


class _Folding:
    """Writes the code of `fold`."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._vector = ir.VectorType(_I64, _WIDTH // 8)
        kind = ir.FunctionType(self._vector, [self._vector, self._vector, _I8])
        known = builder.module.globals.get(_PRODUCT)
        self._product = known or ir.Function(builder.module, kind, _PRODUCT)

    def load(self, position: Any, offset: int) -> Any:
        """Give the vector so many bytes after a position."""
        at = self._builder.add(position, ir.Constant(_I64, offset))
        return self._builder.load(self._builder.inttoptr(at, self._vector.as_pointer()), align=1)

    def moved(self, vector: Any, factors: list[int]) -> Any:
        """Give a vector whose pairs are moved on."""
        by = ir.Constant(self._vector, factors)
        products = [
            self._builder.call(self._product, [vector, by, ir.Constant(_I8, which)])
            for which in (_FIRSTS, _SECONDS)
        ]
        return self._builder.xor(*products)

    def moved_all(self, vector: Any, size: int) -> Any:
        """Give a vector whose pairs are all moved so many bytes on."""
        return self.moved(vector, _moved(size) * (_WIDTH // _PAIR))

    def begun(self, crc: Any, position: Any) -> list[Any]:
        """Give the first vectors; a remainder is added to the first bytes."""
        vectors = [self.load(position, _WIDTH * one) for one in range(_VECTORS)]
        first = ir.Constant(_I32, 0)
        zero = ir.Constant(self._vector, None)
        before = self._builder.insert_element(zero, crc, first)
        return [self._builder.xor(vectors[0], before), *vectors[1:]]

    def folded(self, vectors: list[Any], position: Any, end: Any) -> list[Any]:
        """Give the vectors with the blocks from a position to the end added: none, or some."""
        builder = self._builder
        before = builder.block
        head = builder.append_basic_block("fold_head")
        body = builder.append_basic_block("fold_body")
        done = builder.append_basic_block("fold_done")
        builder.branch(head)
        builder.position_at_end(head)
        at = builder.phi(_I64)
        each = [builder.phi(self._vector) for _ in vectors]
        builder.cbranch(builder.icmp_signed("<", at, end), body, done)
        builder.position_at_end(body)
        added = [
            builder.xor(self.moved_all(one, BLOCK), self.load(at, _WIDTH * number))
            for number, one in enumerate(each)
        ]
        after = builder.add(at, ir.Constant(_I64, BLOCK))
        builder.branch(head)
        for phi, first, then in zip(
            [at, *each], [position, *vectors], [after, *added], strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(then, body)
        builder.position_at_end(done)
        return each

    def pair(self, vectors: list[Any]) -> tuple[Any, Any]:
        """Give the two words of the pair that vectors fold to."""
        builder, last = self._builder, vectors[-1]
        for number, one in enumerate(reversed(vectors[:-1])):
            last = builder.xor(last, self.moved_all(one, _WIDTH * (number + 1)))
        pairs = range(_WIDTH // _PAIR - 1)
        factors = [_moved(_PAIR * (len(pairs) - number)) for number in pairs]
        moved = self.moved(last, [*chain.from_iterable(factors), 0, 0])
        parts = [(moved, number) for number in pairs] + [(last, len(pairs))]
        first, second = (
            [builder.extract_element(one, ir.Constant(_I32, 2 * at + word)) for one, at in parts]
            for word in (0, 1)
        )
        return reduce(builder.xor, first), reduce(builder.xor, second)


@intrinsic
def _fold(typing_context: Any, crc: Any, position: Any, end: Any) -> Any:
    """Fold a remainder and the blocks after it, one at the least."""
    del typing_context, crc, position, end

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.return_type
        if not FOLDS:
            return context.make_tuple(builder, kind, [ir.Constant(_I64, 0)] * 2)
        crc, position, end = arguments
        folding = _Folding(builder)
        vectors = folding.begun(crc, position)
        second = builder.add(position, ir.Constant(_I64, BLOCK))
        pair = folding.pair(folding.folded(vectors, second, end))
        return context.make_tuple(builder, kind, pair)

    return _PAIR_OF_WORDS(_WORD, _WORD, _WORD), code


fold: Callable[[int, int, int], tuple[int, int]] = _fold
