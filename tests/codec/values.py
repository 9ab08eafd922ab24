"""Random values of any schema, from a seed."""

from __future__ import annotations

import random
import struct
import uuid
from typing import TYPE_CHECKING, Any

from flexwire.wire.encoding import Encoding
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.tags import TagForm
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer, String, Type, Uuid

if TYPE_CHECKING:
    from flexwire.codec import Message

TEXTS = ["", "a", "größe", "日本語", "x" * 127, "y" * 128, "\U0001f980"]


def random_message(
    made: type[Message],
    version: int,
    seed: int,
    encoding: Encoding = Encoding.KAFKA,
    *,
    tagged: bool = True,
) -> Any:
    """Give an object whose every present field has some value, unknown tagged fields too.

    Without ``tagged``, what is or could be a tagged field is at its default.
    """
    schema = made.definition.schema(version, encoding)
    return _Values(made, random.Random(seed), tagged=tagged).struct(schema)


class _Values:
    def __init__(self, made: type[Message], source: random.Random, *, tagged: bool) -> None:
        self.made = made
        self.random = source
        self.tagged = 0.5 if tagged else 0.0

    def struct(self, schema: Schema) -> Any:
        values = {
            one.attribute: None
            if one.nullable and self.random.random() < 0.25
            else self.value(one.type)
            for one in schema.fields
            if one.presence is Presence.INLINE
            or (one.presence is Presence.TAGGED and self.random.random() < self.tagged)
        }
        if self.tagged and schema.flexible and self.random.random() < 0.3:
            highest = 2**15 - 1 if schema.form is TagForm.BUFFER else 2**31 - 1
            values["unknown_tagged_fields"] = {
                self.random.choice([500, 20_000, highest]): self.random.randbytes(5)
            }
        return self.made.definition.classes[schema.name](**values)

    def value(self, kind: Type) -> Any:
        if isinstance(kind, ArrayType):
            return [self.value(kind.element) for _ in range(self.random.choice([0, 1, 3]))]
        if isinstance(kind, Schema):
            return self.struct(kind)
        if isinstance(kind, NullableStruct):
            return self.struct(kind.schema)
        return self.scalar(kind)

    def scalar(self, kind: Type) -> Any:
        if isinstance(kind, Boolean):
            return self.random.random() < 0.5
        if isinstance(kind, Integer):
            width = struct.calcsize(kind.code)
            raw = self.random.choice(
                [
                    bytes(width),
                    b"\xff" * width,
                    b"\x7f" + b"\xff" * (width - 1),
                    self.random.randbytes(width),
                ]
            )
            return struct.unpack(f">{kind.code}", raw)[0]
        if isinstance(kind, Float64):
            return self.random.choice([0.0, -1.5, 1e300])
        if isinstance(kind, Uuid):
            return uuid.UUID(bytes=self.random.randbytes(16))
        if isinstance(kind, String):
            return self.random.choice(TEXTS)
        assert isinstance(kind, Bytes)
        return self.random.randbytes(self.random.choice([0, 1, 130]))
