"""CRC-32C by the processor's own instruction, three stretches at a time; longer ones are folded.

The instruction takes eight bytes in three cycles, and begins another each cycle: three stretches of
a batch are done side by side, and their remainders put together as polynomials over GF(2). Where
the processor multiplies whole vectors so (`records/crc_folding.py`), most of a batch is folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types

from flexwire.kernels.machine import intrinsic, load_uint8, load_word, part
from flexwire.kernels.records.crc_folding import BLOCK, FOLDS, features, fold, power

if TYPE_CHECKING:
    from collections.abc import Callable

HAS_CRC = {"sse4.2", "pclmul"} <= features()
"""Whether kernels may use the instructions; if not, what `crc_of` gives is not a crc."""
# numba leaves out what a constant rules out.
_FOLDS = FOLDS

_WORD = types.int64
START = 0xFFFFFFFF
"""The remainder that a crc begins with, and what is added to the last."""
_LONG, _SHORT = 512, 64
# Three stretches are three places at once, which processors do not foresee.
_LINE, _AHEAD = 64, 4 * 3 * _LONG
_TO_READ, _KEEP, _DATA = 0, 3, 1


def _instruction(builder: Any, name: str, kind: Any, arguments: Any) -> Any:
    """Call an instruction of this processor; where it has none, 0, in code that is never run."""
    if not HAS_CRC:
        return ir.Constant(kind.return_type, None)
    known = builder.module.globals.get(name)
    return builder.call(known or ir.Function(builder.module, kind, name), arguments)


@intrinsic
def _step(typing_context: Any, crc: Any, word: Any) -> Any:
    """Give the remainder with eight bytes more."""
    del typing_context, crc, word

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64), ir.IntType(64)])
        return _instruction(builder, "llvm.x86.sse42.crc32.64.64", kind, arguments)

    return _WORD(_WORD, _WORD), code


@intrinsic
def _byte_step(typing_context: Any, crc: Any, byte: Any) -> Any:
    """Give the remainder with a byte more."""
    del typing_context, crc, byte

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        half, small = ir.IntType(32), ir.IntType(8)
        kind = ir.FunctionType(half, [half, small])
        narrow = [builder.trunc(arguments[0], half), builder.trunc(arguments[1], small)]
        remainder = _instruction(builder, "llvm.x86.sse42.crc32.32.8", kind, narrow)
        return builder.zext(remainder, ir.IntType(64))

    return _WORD(_WORD, _WORD), code


@intrinsic
def _multiply(typing_context: Any, left: Any, right: Any) -> Any:
    """Give the low 64 bits of a product without carries."""
    del typing_context, left, right

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        pair = ir.VectorType(ir.IntType(64), 2)
        kind = ir.FunctionType(pair, [pair, pair, ir.IntType(8)])
        first = ir.Constant(ir.IntType(32), 0)
        pairs = [builder.insert_element(ir.Constant(pair, [0, 0]), one, first) for one in arguments]
        operands = [*pairs, ir.Constant(ir.IntType(8), 0)]
        product = _instruction(builder, "llvm.x86.pclmulqdq", kind, operands)
        return builder.extract_element(product, first)

    return _WORD(_WORD, _WORD), code


@intrinsic
def _prefetch(typing_context: Any, position: Any) -> Any:
    """Have the cache line at an address fetched; an invalid address does no harm."""
    del typing_context, position

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        pointer, half = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, half, half, half])
        )
        hints = [ir.Constant(half, one) for one in (_TO_READ, _KEEP, _DATA)]
        builder.call(function, [builder.inttoptr(arguments[0], pointer), *hints])
        return context.get_dummy_value()

    return types.void(_WORD), code


step: Callable[[int, int], int] = _step
byte_step: Callable[[int, int], int] = _byte_step
multiply: Callable[[int, int], int] = _multiply
prefetch: Callable[[int], None] = _prefetch


def _ahead(size: int) -> int:
    """Give what moves a remainder ``size`` bytes on.

    A product of two 32-bit polynomials stands one bit too low, and `step` multiplies by x^32.
    """
    return power(8 * size - 33)


_LONG_ONCE, _LONG_TWICE = _ahead(_LONG), _ahead(2 * _LONG)
_SHORT_ONCE, _SHORT_TWICE = _ahead(_SHORT), _ahead(2 * _SHORT)


@part
def _three(crc: int, position: int, size: int, once: int, twice: int) -> int:
    """Give the remainder with three stretches of ``size`` bytes more."""
    second = third = 0
    stop = position + size
    while position < stop:
        crc = step(crc, load_word(position))
        second = step(second, load_word(position + size))
        third = step(third, load_word(position + 2 * size))
        position += 8
    return step(0, multiply(crc, twice) ^ multiply(second, once)) ^ third


@part
def add_bytes(crc: int, position: int, end: int) -> int:
    """Give the remainder with the bytes from ``position`` to ``end`` more."""
    while end - position >= 3 * _LONG:
        for line in range(_AHEAD, _AHEAD + 3 * _LONG, _LINE):
            prefetch(position + line)
        crc = _three(crc, position, _LONG, _LONG_ONCE, _LONG_TWICE)
        position += 3 * _LONG
    while end - position >= 3 * _SHORT:
        crc = _three(crc, position, _SHORT, _SHORT_ONCE, _SHORT_TWICE)
        position += 3 * _SHORT
    while end - position >= 8:
        crc = step(crc, load_word(position))
        position += 8
    while position < end:
        crc = byte_step(crc, load_uint8(position))
        position += 1
    return crc


@part
def crc_of(position: int, end: int) -> int:
    """Give the CRC-32C of the bytes from ``position`` to ``end``: a number of 32 bits, unsigned."""
    crc: int = START
    if _FOLDS and end - position >= BLOCK:
        stop = end - (end - position) % BLOCK
        first, second = fold(crc, position, stop)
        crc = step(step(0, first), second)
        position = stop
    return add_bytes(crc, position, end) ^ START
