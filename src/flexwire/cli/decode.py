"""`flexwire decode`: bytes to JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.frames import (
    Framing,
    Shown,
    framing_options,
    hint,
    named,
    needed_version,
    one_frame,
    read_frames,
    refuse_for_frames,
    words_argument,
)
from flexwire.cli.loudness import note
from flexwire.cli.options import (
    Format,
    Notation,
    encoding_option,
    find_message,
    given_lines,
    lenient_option,
    notation_option,
    optional_version_option,
    read_bytes,
    read_line,
    release_option,
    specs_options,
)
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.errors import DecodeError, FlexwireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec import Message
    from flexwire.schema.parse import Mode
    from flexwire.wire.encoding import Encoding


@click.command()
@words_argument
@optional_version_option
@framing_options
@click.option(
    "--lines",
    is_flag=True,
    help="Each line of DATA, a file or - for standard input, is one message or frame, in hex or "
    "base64; it is answered by one line.",
)
@release_option
@specs_options
@encoding_option
@notation_option
@lenient_option
@click.option("--compact", is_flag=True, help="One line of JSON.")
@click.option(
    "--format",
    "output",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.JSON,
    show_default="json",
    help="What to print: the JSON form, or text to read, with the names of error codes.",
)
@takes_standard_input("words", "request", specs=spec_name)
def decode(
    *,
    words: tuple[str, ...],
    version: int | str | None,
    lines: bool,
    release: str | None,
    specs: tuple[str, ...],
    specs_mode: Mode,
    encoding: Encoding,
    notation: Notation,
    lenient: bool,
    compact: bool,
    output: Format,
    **framing: Any,
) -> None:
    """Decode one MESSAGE, or a whole frame, and print its JSON form.

    The bytes are those of the message alone, without a request or response header. With --frame
    they are header and body together; error codes then have their names, and records are shown.

    DATA is hex, a hex dump, base64, a file's path, or - for standard input.

    \b
    flexwire decode MetadataRequest 00010000 --version 12
    flexwire decode --frame request.hex
    flexwire decode --frame response.hex --api Metadata --version 12
    flexwire decode capture.pcapng --frame-number 17
    """  # noqa: D301 - click takes the character itself
    how = Framing(**framing)
    if output is Format.TEXT and (lines or compact):
        raise click.UsageError("--lines and --compact print JSON, so leave out --format text")
    message, data = named(words, how)
    if message is None:
        refuse_for_frames(release, specs, encoding, lenient=lenient)
        if lines:
            _print_lines(data, notation, lambda raw: _form(one_frame(raw, notation, how, version)))
            return
        with how.hinting():
            for shown in read_frames(data, notation, how, version):
                _print_frame(_form(shown), output, compact=compact)
        return
    made = find_message(message, release, specs, specs_mode)
    number = needed_version(made, version)

    def read(raw: bytes) -> Any:
        value = made.decode(raw, number, lenient=lenient, encoding=encoding)
        return value.to_json(number) if output is Format.JSON else _named_form(value, number)

    if lines:
        _print_lines(data, notation, read)
        return
    raw = read_bytes(data, notation)
    try:
        form = read(raw)
    except DecodeError:
        if told := hint(raw):
            note(told)
        raise
    _print_message(f"{made.__name__} version {number}", form, output, compact=compact)


def _named_form(value: Message, version: int) -> dict[str, Any]:
    from flexwire.protocol.shown import shown as as_json

    return as_json(value, version)


def _form(shown: Shown) -> dict[str, Any]:
    from flexwire.codec import message
    from flexwire.protocol import withhold
    from flexwire.protocol.shown import shown as as_json

    frame = shown.frame
    header = frame.header
    body = message(header.message_name).decode(frame.body, frame.version)
    withheld = withhold(body) if shown.withheld else 0
    return {
        "frame": frame.kind,
        **({"where": shown.where} if shown.where else {}),
        "length": len(frame.payload),
        "headerVersion": header.header_version,
        "header": header.header.to_json(header.header_version),
        "message": header.message_name,
        "version": frame.version,
        "body": as_json(body, frame.version),
        **({"withheldCredentials": withheld} if withheld else {}),
    }


def _print_message(title: str, form: dict[str, Any], output: Format, *, compact: bool) -> None:
    if output is Format.JSON:
        _print(form, compact=compact)
        return
    from flexwire.cli.outline import print_outline

    print_outline(title, form)


def _print_frame(form: dict[str, Any], output: Format, *, compact: bool) -> None:
    if output is Format.JSON:
        _print(form, compact=compact)
        return
    from flexwire.cli.explain import withheld_note
    from flexwire.cli.outline import print_outline
    from flexwire.report.units import plural

    where = f"{form['where']}: " if "where" in form else ""
    withheld = withheld_note(form.get("withheldCredentials", 0))
    print(f"{where}{form['frame']} of {plural(form['length'], 'byte')}{withheld}")
    # What the header's JSON holds has its version beside it, and no name of its own.
    print_outline(f"header version {form['headerVersion']}", form["header"])
    print_outline(f"{form['message']} version {form['version']}", form["body"])


def _print(form: Any, *, compact: bool) -> None:
    print(json.dumps(form, ensure_ascii=False, indent=None if compact else 2))


def _print_lines(data: str, notation: Notation, read: Callable[[bytes], Any]) -> None:
    """Decode each line; one that does not decode says why in its place, and the command fails."""
    failed = 0
    for _, line in given_lines(data):
        try:
            form = read(read_line(line, notation))
        except FlexwireError as error:
            failed += 1
            form = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(form, ensure_ascii=False), flush=True)
    if failed:
        print(f"{failed} of the lines did not decode", file=sys.stderr)
        sys.exit(1)
