"""The functions that read and write records, made from the kernels and the class of a record."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.kernels.objects.functions import (
    UnsuitableError,
    c_function,
    counts_all,
    in_order,
    slots_of,
    small_ints,
)
from flexwire.kernels.records import objects_layout as L  # noqa: N812 - a word in front of some fifty
from flexwire.kernels.records.iterator_class import iterator_class

if TYPE_CHECKING:
    from abc import ABCMeta
    from collections.abc import Callable, Mapping

    import msgspec


def record_function(
    kernel: int, made: type[msgspec.Struct], name: str, fallback: Callable[..., Any]
) -> Callable[..., Any]:
    """Make the C function that runs ``kernel``, an address, over records of a class.

    It takes the arguments of ``fallback``, by position, and hands them to it where it refuses.
    Raises `UnsuitableError` for a class whose objects the kernels cannot make.
    """
    words = _record_words(made, fallback)
    shared, kept = _laid_out(words, L.SHARED)
    return c_function(kernel, name, shared, (kept, made, fallback))


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
    shared, kept = _laid_out(_batch_words(made, batch, fallback), L.BATCH_SHARED)
    return c_function(kernel, name, shared, (kept, made, batch, fallback))


class IteratorKernels(NamedTuple):
    """The addresses of the kernels that an iterator over batches is made of."""

    iterate: int
    next_batch: int
    drop_iterator: int


def iterator_function(
    kernels: IteratorKernels,
    made: type[msgspec.Struct],
    batch: type[msgspec.Struct],
    base: ABCMeta,
    fallbacks: tuple[Callable[..., Any], Callable[[Any], Any]],
) -> Callable[..., Any]:
    """Make the C function that gives iterators over batches; their class counts as below ``base``.

    ``fallbacks`` are what it does with arguments that it refuses, and what gives the next batch of
    an iterator where the kernels are not sure of it, or raises. Else as `batch_function`.
    """
    begin, go_on = fallbacks
    each, kept = _laid_out(_batch_words(made, batch, go_on), L.BATCH_SHARED)
    kind = iterator_class(base, kernels.next_batch, kernels.drop_iterator)
    words = _batch_words(made, batch, begin) | {L.R_ITERATOR: id(kind), L.R_NEXT: each}
    shared, also_kept = _laid_out(words, L.BATCH_SHARED)
    keeps = (kept, also_kept, made, batch, kind, fallbacks)
    return c_function(kernels.iterate, "iterate", shared, keeps)


def _laid_out(words: Mapping[int, int], size: int) -> tuple[int, object]:
    """Put words in memory; gives their address, and what has to be kept meanwhile."""
    block = (ctypes.c_int64 * (size // 8))(*in_order(words, size))
    smalls = (ctypes.c_int64 * len(small_ints()))(*map(id, small_ints()))
    block[L.R_SMALL // 8] = ctypes.addressof(smalls)
    return ctypes.addressof(block), (block, smalls)


def _tuple_items() -> int:
    """Give where a tuple has its items, proved on one."""
    items = tuple.__basicsize__
    proof = (object(),)
    if ctypes.c_int64.from_address(id(proof) + items).value != id(proof[0]):
        raise UnsuitableError("tuples have their items elsewhere here")
    return items


def _batch_words(
    made: type[msgspec.Struct], batch: type[msgspec.Struct], fallback: Callable[..., Any]
) -> dict[int, int]:
    slots = slots_of(batch)
    return _record_words(made, fallback) | {
        L.R_BATCH: id(batch),
        L.R_ITERATOR: 0,
        L.R_NEXT: 0,
        **{L.FIELDS + 8 * index: slots[one] for index, one in enumerate(L.BATCH_FIELDS)},
    }


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
        L.R_TUPLE_ITEMS: _tuple_items(),
        L.R_TRUE: id(True),
        L.R_FALSE: id(False),
        L.R_COUNTED: int(counts_all()),
        L.R_SMALL: 0,
        **{L.R_KEYS + 8 * index: 0 for index in range(L.KEYS)},
    }
