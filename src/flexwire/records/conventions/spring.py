"""Spring Kafka's JSON, with the names of Java classes in a separate record header."""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec

from flexwire.errors import RecordHeaderError, short
from flexwire.records.conventions.convention import (
    MAX_DEPTH,
    BulkCondition,
    Convention,
    HeaderEvidence,
    Key,
    RawHeader,
)
from flexwire.wire.limits import INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flexwire.records.record import RecordHeader

TYPES_KEY = "spring_json_header_types"
_STRING = "java.lang.String"
# The packages are Spring's defaults. A class of another package is only a claim by the sender, so
# a value of such a class is returned as bytes.
_TRUSTED = ("java.lang.", "java.net.", "java.util.", "org.springframework.util.")
# Without a class, the values of these headers are read as strings.
_TEXT = {
    "kafka_listenerInfo",
    "b3",
    "traceparent",
    "X-B3-TraceId",
    "X-B3-SpanId",
    "X-B3-Sampled",
    "X-B3-Flags",
}
# Spring's container writes this header, as an int of four bytes.
_DELIVERY_ATTEMPT = "kafka_deliveryAttempt"
_INT = struct.Struct(">i")

_Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
_Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
_Float = float | Literal["NaN", "Infinity", "-Infinity"]
# The JSON that Jackson writes for each class. Values of other trusted classes are returned as JSON.
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(type_)
    for name, type_ in {
        _STRING: str,
        "java.lang.Boolean": bool,
        "java.lang.Byte": Annotated[int, msgspec.Meta(ge=-128, le=127)],
        "java.lang.Short": Annotated[int, msgspec.Meta(ge=INT16_MIN, le=INT16_MAX)],
        "java.lang.Integer": _Int32,
        "java.lang.Long": _Int64,
        "java.lang.Float": _Float,
        "java.lang.Double": _Float,
        "java.lang.Character": Annotated[str, msgspec.Meta(min_length=1, max_length=1)],
        "java.util.UUID": UUID,
        "[I": list[_Int32],
        "[J": list[_Int64],
        "[F": list[_Float],
        "[D": list[_Float],
        "[C": str,
        "[B": bytes,
    }.items()
}
# Jackson writes numbers that JSON cannot represent as strings.
_FLOATS = {"java.lang.Float", "java.lang.Double", "[F", "[D"}
_ANY = msgspec.json.Decoder()
_TYPES = msgspec.json.Decoder(dict[str, str])
_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


