"""Readable JSON of a message: names next to error codes, and decoded records."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.protocol.error_codes import NO_ERROR, error_name, is_error_code
from flexwire.protocol.records_json import RecordBudget, decode_records
from flexwire.wire.schema import struct_of
from flexwire.wire.types import INT16

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.codec import Message
    from flexwire.wire.schema import Schema


class JsonStructure(NamedTuple):
    """One structure: its object in the JSON form, its schema, and the path to it."""

    form: dict[str, Any]
    schema: Schema
    path: str

    def at(self, name: str) -> str:
        """Return the path to a field of the structure."""
        return f"{self.path}.{name}" if self.path else name


def walk_structures(
    form: Any, schema: Schema, names: Mapping[str, Mapping[str, str]] | None = None, path: str = ""
) -> Iterator[JsonStructure]:
    """Yield every structure, outer before inner. Values in any other form are skipped.

    ``names`` contains the field names in other releases (`Served.former_names`). A structure may be
    modified after it is yielded: its inner structures are searched only then.
    """
    if not isinstance(form, dict):
        return
    here = JsonStructure(form, schema, path)
    yield here
    inner = {
        field.json_name: struct for field in schema.fields if (struct := struct_of(field.type))
    }
    former = (names or {}).get(schema.name, {})
    for name, value in list(form.items()):
        within = inner.get(former.get(name, name))
        if within is None:
            continue
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from walk_structures(item, within, names, f"{here.at(name)}[{index}]")
        else:
            yield from walk_structures(value, within, names, here.at(name))


def to_readable_json(
    message: Message, version: int, *, names: bool = True, records: bool = True
) -> dict[str, Any]:
    """Return the JSON form of a message with names that the plain form lacks.

    With ``names``, each error code is followed by its name in Kafka, as ``"_errorName"``. With
    ``records``, the batches in a field are shown as JSON (`records_form`), if they can be read
    within the size limits.
    """
    return make_readable(
        message.to_json(version), type(message), version, names=names, records=records
    )


def make_readable(
    form: dict[str, Any],
    kind: type[Message],
    version: int,
    *,
    names: bool = True,
    records: bool = True,
) -> dict[str, Any]:
    """Add the same names as `to_readable_json` to a JSON form, and return the form.

    ``form`` represents a message of this class, or the first part of such a message. It is
    modified.
    """
    schema = kind.definition.schema(version)
    fields = record_field_names(kind, version) if records else frozenset()
    room = RecordBudget()
    for structure in walk_structures(form, schema):
        for name in fields & structure.form.keys():
            _show_records(structure.form, name, room)
        if names:
            _name_errors(structure.form, error_code_names(structure.schema))
    return form


def record_field_names(kind: type[Message], version: int) -> frozenset[str]:
    """Return the JSON names of a message's fields that contain records."""
    spec = kind.entry.spec(version, kind.definition.served.release)
    return frozenset(field.json_name for field in spec.walk() if field.type.name == "records")


def error_code_names(schema: Schema) -> list[str]:
    """Return the JSON names of a structure's own fields that contain error codes."""
    return [
        field.json_name
        for field in schema.fields
        if field.type == INT16 and is_error_code(field.name, INT16.name.lower())
    ]


def describe_error_code(code: int) -> str:
    """Return Kafka's name of an error code, or a description if the code has no name.

    >>> describe_error_code(3), describe_error_code(9999)
    ('UNKNOWN_TOPIC_OR_PARTITION', 'of no release')
    """
    return error_name(code) or "of no release"


def error_name_key(name: str) -> str:
    """Return the key for the name of the error code in the field ``name``.

    >>> error_name_key("errorCode")
    '_errorName'
    """
    return f"_{name.removesuffix('Code')}Name"


def _name_errors(form: dict[str, Any], names: list[str]) -> None:
    for name in names:
        if form.get(name, NO_ERROR) == NO_ERROR:
            continue
        items = list(form.items())
        form.clear()
        for key, value in items:
            form[key] = value
            if key == name:
                form[error_name_key(name)] = describe_error_code(value)


def _show_records(form: dict[str, Any], name: str, room: RecordBudget) -> None:
    if form[name] is None:
        return
    batches = decode_records(base64.b64decode(form[name]), room)
    if batches is not None:
        form[name] = batches
