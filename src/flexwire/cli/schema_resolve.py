"""`flexwire schema resolve`: print the layout of a message at one version."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import (
    Format,
    encoding_option,
    find_message,
    format_option,
    message_argument,
    release_option,
    specs_options,
    version_of,
    version_option,
)
from flexwire.cli.standard_input import spec_name, takes_standard_input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec.message import Message
    from flexwire.schema.parse import Mode
    from flexwire.wire.encoding import Encoding
    from flexwire.wire.schema import Schema
    from flexwire.wire.types import Type

_HEADER = ("field", "type", "where", "default")


@click.command("resolve")
@message_argument
@version_option
@release_option
@specs_options
@encoding_option
@click.option("--all", "whole", is_flag=True, help="Also list fields that this version lacks.")
@format_option
@takes_standard_input(specs=spec_name)
def schema_resolve(
    *,
    message: str,
    version: int | str,
    release: str | None,
    specs: tuple[str, ...],
    specs_mode: Mode,
    encoding: Encoding,
    whole: bool,
    output: Format,
) -> None:
    """List the fields of MESSAGE at one version, in wire order.

    Each line shows a field's type in that version, whether the type is compact and nullable,
    whether the field is inline or tagged, and its default. Every flexible structure ends with its
    tagged fields. For a request or response, the first line includes the header version.
    """
    message_class = find_message(message, release, specs, specs_mode)
    form = resolved_form(message_class, version_of(message_class, version), encoding, whole=whole)
    if output is Format.JSON:
        print(json.dumps(form, ensure_ascii=False, indent=2))
        return
    kind = "flexible" if form["flexible"] else "not flexible"
    header = form["headerVersion"]
    behind = "" if header is None else f", {message_class.entry.type.value} header {header}"
    print(f"{form['message']} v{form['version']}, {kind}{behind}")
    table = [_HEADER, *map(_line, form["fields"])]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADER))]
    for line in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


def resolved_form(
    message_class: type[Message], version: int, encoding: Encoding, *, whole: bool = False
) -> dict[str, Any]:
    """Return the JSON form of a message at one version, as docs/json.md describes.

    If ``whole`` is true, the fields that this version lacks are included.
    """
    from flexwire.wire.schema import Presence

    schema = message_class.definition.schema(version, encoding)
    return {
        "message": message_class.entry.name,
        "version": version,
        "flexible": schema.flexible,
        "headerVersion": _header_version(message_class, version, schema),
        "encoding": encoding.value,
        "fields": [
            row for row in _rows(schema, "") if whole or row["presence"] != Presence.ABSENT.value
        ],
    }


def _header_version(message_class: type[Message], version: int, schema: Schema) -> int | None:
    """Return the header version of a request or response, or None for other messages."""
    from flexwire.schema.header_versions import header_version

    entry = message_class.entry
    if not entry.type.is_api:
        return None
    header = entry.header_versions.of(version)
    api_key = entry.spec(version, message_class.definition.served.release).api_key
    return header_version(entry.type, api_key, header, flexible=schema.flexible)


def _rows(schema: Schema, path: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of a structure in order. Each field comes before the fields inside it."""
    from flexwire.wire.schema import struct_of
    from flexwire.wire.types import ArrayType

    inline, tagged = list(schema.inline), list(schema.tagged.values())
    ordered = [*tagged, *inline] if schema.tags_lead else [*inline, *tagged]
    for field in [*ordered, *schema.absent]:
        inner = struct_of(field.type)
        here = f"{path}{field.json_name}{'[]' if isinstance(field.type, ArrayType) else ''}"
        is_there = field in ordered
        yield {
            "field": here,
            "type": _type_name(field.type),
            "nullable": field.nullable,
            "presence": field.presence.value,
            "tag": field.tag if field.presence.value == "tagged" else None,
            "default": _default(field.default),
        }
        if inner is not None and is_there:
            yield from _rows(inner, f"{here}.")


def _type_name(kind: Type) -> str:
    from flexwire.wire.schema import NullableStruct
    from flexwire.wire.types import ArrayType

    if isinstance(kind, ArrayType):
        return f"{kind.name} of {_type_name(kind.element)}"
    if isinstance(kind, NullableStruct):
        return f"nullable {kind.schema.name}"
    return kind.name


def _default(value: Any) -> Any:
    """Return a default in JSON form."""
    if isinstance(value, tuple):
        return []
    if isinstance(value, Mapping):
        return {}
    if isinstance(value, uuid.UUID):
        from flexwire.wire.varint import uuid_text

        return uuid_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    where = row["presence"] if row["tag"] is None else f"tag {row['tag']}"
    return row["field"], row["type"], where, json.dumps(row["default"], ensure_ascii=False)
