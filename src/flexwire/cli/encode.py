"""`flexwire encode`: convert JSON to bytes."""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import (
    Format,
    Notation,
    encoding_option,
    find_message,
    format_option,
    message_argument,
    read_json,
    release_option,
    specs_options,
    version_of,
    version_option,
)
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.cli.terminal import note
from flexwire.errors import MissingFieldsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.parse import Mode
    from flexwire.wire.encoding import Encoding
    from flexwire.wire.schema import Schema


@click.command()
@message_argument
@click.argument("source", metavar="[JSON]", default="-")
@version_option
@release_option
@specs_options
@encoding_option
@click.option(
    "--as",
    "notation",
    type=click.Choice(Notation, case_sensitive=False),
    default=Notation.AUTO,
    show_default="auto",
    help="How to print the bytes; auto means hex.",
)
@click.option(
    "--defaults",
    is_flag=True,
    help="Set fields that are missing from the JSON to their defaults in the spec.",
)
@format_option
@takes_standard_input("source", specs=spec_name)
def encode(
    *,
    message: str,
    source: str,
    version: int | str,
    release: str | None,
    specs: tuple[str, ...],
    specs_mode: Mode,
    encoding: Encoding,
    notation: Notation,
    defaults: bool,
    output: Format,
) -> None:
    """Encode a MESSAGE from its JSON form and print the bytes.

    JSON is the JSON text, the path of a file, or - for standard input, which is the default. JSON
    must contain every untagged field, as Kafka's own tools require. With --defaults, missing fields
    get their defaults, and '{}' encodes a message in which every field has its default.
    """
    message_class = find_message(message, release, specs, specs_mode)
    number = version_of(message_class, version)
    try:
        value = message_class.from_json(read_json(source), number, defaults=defaults)
    except MissingFieldsError:
        note("use --defaults to fill in the defaults from the spec")
        raise
    encoded = value.encode(number, encoding=encoding)
    lost = dict.fromkeys(_left_out(value, message_class.definition.schema(number)))
    if lost:
        names = " and ".join([", ".join([*lost][:-1]), [*lost][-1]] if len(lost) > 1 else lost)
        note(
            f"version {number} does not contain {names}, so this data was left out; the spec "
            "permits this"
        )
    if output is Format.JSON:
        form = {
            "message": message_class.entry.name,
            "version": number,
            "length": len(encoded),
            "hex": encoded.hex(),
            "base64": base64.b64encode(encoded).decode(),
        }
        print(json.dumps(form, indent=2))
    elif notation is Notation.RAW:
        sys.stdout.buffer.write(encoded)
    elif notation is Notation.BASE64:
        print(base64.b64encode(encoded).decode())
    else:
        print(encoded.hex())


def _left_out(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Yield fields that the version lacks and whose values may be left out."""
    from flexwire.codec.mappings import to_plain
    from flexwire.wire.schema import Presence, struct_of

    for field in schema.fields:
        field_value, here = getattr(value, field.attribute), f"{path}{field.json_name}"
        inner = struct_of(field.type)
        if field.presence is Presence.ABSENT:
            if not field.is_default(to_plain(field_value, field.type)):
                yield here
        elif inner is not None and isinstance(field_value, list):
            for item in field_value:
                yield from _left_out(item, inner, f"{here}[].")
        elif inner is not None and field_value is not None:
            yield from _left_out(field_value, inner, f"{here}.")
