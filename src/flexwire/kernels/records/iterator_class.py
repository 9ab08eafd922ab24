"""The class of iterators over batches that kernels make, as a C extension would make it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from flexwire.kernels.records import objects_layout as L  # noqa: N812 - a word in front of some few

if TYPE_CHECKING:
    from abc import ABCMeta

# Of Python's own headers: the flags of a class, what fills its slots, and the kinds of members.
_DEFAULT, _NOT_MADE_BY_CALLS = 1 << 18, 1 << 7
_DEALLOC, _ITER, _ITERNEXT, _MEMBERS, _DOC = 52, 62, 63, 72, 56
_OBJECT, _LONGLONG, _READONLY = 6, 17, 1
# What Python sees of an iterator, and what its code for the rest may set.
_SEEN = [
    ("position", _LONGLONG, L.I_POSITION, _READONLY),
    ("partial", _OBJECT, L.I_PARTIAL, _READONLY),
    ("_data", _OBJECT, L.I_DATA, _READONLY),
    ("_check_crc", _OBJECT, L.I_CHECK_CRC, _READONLY),
    ("_max_inflated", _OBJECT, L.I_MAX_INFLATED, _READONLY),
    ("_position", _LONGLONG, L.I_POSITION, 0),
    ("_partial", _OBJECT, L.I_PARTIAL, 0),
]


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def iterator_class(base: ABCMeta, next_batch: int, drop_iterator: int) -> type:
    """Make the class of the addresses of two kernels, and have it count as one below ``base``.

    Classes below one that Python wrote are the collector's, and these objects are not.
    """
    members = (_Member * (len(_SEEN) + 1))()
    for index, (name, kind, offset, flags) in enumerate(_SEEN):
        members[index] = _Member(name.encode(), kind, offset, flags, None)
    doc = ctypes.create_string_buffer((base.__doc__ or "").encode())
    itself: Any = ctypes.pythonapi.PyObject_SelfIter
    slots = (_Slot * 6)(
        _Slot(_DEALLOC, drop_iterator),
        _Slot(_ITER, ctypes.cast(itself, ctypes.c_void_p).value),
        _Slot(_ITERNEXT, next_batch),
        _Slot(_MEMBERS, ctypes.addressof(members)),
        _Slot(_DOC, ctypes.addressof(doc)),
    )
    called = f"{base.__module__}.{base.__qualname__}".encode()
    flags = _DEFAULT | _NOT_MADE_BY_CALLS
    spec = _Spec(called, L.ITERATOR, 0, flags, ctypes.addressof(slots))
    # Its objects may outlive all that knows it, so what it stands on is never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((members, doc, slots, called, spec)))
    new = ctypes.pythonapi.PyType_FromSpec
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p]
    made: type = new(ctypes.addressof(spec))
    base.register(made)
    return made
