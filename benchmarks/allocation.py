"""What CPython takes to make the objects of a message and to free them: the floor under a decoder.

`bare` gives a function that makes as many objects of each kind, of the same values, as decoding
made, each by the C functions that the kernels call. They are made kind by kind, so that nothing is
decided for each of them, and no byte of a message is read. What a decoder takes above it is the
decoder's own.
"""

from __future__ import annotations

import ctypes
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

from flexwire.kernels.machine import (
    LIST_ITEMS,
    bytes_address,
    bytes_from,
    dict_new,
    gc_disable,
    gc_enable,
    gc_untrack,
    kernel,
    list_new,
    load_word,
    part,
    py_incref,
    store_word,
    unicode_decode,
)
from flexwire.kernels.objects import layout
from flexwire.kernels.objects.functions import c_function, size_of, small_ints
from flexwire.kernels.objects.making import make_empty, make_integer, make_uuid, take
from flexwire.kernels.objects.program import ObjectProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The kinds of objects, and the words of each: what it is made of.
INT, LASTING, STRUCT, LIST, DEFAULT, DICT, TEXT, BYTES, UUID = range(9)
# The words of a recipe: of all calls, how many groups and objects, whether the collector is kept
# off as the kernels do, and a call's own words; groups follow, each a kind, a count and its words.
R_TOTAL, R_GROUPS, R_LARGE, R_CALL = range(8, 40, 8)
R_FIRST = R_CALL + layout.CALL


@part
def fill_often(shared: int, kind: int, items: int, words: int, count: int) -> bool:
    """Make the objects of a group, of a kind that there are many of; False for another kind."""
    if kind == INT:
        for number in range(count):
            store_word(items + 8 * number, make_integer(shared, load_word(words + 8 * number)))
    elif kind == LASTING:
        for number in range(count):
            store_word(items + 8 * number, take(shared, load_word(words + 8 * number)))
    elif kind == STRUCT:
        for number in range(count):
            structure = load_word(words + 8 * number)
            made = make_empty(structure)
            # As long as nothing is in it, as it is freed without what would be.
            for slot in range(16, load_word(structure + layout.S_SIZE), 8):
                store_word(made + slot, 0)
            store_word(items + 8 * number, made)
    elif kind == LIST:
        for number in range(count):
            made = list_new(load_word(words + 8 * number))
            gc_untrack(made)
            store_word(items + 8 * number, made)
    elif kind == DEFAULT:
        for number in range(count):
            shared = load_word(words + 8 * number)
            py_incref(shared)
            store_word(items + 8 * number, shared)
    else:
        return False
    return True


@part
def fill_others(call: int, kind: int, items: int, words: int, count: int) -> None:
    """Make the objects of a group of another kind."""
    for number in range(count):
        at = words + 16 * number
        if kind == DICT:
            made = dict_new()
        elif kind == TEXT:
            made = unicode_decode(load_word(at), load_word(at + 8), 0)
        elif kind == BYTES:
            made = bytes_from(load_word(at), load_word(at + 8))
        else:
            made = make_uuid(call, load_word(at))
        store_word(items + 8 * number, made)


@kernel
def make(itself: int, _arguments: int, _count: int) -> int:
    """Make all objects of a recipe, a C function of the kind METH_FASTCALL; gives a list."""
    recipe = load_word(bytes_address(itself))
    shared, call = load_word(recipe), recipe + R_CALL
    was_on = gc_disable() if load_word(recipe + R_LARGE) else 0
    made = list_new(load_word(recipe + R_TOTAL))
    gc_untrack(made)
    items, group = load_word(made + LIST_ITEMS), recipe + R_FIRST
    for _ in range(load_word(recipe + R_GROUPS)):
        kind, count, words = load_word(group), load_word(group + 8), load_word(group + 16)
        if not fill_often(shared, kind, items, words, count):
            fill_others(call, kind, items, words, count)
        items += 8 * count
        group += 24
    if was_on:
        gc_enable()
    return made


class Recipe:
    """What makes the objects of a message."""

    def __init__(self, value: Any, version: int) -> None:
        program = ObjectProgram(value.definition.schema(version), value.definition.classes)
        self.kept: list[Any] = [value, program]
        self.structures: dict[type, int] = {}
        self.groups: dict[int, list[int]] = {}
        every = list(parts(value))
        found = Counter(map(id, every))
        for one in every:
            # What stands in several places is a default that all share, or always there.
            is_shared = found[id(one)] > 1 and type(one) in (str, bytes, int, uuid.UUID)
            lasts = type(one) is int and one in small_ints()
            self._group(DEFAULT, id(one)) if is_shared and not lasts else self._add(one)
        shared = program.shared(0, lambda _: None)
        head = [
            shared,
            len(every),
            len(self.groups),
            int(len(value.encode(version)) >= layout.LARGE),
        ]
        call = [0] * (layout.CALL // 8)
        call[layout.C_GLOBALS // 8] = shared
        of_two = {kind: 2 if kind >= DICT else 1 for kind in self.groups}
        groups = [
            word
            for kind, words in sorted(self.groups.items())
            for word in (kind, len(words) // of_two[kind], self._block(words))
        ]
        self.words = self._block([*head, *call, *groups])

    def _add(self, value: Any) -> None:
        kind = type(value)
        if kind in (str, bytes, uuid.UUID):
            raw = value.encode() if kind is str else value if kind is bytes else value.bytes
            what = {str: TEXT, bytes: BYTES, uuid.UUID: UUID}[kind]
            self._group(what, self._bytes(raw), len(raw))
        elif kind is int:
            self._group(INT, value)
        elif kind in (list, dict):
            self._group(LIST, len(value)) if kind is list else self._group(DICT, 0, 0)
        elif hasattr(kind, "__struct_fields__"):
            self._group(STRUCT, self._structure(kind))
        else:
            self._group(LASTING, id(value))

    def _group(self, kind: int, *words: int) -> None:
        self.groups.setdefault(kind, []).extend(words)

    def _structure(self, kind: type) -> int:
        if kind not in self.structures:
            words = [0] * (layout.STRUCTURE // 8)
            words[layout.S_CLASS // 8], words[layout.S_SIZE // 8] = id(kind), size_of(kind)
            self.structures[kind] = self._block(words)
        return self.structures[kind]

    def _bytes(self, raw: bytes) -> int:
        block = ctypes.create_string_buffer(raw, max(1, len(raw)))
        self.kept.append(block)
        return ctypes.addressof(block)

    def _block(self, words: list[int]) -> int:
        block = (ctypes.c_int64 * len(words))(*words)
        self.kept.append(block)
        return ctypes.addressof(block)


def parts(value: Any) -> Iterator[Any]:
    """Give an object and all that decoding made for it; unknown tagged fields only as a dict."""
    yield value
    if isinstance(value, list):
        for one in value:
            yield from parts(one)
    for name in getattr(value, "__struct_fields__", ()):
        yield from parts(getattr(value, name))


def bare(value: Any, version: int) -> Callable[[Any], Any]:
    """Give a function that makes what decoding ``value`` made, whatever its one argument is."""
    recipe = Recipe(value, version)
    made = c_function(make.address, "bare", recipe.words, recipe)
    # Of containers, how many there are; of others, what they are.
    assert Counter(map(_shown, made(None))) == Counter(map(_shown, parts(value)))
    return made


def _shown(value: Any) -> object:
    plain = value is None or isinstance(value, (int, str, bytes, uuid.UUID))
    return (type(value), value if plain else len(value) if isinstance(value, list) else 0)
