"""The functions that read and write records, made from the kernels and the class of a record."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from flexwire.kernels.objects.functions import c_function, in_order, slots_of
from flexwire.kernels.records import objects_layout as L  # noqa: N812 - a word in front of some twenty

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec


def record_function(
    kernel: int, made: type[msgspec.Struct], name: str, fallback: Callable[..., Any]
) -> Callable[..., Any]:
    """Make the C function that runs ``kernel``, an address, over records of a class.

    It takes the arguments of ``fallback``, by position, and hands them to it where it refuses.
    Raises `UnsuitableError` for a class whose objects the kernels cannot make.
    """
    words = _record_words(made, fallback)
    shared = (ctypes.c_int64 * (L.SHARED // 8))(*in_order(words, L.SHARED))
    return c_function(kernel, name, ctypes.addressof(shared), (shared, made, fallback))


def batch_function(
    kernel: int,
    made: type[msgspec.Struct],
    batch: type[msgspec.Struct],
    name: str,
    fallback: Callable[..., Any],
) -> Callable[..., Any]:
    """Make the C function that runs ``kernel`` over batches of a class, and records of another.

    It is as those that `record_function` makes.
    """
    slots = slots_of(batch)
    words = _record_words(made, fallback) | {
        L.R_TRUE: id(True),
        L.R_FALSE: id(False),
        L.R_BATCH: id(batch),
        **{L.FIELDS + 8 * index: slots[one] for index, one in enumerate(L.BATCH_FIELDS)},
    }
    shared = (ctypes.c_int64 * (L.BATCH_SHARED // 8))(*in_order(words, L.BATCH_SHARED))
    return c_function(kernel, name, ctypes.addressof(shared), (shared, made, batch, fallback))


def _record_words(made: type[msgspec.Struct], fallback: Callable[..., Any]) -> dict[int, int]:
    slots = slots_of(made)
    return {
        L.R_NONE: id(None),
        L.R_BYTES: id(bytes),
        L.R_INT: id(int),
        L.R_LIST: id(list),
        L.R_TUPLE: id(tuple),
        L.R_CLASS: id(made),
        L.R_FALLBACK: id(fallback),
        L.R_EXCEPTION: id(Exception),
        L.R_OFFSET: slots["offset"],
        L.R_TIMESTAMP: slots["timestamp"],
        L.R_KEY: slots["key"],
        L.R_VALUE: slots["value"],
        L.R_HEADERS: slots["headers"],
    }
