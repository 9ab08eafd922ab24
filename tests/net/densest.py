"""The densest messages: each array with as many elements as a number of bytes can hold."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from flexwire.codec import message
from flexwire.schema.catalog import catalog
from flexwire.wire.schema import NullableStruct, Schema
from flexwire.wire.types import ArrayType, Bytes, String, Type
from flexwire.wire.varint import write_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Iterable


def least(kind: Type) -> bytes:
    """Return the shortest value of a type, which is null only for structures."""
    if isinstance(kind, Schema):
        return b"".join(least(one.type) for one in kind.inline) + b"\x00" * kind.flexible
    if isinstance(kind, NullableStruct):
        return b"\xff"
    if isinstance(kind, ArrayType | String | Bytes):
        width = 2 if isinstance(kind, String) else 4
        return b"\x01" if kind.compact else bytes(width)
    assert kind.fixed_size is not None
    return bytes(kind.fixed_size)


def densest(name: str, version: int, array: str, size: int) -> bytes:
    """Return a body of about ``size`` bytes whose ``array`` contains as many elements as fit."""
    schema = message(name).definition.schema(version)
    (kind,) = (one.type for one in schema.inline if one.attribute == array)
    assert isinstance(kind, ArrayType)
    element = least(kind.element)
    count = size // len(element)
    length = write_unsigned_varint(count + 1) if kind.compact else struct.pack(">i", count)
    filled = length + element * count
    parts = [filled if one.attribute == array else least(one.type) for one in schema.inline]
    return b"".join(parts) + b"\x00" * schema.flexible


def dense_cases(names: Iterable[str]) -> list[tuple[str, int, str]]:
    """Return messages' top-level arrays, in the newest versions with and without tags.

    Each entry contains a message's name, its version and the array's attribute.
    """
    found = []
    for name in names:
        known, definition = catalog().entry(name).versions, message(name).definition
        plain = [one for one in known if not definition.schema(one).flexible]
        for version in sorted({known.highest, *plain[-1:]}):
            arrays = [
                one.attribute
                for one in definition.schema(version).inline
                if isinstance(one.type, ArrayType)
            ]
            found += [(name, version, array) for array in arrays]
    return found
