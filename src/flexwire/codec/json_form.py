"""The JSON form of a message: the form that Kafka's own converters use, but without loss.

Names begin with a lower-case letter. A UUID is base64url without padding, and bytes are base64.
Records are base64 too, and unknown tagged fields are ``"_unknownTaggedFields": [{"tag": 9, "data":
"…"}]``. Kafka's converters lose records and unknown tagged fields.
"""

from __future__ import annotations

import base64
import dataclasses
import difflib
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexwire.errors import JsonFormError, MissingFieldsError, short
from flexwire.wire.cursor import format_path
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Field, NullableStruct, Presence, Schema
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer, String, Type, Uuid
from flexwire.wire.varint import parse_uuid_text, uuid_text

if TYPE_CHECKING:
    import uuid

UNKNOWN = "_unknownTaggedFields"
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def write_json(plain: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the JSON form of a structure that `Schema.write` accepts, without strict checks.

    The form contains tagged fields only if their values differ from the defaults. No value is
    checked here, because the wire types raise all errors.
    """
    values: dict[str, Any] = {}
    for field in schema.fields:
        value = plain.get(field.attribute, field.default)
        if field.presence is Presence.INLINE or not (
            field.presence is Presence.ABSENT or field.type.is_default(value, field.default)
        ):
            values[field.json_name] = _write_value(value, field.type)
    unknown = plain.get(UNKNOWN_TAGGED_FIELDS)
    if unknown:
        values[UNKNOWN] = [
            {"tag": tag, "data": base64.b64encode(data).decode()}
            for tag, data in sorted(unknown.items())
        ]
    return values


def _write_value(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [_write_value(item, kind.element) for item in value]
    if isinstance(kind, NullableStruct):
        kind = kind.schema
    return write_json(value, kind) if isinstance(kind, Schema) else _write_scalar(value, kind)


def _write_scalar(value: Any, kind: Type) -> Any:
    if isinstance(kind, Bytes):
        return base64.b64encode(value).decode()
    if isinstance(kind, Uuid):
        return uuid_text(value)
    if isinstance(kind, Float64):
        return double_form(float(value))
    if isinstance(kind, Boolean):
        return bool(value)
    # As in the wire types, True is 1, and the integer types of other libraries are accepted.
    return operator.index(value) if isinstance(kind, Integer) else str(value)


def double_form(number: float) -> float | str:
    """Return the JSON form of a double, in which NaN and the infinities are strings."""
    if math.isfinite(number):
        return number
    return next(text for text, special in _NOT_FINITE.items() if str(special) == str(number))


# The names that fields have in other releases, by structure. Each name is mapped to the name in
# this release.
Names = Mapping[str, Mapping[str, str]]
_NO_NAMES: Names = {}
_STRUCTS = (Schema, NullableStruct)
# The largest number of missing fields that an error lists.
_MOST_TOLD = 10


def read_json(
    obj: Any, schema: Schema, names: Names = _NO_NAMES, *, defaults: bool = False
) -> dict[str, Any]:
    """Return the JSON form as the mapping that the wire types write.

    With ``names``, a field may have the name that it has in another release. A field of another
    version is accepted, as in Kafka. Such a field is checked when the message is written. Unlike in
    Kafka, a name that is in no version is an error, because otherwise a typing mistake would lose
    data. If ``defaults`` is true, missing fields get their defaults. Otherwise one error lists all
    missing fields. Raises `JsonFormError`.
    """
    form = _FormReader(names, defaults)
    plain = form.read_struct(obj, schema, [])
    if form.count:
        raise MissingFieldsError(form.missing_text(), path=form.missing[0])
    return plain


@dataclass(slots=True)
class _FormReader:
    """Read a form whose fields may have the names in ``names``, and collect the missing fields."""

    names: Names
    defaults: bool
    count: int = 0
    # Only the first missing fields are kept, because a form may contain any number of structures.
    missing: list[str] = dataclasses.field(default_factory=list)

    def read_struct(self, obj: Any, schema: Schema, path: list[str]) -> dict[str, Any]:
        if not isinstance(obj, dict):
            raise _error(f"expected an object for {schema.name}, got {short(obj)}", path)
        if schema.name in self.names:
            obj = _renamed(obj, self.names[schema.name], path)
        _refuse_unknown(obj, schema, path)
        plain: dict[str, Any] = {}
        for field in schema.fields:
            here = [*path, field.json_name]
            if field.json_name in obj:
                plain[field.attribute] = self._read_value(obj[field.json_name], field, here)
            elif field.presence is Presence.INLINE and self.defaults:
                plain[field.attribute] = self._default(field, here)
            elif field.presence is Presence.INLINE:
                self.count += 1
                if len(self.missing) < _MOST_TOLD:
                    self.missing.append(format_path(here))
        if UNKNOWN in obj:
            plain[UNKNOWN_TAGGED_FIELDS] = _read_unknown(obj[UNKNOWN], [*path, UNKNOWN])
        return plain

    def missing_text(self) -> str:
        """Return a description of the missing fields.

        The path in the error is that of the first missing field.
        """
        reason = "missing, and mandatory in this version"
        if self.count == 1:
            return reason
        others, more = self.missing[1:], self.count - len(self.missing)
        names = ", ".join(others) + (f" and {more:,} more" if more else "")
        return f"{reason}, as {'is' if self.count == len('ab') else 'are'} {names}"

    def _default(self, field: Field, path: list[str]) -> Any:
        kind = field.type.schema if isinstance(field.type, NullableStruct) else field.type
        if isinstance(kind, Schema) and field.default is not None:
            return self.read_struct({}, kind, path)
        return list(field.default) if isinstance(field.default, tuple) else field.default

    def _read_value(self, obj: Any, field: Field, path: list[str]) -> Any:
        if obj is None:
            return None
        kind = field.type
        if isinstance(kind, _STRUCTS):
            return self._read_element(obj, kind, path)
        if not isinstance(kind, ArrayType):
            return _read_scalar(obj, kind, path)
        if not isinstance(obj, list):
            raise _error(f"expected an array, got {short(obj)}", path)
        element = kind.element
        return [
            self._read_element(item, element, [*path, f"[{index}]"])
            for index, item in enumerate(obj)
        ]

    def _read_element(self, obj: Any, kind: Type, path: list[str]) -> Any:
        if isinstance(kind, NullableStruct):
            kind = kind.schema
        if isinstance(kind, Schema):
            return self.read_struct(obj, kind, path)
        return _read_scalar(obj, kind, path)


def _refuse_unknown(obj: dict[str, Any], schema: Schema, path: list[str]) -> None:
    json_names = {field.json_name for field in schema.fields}
    json_names.add(UNKNOWN)
    for name in () if json_names.issuperset(obj) else obj:
        if name not in json_names:
            near = difflib.get_close_matches(str(name), json_names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise _error(f"{schema.name} has no field {name!r} in any version{hint}", path)


def _renamed(obj: dict[str, Any], names: Mapping[str, str], path: list[str]) -> dict[str, Any]:
    """Return an object with the field names of this release."""
    for name in obj:
        if names.get(name) in obj:
            raise _error(
                f"{name!r} is another release's name for {names[name]!r}; use only one name", path
            )
    return {names.get(name, name): value for name, value in obj.items()}


def _read_unknown(obj: Any, path: list[str]) -> dict[int, bytes]:
    if not isinstance(obj, list):
        raise _error(f"expected an array, got {short(obj)}", path)
    values: dict[int, bytes] = {}
    for index, item in enumerate(obj):
        here = [*path, f"[{index}]"]
        if not isinstance(item, dict) or set(item) != {"tag", "data"}:
            raise _error(f'expected {{"tag": …, "data": …}}, got {short(item)}', here)
        tag = item["tag"]
        if type(tag) is not int:
            raise _error(f"expected an integer as the tag, got {short(tag)}", here)
        if tag in values:
            raise _error(f"tag {tag} appears twice", here)
        values[tag] = _base64(item["data"], here)
    return values


def _read_scalar(obj: Any, kind: Type, path: list[str]) -> Any:
    if isinstance(kind, Bytes):
        return _base64(obj, path)
    if isinstance(kind, Uuid):
        return _uuid(obj, path)
    if isinstance(kind, Float64):
        if isinstance(obj, str) and obj in _NOT_FINITE:
            return _NOT_FINITE[obj]
        if isinstance(obj, bool) or not isinstance(obj, int | float):
            raise _error(f"expected a number, got {short(obj)}", path)
        try:
            return float(obj)
        except OverflowError:
            raise _error(f"{short(obj)} is out of range for a double", path) from None
    wanted = {Boolean: bool, Integer: int, String: str}[type(kind)]
    if type(obj) is not wanted:
        raise _error(f"expected a {kind.name.lower()}, got {short(obj)}", path)
    return obj


def _base64(obj: Any, path: list[str]) -> bytes:
    try:
        if isinstance(obj, str):
            return base64.b64decode(obj, validate=True)
    except ValueError:
        pass
    raise _error(f"expected base64, got {short(obj)}", path)


def _uuid(obj: Any, path: list[str]) -> uuid.UUID:
    try:
        if isinstance(obj, str):
            return parse_uuid_text(obj)
    except ValueError:
        pass
    raise _error(f"expected a UUID in base64url, got {short(obj)}", path)


def _error(reason: str, path: list[str]) -> JsonFormError:
    return JsonFormError(reason, path=format_path(path))