class SpringJson(Convention):
    """Values as Spring Kafka's `JsonKafkaHeaderMapper` and `DefaultKafkaHeaderMapper` write them.

    A string is written as plain text, or as JSON if it begins with a quote. Numbers, booleans,
    UUIDs, lists and maps are written as JSON. A value of a trusted class that has no equivalent in
    Python is read as the JSON value. A value of any other class, or without a class, is read as
    bytes. The record header with the classes is left out of the result of reading, and is written
    last. ``types`` contains the classes for additional keys.

    >>> SpringJson().read([
    ...     (b"retries", b"3"),
    ...     (b"trail", b"3"),
    ...     (b"spring_json_header_types", b'{"retries":"java.lang.Integer"}'),
    ... ])
    [('retries', 3), ('trail', b'3')]
    """

    name = "spring-json"
    rank = 10
    in_bulk = BulkCondition("true", "if the record also has Spring's type header")
    marker = TYPES_KEY

    def __init__(self, types: Mapping[str, str] | None = None) -> None:
        self.types = dict(types or {})

    def for_record(self, headers: Sequence[RawHeader]) -> SpringJson:
        """Use the classes in the last record header that lists classes, as Spring does."""
        for key, data in reversed(headers):
            if data is not None and key in {TYPES_KEY, TYPES_KEY.encode()}:
                return SpringJson(self.types | self._types(self.raw(key, data)))
        return self

    def read(self, headers: Iterable[RawHeader], *, lenient: bool = False) -> list[tuple[Key, Any]]:
        """Read one record's headers. Lenient reading keeps classes that it cannot read."""
        headers = list(headers)
        try:
            bound = self.for_record(headers)
        except RecordHeaderError:
            if not lenient:
                raise
            return Convention.read(self, headers, lenient=True)
        read = Convention.read(bound, headers, lenient=lenient)
        return [(key, value) for key, value in read if key != TYPES_KEY]

    def write(self, headers: Iterable[tuple[Key, Any]]) -> list[RecordHeader]:
        """Write one record's headers. If values have classes, add a header with the classes.

        Values may be a str, bool, int (`Integer`, or else `Long`), float (`Double`), UUID, list,
        dict, or bytes, which have no class. All values of a key must have the same class.
        """
        headers = list(headers)
        types: dict[str, str] = {}
        first: dict[str, str | None] = {}
        for key, value in headers:
            if value is not None:
                text = self.key_text(key)
                class_ = self._class(text, value)
                if first.setdefault(text, class_) != class_:
                    reason = "headers with the same key must have the same class, got"
                    reason = f"{reason} {first[text]} and {class_}"
                    raise self.misfit(key, reason)
                if class_:
                    types[text] = class_
        written = super().write(headers)
        if types:
            written.append((TYPES_KEY.encode(), msgspec.json.encode(types)))
        return written

    def read_value(self, key: str, data: bytes) -> Any:
        """Read a value of the class that is known for the key."""
        if key == TYPES_KEY:
            return self._types(data)
        if key == _DELIVERY_ATTEMPT:
            if len(data) != _INT.size:
                raise self.misfit(key, f"expected {_INT.size} bytes for int, got {len(data)}")
            return _INT.unpack(data)[0]
        class_ = self.types.get(key)
        if (class_ is None and key in _TEXT) or (class_ == _STRING and data[:1] != b'"'):
            return self.text(key, data)
        if class_ is None or not _is_trusted(class_):
            return data
        value = self._json(key, data, _DECODERS.get(class_, _ANY))
        if class_ in _FLOATS:
            return [float(item) for item in value] if class_.startswith("[") else float(value)
        return value

    def write_value(self, key: str, value: Any) -> bytes:
        """Write a value in the form of its class. `write` lists the classes."""
        if key in {TYPES_KEY, _DELIVERY_ATTEMPT}:
            raise self.misfit(key, "Spring itself sets this header; leave it out")
        if isinstance(value, bytes):
            if key in _TEXT:
                raise self.misfit(key, f"expected a str, got {short(value)}")
            return value
        if isinstance(value, str) and (key in _TEXT or not value.startswith('"')):
            return self.encoded(key, value)
        if isinstance(value, float) and not math.isfinite(value):
            return b'"NaN"' if math.isnan(value) else b'"Infinity"' if value > 0 else b'"-Infinity"'
        try:
            data = msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self.misfit(key, f"cannot be written as JSON: {error}") from None
        back = SpringJson({key: self._class(key, value) or _STRING}).read_value(key, data)
        if back != value:
            raise self.misfit(key, f"{short(value)} would be read as {short(back)}")
        return data

    def sign(self, key: str, data: bytes, value: Any) -> HeaderEvidence | None:  # noqa: ARG002 - the base class has this argument
        """Return evidence for Spring from the header that lists classes, or a listed header."""
        if key == TYPES_KEY:
            return HeaderEvidence(key, 2, f"contains the classes of {len(value)} headers")
        if key in self.types:
            return HeaderEvidence(key, 2, f"is of {self.types[key]}, says {TYPES_KEY}")
        return None if self.types else HeaderEvidence(key, -1, f"there is no {TYPES_KEY}")

    def _types(self, data: bytes) -> dict[str, str]:
        types: dict[str, str] = self._json(TYPES_KEY, data, _TYPES)
        return types

    def _json(self, key: str, data: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
        if _depth(data) > MAX_DEPTH:
            raise self.misfit(key, f"nested more than {MAX_DEPTH} levels deep")
        try:
            return decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self.misfit(key, f"not valid as Spring's JSON: {error}") from None

    def _class(self, key: str, value: Any) -> str | None:
        """Return the Java class of a value, or None for a value that needs no class."""
        if isinstance(value, bytes) or (key in _TEXT and isinstance(value, str)):
            return None
        for type_, class_ in _CLASSES.items():
            if isinstance(value, type_):
                return class_
        if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
            return "java.lang.Integer" if INT32_MIN <= value <= INT32_MAX else "java.lang.Long"
        raise self.misfit(key, f"Spring has no class for {short(value)}")


_CLASSES = {
    str: _STRING,
    bool: "java.lang.Boolean",
    float: "java.lang.Double",
    UUID: "java.util.UUID",
    list: "java.util.ArrayList",
    dict: "java.util.LinkedHashMap",
}


def _is_trusted(class_: str) -> bool:
    if class_.startswith("["):
        return class_ in _DECODERS or class_[2:].startswith(_TRUSTED)
    return class_.startswith(_TRUSTED)


def _depth(data: bytes) -> int:
    """Return how deeply arrays and objects are nested, even if the text is not valid JSON."""
    depth = deepest = 0
    for match in _BRACKET.finditer(data):
        depth += match[0] in b"[{"
        depth -= match[0] in b"]}"
        deepest = max(deepest, depth)
    return deepest
