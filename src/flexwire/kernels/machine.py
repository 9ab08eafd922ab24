"""What the kernels stand on: memory by address, and CPython's own functions.

Kernels work on raw addresses of 64 bits: numba's arrays would count references in every helper.
CPython's functions are found by their names in the running process, and are called with the GIL
held. Only functions of the public C API are used; of objects, only the type pointer, in 3.11 the
count of those that are never freed, of new tuples their items, of bytes length and content, and
of lists their length and items, which are where they are in every CPython from 3.11 to 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic as numba_intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

# Where objects keep what is read without a call: the type of any, the length and items of a list.
TYPE = 8
LIST_SIZE, LIST_ITEMS = 16, 24
# The length and the content of bytes; `flexwire.kernels.cache` sees that they are there.
_BYTES_SIZE, _BYTES_CONTENT = 16, 32

_WORD = types.int64
_DOUBLE = types.float64
_Function = TypeVar("_Function", bound="Callable[..., Any]")


def part(function: _Function) -> _Function:
    """Compile a part of a kernel. To a type checker it is the function that it is written as."""
    return cast("_Function", njit(function))


def kernel(function: _Function) -> _Function:
    """Compile a kernel of three words that gives one; its ``address`` is that of a C function."""
    return cast("_Function", cfunc(_WORD(_WORD, _WORD, _WORD), cache=True)(function))


def keyword_kernel(function: _Function) -> _Function:
    """Compile a kernel of four words, as a C function is called that takes keywords too."""
    return cast("_Function", cfunc(_WORD(_WORD, _WORD, _WORD, _WORD), cache=True)(function))


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function write the code for a call of it."""
    return cast("Callable[..., Any]", numba_intrinsic(function))


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., int]:
    return cast("Callable[..., int]", types.ExternalFunction(name, result(*arguments)))


py_incref = _function("Py_IncRef", types.void, _WORD)
py_decref = _function("Py_DecRef", types.void, _WORD)
_err_clear = _function("PyErr_Clear", types.void)
_err_occurred = _function("PyErr_Occurred", _WORD)
_err_matches = _function("PyErr_ExceptionMatches", types.int32, _WORD)
mem_malloc = _function("PyMem_Malloc", _WORD, _WORD)
mem_realloc = _function("PyMem_Realloc", _WORD, _WORD, _WORD)
mem_free = _function("PyMem_Free", types.void, _WORD)
long_from = _function("PyLong_FromLongLong", _WORD, _WORD)
long_as = _function("PyLong_AsLongLongAndOverflow", _WORD, _WORD, _WORD)
float_from = _function("PyFloat_FromDouble", _WORD, _DOUBLE)
float_as = cast("Callable[[int], float]", _function("PyFloat_AsDouble", _DOUBLE, _WORD))
unicode_decode = _function("PyUnicode_DecodeUTF8", _WORD, _WORD, _WORD, _WORD)
unicode_as_utf8 = _function("PyUnicode_AsUTF8AndSize", _WORD, _WORD, _WORD)
bytes_from = _function("PyBytes_FromStringAndSize", _WORD, _WORD, _WORD)
list_new = _function("PyList_New", _WORD, _WORD)
gc_untrack = _function("PyObject_GC_UnTrack", types.void, _WORD)
dict_new = _function("PyDict_New", _WORD)
dict_size = _function("PyDict_Size", _WORD, _WORD)
dict_next = _function("PyDict_Next", types.int32, _WORD, _WORD, _WORD, _WORD)
dict_set = _function("PyDict_SetItem", types.int32, _WORD, _WORD, _WORD)
object_malloc = _function("PyObject_Malloc", _WORD, _WORD)
object_free = _function("PyObject_Free", types.void, _WORD)
object_init = _function("PyObject_Init", _WORD, _WORD, _WORD)
# They give whether it was on.
gc_disable = _function("PyGC_Disable", types.int32)
gc_enable = _function("PyGC_Enable", types.int32)
type_alloc = _function("PyType_GenericAlloc", _WORD, _WORD, _WORD)
vectorcall = _function("PyObject_Vectorcall", _WORD, _WORD, _WORD, _WORD, _WORD)
tuple_new = _function("PyTuple_New", _WORD, _WORD)
tuple_size = _function("PyTuple_Size", _WORD, _WORD)
# Gives a reference that the tuple keeps; the items are not at the same place in every version.
tuple_get = _function("PyTuple_GetItem", _WORD, _WORD, _WORD)
# Takes the reference over.
tuple_set = _function("PyTuple_SetItem", types.int32, _WORD, _WORD, _WORD)
compare_memory = _function("memcmp", types.int32, _WORD, _WORD, _WORD)
rich_compare = _function("PyObject_RichCompareBool", types.int32, _WORD, _WORD, types.int32)


