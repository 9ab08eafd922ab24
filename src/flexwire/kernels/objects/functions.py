"""C functions made of kernels, and where the objects of a class keep their fields."""

from __future__ import annotations

import ctypes
import sys
import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.kernels.objects import layout as L  # noqa: N812 - a word in front of some few

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

# Of Python's own headers: how a C function is called, and which objects the collector knows.
_METH_FASTCALL, _METH_KEYWORDS = 0x80, 0x02
_HAS_GC = 1 << 14
# Something stands before the object: what it was given besides its fields, or its weak references.
_HAS_MORE = 1 << 2 | 1 << 3 | 1 << 4
_FIRST_SLOT = 16
# What is never freed is counted so high, from Python 3.12 on.
_NEVER_FREED = 1 << 29


class UnsuitableError(Exception):
    """A schema or class that the kernels do not take; Python's code does."""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kernel", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def c_function(
    kernel: int, name: str, shared: int, keeps: object, doc: str | None = None
) -> Callable[..., Any]:
    """Make the C function that runs a kernel.

    ``kernel`` is its address, ``shared`` that of the words all calls share, and ``keeps`` whatever
    these point to. One that is documented takes keywords; the text begins with its signature.
    """
    flags = _METH_FASTCALL | (_METH_KEYWORDS if doc else 0)
    # The function's ``self``: CPython hands it to the kernel, which reads the address in it.
    itself = shared.to_bytes(8, "little")
    method = _MethodDef(name.encode(), kernel, flags, doc.encode() if doc else None)
    # A C function may outlive all that knows it, the interpreter's own globals too, and reads its
    # definition even while it is freed. So what it stands on is never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((method, itself, keeps)))
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    made: Callable[..., Any] = new(ctypes.addressof(method), itself, None)
    return made


def in_order(words: Mapping[int, int], size: int) -> list[int]:
    """Give the words of a layout in the order of their offsets; all of them, or it is a mistake."""
    assert sorted(words) == list(range(0, size, 8))  # noqa: S101 - of the layout, not of the input
    return [words[at] for at in sorted(words)]


def slots_of(made: type[msgspec.Struct]) -> dict[str, int]:
    """Give the offset of each field in an object of the class, found and proved on one object.

    Raises `UnsuitableError` where the kernels could not make such an object.
    """
    if made.__flags__ & (_HAS_GC | _HAS_MORE):
        raise UnsuitableError(f"{made.__name__} is looked after by the collector")
    # Distinct and never shared, so that each is known by its address.
    marks = [object() for _ in made.__struct_fields__]
    named = dict(zip(made.__struct_fields__, marks, strict=True))
    slots = _found(made(**named), named)
    if sorted(slots.values()) != list(range(_FIRST_SLOT, size_of(made), 8)):
        raise UnsuitableError(f"objects of {made.__name__} hold more than their fields")
    return slots


def size_of(made: type) -> int:
    """Give the bytes of an object of a class."""
    size: int = type.__dict__["__basicsize__"].__get__(made)
    return size


def _found(whole: object, marks: Mapping[str, object]) -> dict[str, int]:
    """Give the offsets at which an object keeps what its attributes are known to be."""
    words = {
        ctypes.c_int64.from_address(id(whole) + offset).value: offset
        for offset in range(_FIRST_SLOT, size_of(type(whole)), 8)
    }
    try:
        return {name: words[id(mark)] for name, mark in marks.items()}
    except KeyError:
        raise UnsuitableError(f"the fields of {type(whole)} are not where they were") from None


@cache
def uuid_slots() -> dict[str, int]:
    """Give where a UUID keeps its number and whether it is safe, found on one object."""
    marks = {"int": object(), "is_safe": object()}
    whole = object.__new__(uuid.UUID)
    for name, mark in marks.items():
        object.__setattr__(whole, name, mark)
    return _found(whole, marks)


@cache
def small_ints() -> list[int]:
    """Give the ints that stay as long as the interpreter, which has each of them once."""
    numbers = list(range(L.SMALLEST, L.SMALLEST + L.SMALLS))
    stay = [None, True, False, *numbers]
    if any(int(str(one)) is not one for one in numbers) or (
        not counts_all() and any(sys.getrefcount(one) < _NEVER_FREED for one in stay)
    ):
        raise UnsuitableError("small ints come and go here")
    return numbers


def counts_all() -> bool:
    """Whether references are counted of objects too that are never freed: before Python 3.12."""
    return sys.version_info < (3, 12)
