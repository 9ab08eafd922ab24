"""Create messages for a schema: with random values, with all fields set, or with boundary values.

All of these messages are valid. Each message can be written in its version, and reading the bytes
returns an equal message. `flexwire.codec.hostile` damages their bytes.
"""

from __future__ import annotations

import math
import random
import struct
import sys
import uuid
import zlib
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flexwire.records import Record, encode_batch
from flexwire.wire.encoding import Encoding
from flexwire.wire.limits import HIGHEST_TAG, HIGHEST_TAG_IN_BUFFER, RANGES
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.tags import TagForm
from flexwire.wire.types import (
    RECORDS,
    ArrayType,
    Boolean,
    Bytes,
    Float64,
    Integer,
    String,
    Type,
    Uuid,
)

if TYPE_CHECKING:
    from flexwire.codec.message import Message
    from flexwire.wire.schema import Field

    M = TypeVar("M", bound=Message)

_TEXTS: Final = ("", "a", "größe", "日本語", "x" * 127, "y" * 128, "\U0001f980")
_FLOATS: Final = (0.0, -0.0, -1.5, 1e300, 5e-324, math.inf, -math.inf)


def random_message(
    message: type[M],
    version: int,
    seed: int,
    encoding: Encoding = Encoding.KAFKA,
    *,
    tagged: bool = True,
    batches: bool = False,
    nan: bool = False,
) -> M:
    """Return a message with random values and with unknown tagged fields.

    The same seed always results in the same message. Without ``tagged``, fields that are tagged or
    could be tagged have their defaults. With ``batches``, a field of records contains a record
    batch. Without ``batches``, the field contains arbitrary bytes. With ``nan``, a double can be
    NaN. A message with NaN does not equal itself.
    """
    schema = message.definition.schema(version, encoding)
    floats = (*_FLOATS, math.nan) if nan else _FLOATS
    source = random.Random(seed)  # noqa: S311 - test data needs no secret randomness
    values = _RandomValues(message, source, tagged=tagged, batches=batches, floats=floats)
    sample: M = values.struct(schema)
    return sample


def filled_message(
    message: type[M],
    version: int,
    encoding: Encoding = Encoding.KAFKA,
    *,
    unknown_tags: bool = False,
) -> M:
    """Return a message in which each field of the version has a value other than its default.

    Arrays contain one element. A string is the name of its field, and a number depends only on that
    name, so a field has the same value in every version. With ``unknown_tags``, each flexible
    structure also contains two tagged fields that are in no spec. One of these tagged fields is
    empty. The other tagged field has the highest tag that Kafka's Java code writes, which is one
    below the maximum.

    >>> from flexwire.codec import message
    >>> filled_message(message("HeartbeatRequest"), 4).to_json(4)["groupInstanceId"]
    'groupInstanceId'
    """
    schema = message.definition.schema(version, encoding)
    sample: M = _FilledValues(message, unknown_tags=unknown_tags).struct(schema)
    return sample


class Boundary(StrEnum):
    """The boundary values that a message can contain."""

    NULL = "null"
    """Every nullable field is null."""
    EMPTY = "empty"
    """Texts, bytes and arrays are empty, numbers are 0, and no value is null."""
    LOWEST = "lowest"
    """Numbers have the lowest values. Texts and bytes have the greatest length that takes one byte.
    """
    HIGHEST = "highest"
    """Numbers have the highest values. The lengths of texts, bytes, and arrays of numbers take two
    bytes."""


def boundary_message(
    message: type[M], version: int, boundary: Boundary, encoding: Encoding = Encoding.KAFKA
) -> M:
    """Return a message whose values are at one end of their ranges.

    >>> from flexwire.codec import message
    >>> boundary_message(message("HeartbeatRequest"), 4, Boundary.NULL).group_instance_id is None
    True
    """
    schema = message.definition.schema(version, encoding)
    sample: M = _BoundaryValues(message, boundary).struct(schema)
    return sample


class _RandomValues:
    """Random values for the types of one message."""

    def __init__(
        self,
        message: type[Message],
        source: random.Random,
        *,
        tagged: bool,
        batches: bool,
        floats: tuple[float, ...],
    ) -> None:
        self._message = message
        self._random = source
        self._tagged = 0.5 if tagged else 0.0
        self._batches = batches
        self._floats = floats

    def struct(self, schema: Schema) -> Any:
        values = {
            field.attribute: None
            if field.nullable and self._random.random() < 0.25  # noqa: PLR2004 - the number is a probability
            else self._value(field.type)
            for field in schema.fields
            if field.presence is Presence.INLINE
            or (field.presence is Presence.TAGGED and self._random.random() < self._tagged)
        }
        if self._tagged and schema.flexible and self._random.random() < 0.3:  # noqa: PLR2004 - the number is a probability
            highest = HIGHEST_TAG_IN_BUFFER if schema.form is TagForm.BUFFER else HIGHEST_TAG
            values[UNKNOWN_TAGGED_FIELDS] = {
                self._random.choice([500, 20_000, highest]): self._random.randbytes(5)
            }
        return self._message.definition.classes[schema.name](**values)

    def _value(self, kind: Type) -> Any:
        if isinstance(kind, ArrayType):
            return [self._value(kind.element) for _ in range(self._random.choice([0, 1, 3]))]
        if isinstance(kind, Schema):
            return self.struct(kind)
        if isinstance(kind, NullableStruct):
            return self.struct(kind.schema)
        return self._scalar(kind)

    def _scalar(self, kind: Type) -> Any:
        if isinstance(kind, Boolean):
            return self._random.random() < 0.5  # noqa: PLR2004 - the number is a probability
        if isinstance(kind, Integer):
            return self._integer(kind)
        if isinstance(kind, Uuid):
            return uuid.UUID(bytes=self._random.choice([bytes(16), self._random.randbytes(16)]))
        if isinstance(kind, Float64 | String):
            return self._random.choice(_TEXTS if isinstance(kind, String) else self._floats)
        return self._batch() if self._batches and is_records(kind) else self._bytes()

    def _bytes(self) -> bytes:
        return self._random.randbytes(self._random.choice([0, 1, 130]))

    def _integer(self, kind: Integer) -> int:
        width = struct.calcsize(kind.code)
        raw = self._random.choice(
            [
                bytes(width),
                b"\xff" * width,
                b"\x7f" + b"\xff" * (width - 1),
                b"\x80" + bytes(width - 1),
                self._random.randbytes(width),
            ]
        )
        number: int = struct.unpack(f">{kind.code}", raw)[0]
        return number

    def _batch(self) -> bytes:
        first = self._random.getrandbits(40)
        records = [
            Record(
                offset=first + place,
                timestamp=self._random.getrandbits(40),
                key=self._random.choice([None, b"", b"key"]),
                value=self._random.choice([None, b"", self._random.randbytes(20)]),
                headers=[(b"trace", self._random.randbytes(4))] * self._random.choice([0, 1]),
            )
            for place in range(self._random.choice([1, 3]))
        ]
        return encode_batch(records)