@part
def clear_error(exception: int) -> bool:
    """Forget the error that is set, if any; False if it is not an `Exception`, and stays set.

    A KeyboardInterrupt may come wherever Python code runs, and is the caller's. ``exception`` is
    the class.
    """
    if _err_occurred() != 0 and _err_matches(exception) == 0:
        return False
    _err_clear()
    return True


def make_loader(bits: int, *, swap: bool, signed: bool) -> Callable[[int], int]:
    """Make the intrinsic that loads ``bits`` at an address, big-endian where ``swap``."""

    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        del typing_context, address

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            kind = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            value = builder.load(pointer, align=1)
            if swap:
                value = builder.bswap(value)
            if bits == 64:
                return value
            extend = builder.sext if signed else builder.zext
            return extend(value, ir.IntType(64))

        return _WORD(_WORD), code

    return load


def make_storer(bits: int, *, swap: bool) -> Callable[[int, int], None]:
    """Make the intrinsic that stores the low ``bits`` of a word at an address."""

    @intrinsic
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        del typing_context, address, value

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del signature
            kind = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            stored = arguments[1] if bits == 64 else builder.trunc(arguments[1], kind)
            builder.store(builder.bswap(stored) if swap else stored, pointer, align=1)
            return context.get_dummy_value()

        return types.void(_WORD, _WORD), code

    return store


def make_local(size: int) -> Callable[[], int]:
    """Make the intrinsic that gives the address of ``size`` bytes, there until a kernel returns."""

    @intrinsic
    def local(typing_context: Any) -> Any:
        del typing_context

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature, arguments
            # Once in a call, even if this stands in a loop.
            with builder.goto_entry_block():
                words = builder.alloca(ir.ArrayType(ir.IntType(64), size // 8))
            return builder.ptrtoint(words, ir.IntType(64))

        return _WORD(), code

    return local


load_word = make_loader(64, swap=False, signed=True)
store_word = make_storer(64, swap=False)
load_int32_native = make_loader(32, swap=False, signed=True)
load_uint8 = make_loader(8, swap=False, signed=False)
load_int8 = make_loader(8, swap=False, signed=True)
load_int16 = make_loader(16, swap=True, signed=True)
load_uint16 = make_loader(16, swap=True, signed=False)
load_int32 = make_loader(32, swap=True, signed=True)
load_uint32 = make_loader(32, swap=True, signed=False)
load_int64 = make_loader(64, swap=True, signed=True)
store_int8 = make_storer(8, swap=False)
store_int16 = make_storer(16, swap=True)
store_int32 = make_storer(32, swap=True)
store_int64 = make_storer(64, swap=True)


@part
def bytes_size(value: int) -> int:
    """Give the length of an exact bytes object."""
    return load_word(value + _BYTES_SIZE)


@part
def bytes_address(value: int) -> int:
    """Give the address of the content of an exact bytes object."""
    return value + _BYTES_CONTENT


@intrinsic
def _call_kernel(typing_context: Any, kernel: Any, call: Any, structure: Any, value: Any) -> Any:
    """Call the kernel at an address, with three words.

    Structures hold structures; numba cannot cache functions that call each other in a circle, so
    the circle is closed through an address.
    """
    del typing_context, kernel, call, structure, value

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word, word, word])
        pointer = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(pointer, arguments[1:])

    return _WORD(_WORD, _WORD, _WORD, _WORD), code


@intrinsic
def _as_double(typing_context: Any, bits: Any) -> Any:
    """Give the double whose bits a word holds."""
    del typing_context, bits

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.DoubleType())

    return _DOUBLE(_WORD), code


@intrinsic
def _as_bits(typing_context: Any, number: Any) -> Any:
    """Give the bits of a double as a word."""
    del typing_context, number

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.IntType(64))

    return _WORD(_DOUBLE), code


@intrinsic
def copy_memory(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy ``count`` bytes; the ranges may overlap."""
    del typing_context, target, source, count

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        byte = ir.IntType(8).as_pointer()
        to = builder.inttoptr(arguments[0], byte)
        of = builder.inttoptr(arguments[1], byte)
        move = builder.module.declare_intrinsic("llvm.memmove", [byte, byte, ir.IntType(64)])
        builder.call(move, [to, of, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(_WORD, _WORD, _WORD), code


as_double: Callable[[int], float] = _as_double
as_bits: Callable[[float], int] = _as_bits
call_kernel: Callable[[int, int, int, int], int] = _call_kernel
