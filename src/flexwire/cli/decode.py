"""`flexwire decode`: bytes to JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from flexwire.cli.options import (
    Notation,
    data_argument,
    encoding_option,
    find_message,
    lenient_option,
    message_argument,
    notation_option,
    read_bytes,
    release_option,
    specs_options,
    version_option,
)

if TYPE_CHECKING:
    from flexwire.schema.parse import Mode
    from flexwire.wire.encoding import Encoding


@click.command()
@message_argument
@data_argument
@version_option
@release_option
@specs_options
@encoding_option
@notation_option
@lenient_option
@click.option("--compact", is_flag=True, help="One line of JSON.")
def decode(
    *,
    message: str,
    data: str,
    version: int,
    release: str | None,
    specs: tuple[str, ...],
    specs_mode: Mode,
    encoding: Encoding,
    notation: Notation,
    lenient: bool,
    compact: bool,
) -> None:
    """Decode one MESSAGE and print its JSON form.

    The bytes are those of the message alone, without a request or response header.

    DATA is hex, base64, a file's path, or - for standard input.
    """
    made = find_message(message, release, specs, specs_mode)
    decoded = made.decode(read_bytes(data, notation), version, lenient=lenient, encoding=encoding)
    form = decoded.to_json(version)
    print(json.dumps(form, ensure_ascii=False, indent=None if compact else 2))
