"""C functions made of kernels, and where the objects of a class keep their fields."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

# Of Python's own headers: how a C function is called, and which objects the collector knows.
_METH_FASTCALL = 0x80
_HAS_GC = 1 << 14


class UnsuitableError(Exception):
    """A schema or class that the kernels do not take; Python's code does."""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kernel", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def c_function(kernel: int, name: str, shared: int, keeps: object) -> Callable[..., Any]:
    """Make the C function that runs a kernel.

    ``kernel`` is its address, ``shared`` that of the words all calls share, and ``keeps`` whatever
    these point to.
    """
    # The function's ``self``: CPython hands it to the kernel, which reads the address in it.
    itself = shared.to_bytes(8, "little")
    method = _MethodDef(name.encode(), kernel, _METH_FASTCALL, None)
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
    if made.__flags__ & _HAS_GC:
        raise UnsuitableError(f"{made.__name__} is looked after by the collector")
    # Distinct and never shared, so that each is known by its address.
    marks = [object() for _ in made.__struct_fields__]
    whole = made(**dict(zip(made.__struct_fields__, marks, strict=True)))
    size = type.__dict__["__basicsize__"].__get__(made)
    words = {
        ctypes.c_int64.from_address(id(whole) + offset).value: offset
        for offset in range(16, size, 8)
    }
    try:
        return {
            name: words[id(mark)] for name, mark in zip(made.__struct_fields__, marks, strict=True)
        }
    except KeyError:
        raise UnsuitableError(f"the fields of {made.__name__} are not where they were") from None
