"""From a schema to the program that the kernels run, and to the C functions that run it."""

from __future__ import annotations

import ctypes
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from flexwire.kernels.objects import layout as L  # noqa: N812 - a word in front of some fifty
from flexwire.kernels.objects.functions import (
    UnsuitableError,
    c_function,
    counts_all,
    in_order,
    size_of,
    slots_of,
    small_ints,
    uuid_slots,
)
from flexwire.kernels.wire.operations import operation_of
from flexwire.wire.schema import Presence, Schema, struct_of
from flexwire.wire.tags import TagForm
from flexwire.wire.types import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexwire.wire.schema import Field

# The tags that are present are bits of one word.
_MOST_TAGS = 62
_UUID_BYTES = 16


class ObjectProgram:
    """A schema in memory. Addresses are of this process, and hold while the program lives."""

    def __init__(self, schema: Schema, classes: Mapping[str, type[msgspec.Struct]]) -> None:
        self._classes = classes
        # Whatever the program points to is kept here.
        self._kept: list[Any] = []
        self._structures: dict[str, int] = {}
        self.root = self._structure(schema)

    def _words(self, words: list[int]) -> int:
        block = (ctypes.c_int64 * max(1, len(words)))(*words)
        self._kept.append(block)
        return ctypes.addressof(block)

    def _address(self, kept: object) -> int:
        self._kept.append(kept)
        return id(kept)

    def _structure(self, schema: Schema) -> int:
        if schema.name in self._structures:
            return self._structures[schema.name]
        if schema.flexible and schema.form is not TagForm.SECTION:
            raise UnsuitableError("the kernels know tagged fields as Kafka writes them")
        made = self._classes[schema.name]
        slots = slots_of(made)
        if len(schema.tagged) > _MOST_TAGS:
            raise UnsuitableError(f"{schema.name} has more than {_MOST_TAGS} tagged fields")
        inline = [self._operation(one, slots) for one in schema.inline]
        tagged = [self._operation(one, slots) for one in schema.tagged.values()]
        on_wire = {one.attribute for one in schema.inline}
        others = {name: slot for name, slot in slots.items() if name not in on_wire}
        absent = [self._operation(one, slots) for one in schema.absent if not one.ignorable]
        words = {
            L.S_CLASS: self._address(made),
            L.S_OTHERS: len(slots) - len(inline),
            L.S_INLINE: len(inline),
            L.S_INLINES: self._words([word for one in inline for word in one]),
            L.S_FLEXIBLE: int(schema.flexible),
            L.S_TAGGED: len(tagged),
            L.S_TAGGEDS: self._words([word for one in tagged for word in one]),
            L.S_REFUSED: len(schema.refused_tags),
            L.S_REFUSEDS: self._words(sorted(schema.refused_tags)),
            L.S_DEFAULTS: self._words(self._defaults(made, others)),
            L.S_ABSENT: len(absent),
            L.S_ABSENTS: self._words([word for one in absent for word in one]),
            L.S_UNKNOWN: slots[made.__struct_fields__[-1]],
            L.S_SIZE: size_of(made),
        }
        self._structures[schema.name] = self._words(in_order(words, L.STRUCTURE))
        return self._structures[schema.name]

    def _operation(self, one: Field, slots: Mapping[str, int]) -> list[int]:
        kind = one.type
        inner = struct_of(kind) if one.presence is not Presence.ABSENT else None
        how, value = self._default(one)
        words = {
            L.O_CODE: operation_of(kind),
            L.O_NULLABLE: int(one.nullable),
            L.O_COMPACT: int(getattr(kind, "compact", False)),
            L.O_ELEMENT: operation_of(kind.element) if isinstance(kind, Array) else 0,
            L.O_STRUCT: self._structure(inner) if inner is not None else 0,
            L.O_SLOT: slots[one.attribute],
            L.O_TAG: -1 if one.tag is None else one.tag,
            L.O_DEFAULT: how,
            L.O_VALUE: value,
        }
        return in_order(words, L.OPERATION)

    def _default(self, one: Field) -> tuple[int, int]:
        """Say how a value is compared with the field's default, and with what."""
        default = one.default
        if default is None:
            return L.D_NONE, 0
        if isinstance(default, bool):
            return L.D_SAME, id(default)
        if isinstance(one.type, Array):
            return L.D_EMPTY_LIST, 0
        if isinstance(default, bytes):
            return L.D_EMPTY_BYTES, 0
        if isinstance(default, float):
            return L.D_DOUBLE, ctypes.c_int64.from_buffer_copy(ctypes.c_double(default)).value
        if isinstance(default, int):
            return L.D_INT, default
        inner = struct_of(one.type)
        if inner is None:
            return L.D_EQUAL, self._address(default)
        made = self._classes[inner.name]()
        plain = msgspec.to_builtins(made, builtin_types=(bytes, uuid.UUID))
        # NaN is unlike itself, and a structure that has it by default unlike its default.
        return (L.D_EQUAL, self._address(made)) if one.is_default(plain) else (L.D_NEVER, 0)

    def _defaults(self, made: type[msgspec.Struct], slots: Mapping[str, int]) -> list[int]:
        """Say for each of these fields how it is made where it was not on the wire."""
        words: list[int] = []
        fresh = made()
        for name, slot in slots.items():
            value = getattr(fresh, name)
            if isinstance(value, list):
                words += [L.M_LIST, 0, slot]
            elif isinstance(value, dict):
                words += [L.M_DICT, 0, slot]
            elif isinstance(value, msgspec.Struct):
                words += [L.M_CALL, self._address(type(value)), slot]
            elif any(value is one for one in (None, True, False, *small_ints())):
                words += [L.M_LASTING, id(value), slot]
            else:
                words += [L.M_SHARED, self._address(value), slot]
        return words

    def function(
        self, kernel: int, inner: int, name: str, fallback: Callable[[Any], Any]
    ) -> Callable[[Any], Any]:
        """Make the C function that runs ``kernel`` over this program.

        ``kernel`` and ``inner``, the kernel for structures, are addresses. The function takes one
        argument, and hands it to ``fallback`` where the kernel refuses.
        """
        return c_function(kernel, name, self.shared(inner, fallback), self)

    def shared(self, inner: int, fallback: Callable[[Any], Any]) -> int:
        """Give the address of the words that every call of one function shares."""
        words = {
            L.G_NONE: id(None),
            L.G_TRUE: id(True),
            L.G_FALSE: id(False),
            L.G_FROM_BYTES: self._address(int.from_bytes),
            L.G_TO_BYTES: self._address(int.to_bytes),
            L.G_INT: id(int),
            L.G_STR: id(str),
            L.G_BYTES: id(bytes),
            L.G_LIST: id(list),
            L.G_FLOAT: id(float),
            L.G_UUID: id(uuid.UUID),
            L.G_DICT: id(dict),
            L.G_ROOT: self.root,
            L.G_FALLBACK: self._address(fallback),
            L.G_KERNEL: inner,
            L.G_EXCEPTION: id(Exception),
            L.G_COUNTED: int(counts_all()),
            L.G_SMALL: self._words([id(one) for one in small_ints()]),
            L.G_UUID_INT: uuid_slots()["int"],
            L.G_UUID_SAFE: uuid_slots()["is_safe"],
            L.G_IS_SAFE: self._address(uuid.SafeUUID.unknown),
            L.G_SIXTEEN: self._address(_UUID_BYTES),
        }
        return self._words(in_order(words, L.GLOBALS))
