"""What the columnar kernels stand on besides `flexwire.kernels.machine`: this machine's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types

from flexwire.kernels.machine import (
    copy_memory,
    intrinsic,
    load_int8,
    load_int32_native,
    load_word,
    make_loader,
    make_storer,
    part,
    store_int8,
    store_word,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD = types.int64
_Function = TypeVar("_Function", bound="Callable[..., Any]")


def inlined(function: _Function) -> _Function:
    """Compile a part of a kernel that is put wherever it is called: small, and run very often."""
    return cast("_Function", njit(forceinline=True)(function))


@intrinsic
def seldom(typing_context: Any) -> Any:
    """Tell the compiler that what stands here seldom runs, so that the rest gets the registers."""
    del typing_context

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature, arguments
        called = builder.module.globals.get("flexwire_seldom")
        if called is None:
            kind = ir.FunctionType(ir.VoidType(), [])
            called = ir.Function(builder.module, kind, "flexwire_seldom")
            called.linkage = "linkonce_odr"
            called.attributes.add("cold")
            called.attributes.add("noinline")
            inner = ir.IRBuilder(called.append_basic_block())
            inner.asm(kind, "", "", [], side_effect=True)
            inner.ret_void()
        builder.call(called, [])
        return context.get_dummy_value()

    return types.void(), code


CHUNK = 32


@intrinsic
def _copy_chunk(typing_context: Any, target: Any, source: Any) -> Any:
    """Copy `CHUNK` bytes, which are all loaded before any is stored."""
    del typing_context, target, source

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        kind = ir.VectorType(ir.IntType(64), CHUNK // 8).as_pointer()
        to, of = (builder.inttoptr(one, kind) for one in arguments)
        builder.store(builder.load(of, align=1), to, align=1)
        return context.get_dummy_value()

    return types.void(_WORD, _WORD), code


copy_chunk: Callable[[int, int], None] = _copy_chunk
load_int16_native = make_loader(16, swap=False, signed=True)
store_int16_native = make_storer(16, swap=False)
store_int32_native = make_storer(32, swap=False)


@part
def load_native(address: int, width: int) -> int:
    """Load a signed number of 1, 2, 4 or 8 bytes from a column."""
    if width == 4:
        return load_int32_native(address)
    if width == 8:
        return load_word(address)
    if width == 2:
        return load_int16_native(address)
    return load_int8(address)


@part
def store_native(address: int, width: int, value: int) -> None:
    """Store a number of 1, 2, 4 or 8 bytes into a column."""
    if width == 4:
        store_int32_native(address, value)
    elif width == 8:
        store_word(address, value)
    elif width == 2:
        store_int16_native(address, value)
    else:
        store_int8(address, value)


@inlined
def copy_bytes(target: int, source: int, count: int) -> None:
    """Copy bytes that do not overlap; a call of memmove costs more than copying a few of them."""
    if count > 16:
        copy_memory(target, source, count)
    elif count >= 8:
        last = load_word(source + count - 8)
        store_word(target, load_word(source))
        store_word(target + count - 8, last)
    elif count >= 4:
        last = load_int32_native(source + count - 4)
        store_int32_native(target, load_int32_native(source))
        store_int32_native(target + count - 4, last)
    else:
        for place in range(count):
            store_int8(target + place, load_int8(source + place))