class _FilledValues:
    """A value for each field that is not the field's default."""

    def __init__(self, message: type[Message], *, unknown_tags: bool = False) -> None:
        self._message = message
        self._unknown_tags = unknown_tags

    def struct(self, schema: Schema) -> Any:
        present = (field for field in schema.fields if field.presence is not Presence.ABSENT)
        values = {field.attribute: self._value(field, field.type) for field in present}
        if self._unknown_tags and schema.flexible:
            highest = HIGHEST_TAG_IN_BUFFER if schema.form is TagForm.BUFFER else HIGHEST_TAG
            values[UNKNOWN_TAGGED_FIELDS] = {10_000: b"", highest - 1: b"unknown"}
        return self._message.definition.classes[schema.name](**values)

    def _value(self, field: Field, kind: Type) -> Any:
        if isinstance(kind, ArrayType):
            return [self._value(field, kind.element)]
        if isinstance(kind, Schema | NullableStruct):
            return self.struct(kind if isinstance(kind, Schema) else kind.schema)
        return self._scalar(field, kind)

    def _scalar(self, field: Field, kind: Type) -> Any:
        if isinstance(kind, Boolean):
            return field.default is not True
        if is_records(kind):
            return encode_batch([Record(0, 0, b"key", b"value")])
        if isinstance(kind, String | Bytes):
            return field.json_name if isinstance(kind, String) else field.json_name.encode()
        # The value fits into an int8. Adding or removing a field does not change the number of
        # another field.
        number = 1 + zlib.crc32(field.json_name.encode()) % 126
        number += field.default == number
        if isinstance(kind, Uuid):
            return uuid.UUID(int=number)
        return float(number) if isinstance(kind, Float64) else number


class _BoundaryValues(_FilledValues):
    """A value for each field that is at one end of its range."""

    def __init__(self, message: type[Message], boundary: Boundary) -> None:
        super().__init__(message)
        self._boundary = boundary

    def _value(self, field: Field, kind: Type) -> Any:
        if self._boundary is Boundary.NULL:
            is_null = field.nullable and kind is field.type
            return None if is_null else super()._value(field, kind)
        if not isinstance(kind, ArrayType):
            return super()._value(field, kind)
        if self._boundary is Boundary.EMPTY:
            return []
        count = 1
        if self._boundary is Boundary.HIGHEST:
            is_number = isinstance(kind.element, Integer | Boolean | Float64)
            count = _TWO_BYTES if is_number else 2
        return [self._value(field, kind.element) for _ in range(count)]

    def _scalar(self, field: Field, kind: Type) -> Any:
        if self._boundary is Boundary.NULL or is_records(kind):
            return super()._scalar(field, kind)
        if isinstance(kind, String | Bytes):
            text = _EDGES[self._boundary]
            return text if isinstance(kind, String) else text.encode()
        low, high = self._range(kind)
        if self._boundary is Boundary.EMPTY:
            return _LOWEST_UUID if isinstance(kind, Uuid) else type(low)()
        return low if self._boundary is Boundary.LOWEST else high

    @staticmethod
    def _range(kind: Type) -> tuple[Any, Any]:
        if isinstance(kind, Integer):
            return RANGES[kind.name]
        if isinstance(kind, Float64):
            return (-math.inf, sys.float_info.max)
        return (False, True) if isinstance(kind, Boolean) else (_LOWEST_UUID, _HIGHEST_UUID)


# A compact length is one more than the length, so 127 is the first length that takes two bytes.
_TWO_BYTES: Final = 127
_EDGES: Final = {
    Boundary.EMPTY: "",
    Boundary.LOWEST: "a" * (_TWO_BYTES - 1),
    Boundary.HIGHEST: "é" * (_TWO_BYTES // 2) + "z",
}
_LOWEST_UUID: Final = uuid.UUID(int=0)
_HIGHEST_UUID: Final = uuid.UUID(int=2**128 - 1)


def is_records(kind: Type) -> bool:
    """Return whether a field of this type contains record batches or message sets."""
    return isinstance(kind, Bytes) and kind.kind == RECORDS.kind
