"""A message as a person reads it: JSON with names beside error codes, and records as records."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from flexwire.protocol.error_codes import NO_ERROR, error_name, is_error_code
from flexwire.protocol.records_form import Room, decode_records
from flexwire.protocol.structures import structures
from flexwire.wire.types import INT16

if TYPE_CHECKING:
    from flexwire.codec import Message
    from flexwire.wire.schema import Schema


def shown(
    message: Message, version: int, *, names: bool = True, records: bool = True
) -> dict[str, Any]:
    """The JSON form of a message, with what the bare one does not say.

    With ``names`` what Kafka calls an error code stands after it, as ``"_errorName"``. With
    ``records`` the batches of a field are JSON (`records_form`), where they can be read and do not
    inflate beyond bounds.
    """
    return shown_form(
        message.to_json(version), type(message), version, names=names, records=records
    )


def shown_form(
    form: dict[str, Any],
    kind: type[Message],
    version: int,
    *,
    names: bool = True,
    records: bool = True,
) -> dict[str, Any]:
    """The JSON form of a message of this class, or of its first part, as `shown` returns it.

    The form that was given is altered.
    """
    schema = kind.definition.schema(version)
    fields = records_names(kind, version) if records else frozenset()
    room = Room()
    for one in structures(form, schema):
        for name in fields & one.form.keys():
            _show_records(one.form, name, room)
        if names:
            _name_errors(one.form, code_names(one.schema))
    return form


def records_names(kind: type[Message], version: int) -> frozenset[str]:
    """The names in JSON of a message's fields that hold records."""
    spec = kind.entry.spec(version, kind.definition.served.release)
    return frozenset(one.json_name for one in spec.walk() if one.type.name == "records")


def code_names(schema: Schema) -> list[str]:
    """The names in JSON of a structure's own fields that are error codes."""
    return [
        one.json_name
        for one in schema.fields
        if one.type == INT16 and is_error_code(one.name, INT16.name.lower())
    ]


def called(code: int) -> str:
    """What Kafka calls an error code, in words where it has none.

    >>> called(3), called(9999)
    ('UNKNOWN_TOPIC_OR_PARTITION', 'of no release')
    """
    return error_name(code) or "of no release"


def name_key(name: str) -> str:
    """Under what key the name of the error code in field ``name`` stands.

    >>> name_key("errorCode")
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
                form[name_key(name)] = called(value)


def _show_records(form: dict[str, Any], name: str, room: Room) -> None:
    if form[name] is None:
        return
    found = decode_records(base64.b64decode(form[name]), room)
    if found is not None:
        form[name] = found
