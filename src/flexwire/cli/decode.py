"""`flexwire decode`: convert bytes to JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.frames import (
    FramingOptions,
    ShownFrame,
    body_and_version,
    frames_of,
    framing_options,
    hint,
    raise_first,
    read_frames,
    refuse_for_frames,
    split_words,
    words_argument,
)
from flexwire.cli.options import (
    Format,
    Notation,
    encoding_option,
    find_message,
    lenient_option,
    notation_option,
    optional_version_option,
    read_bytes,
    read_line,
    read_lines,
    release_option,
    specs_options,
)
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.cli.terminal import note, print_line
from flexwire.errors import DecodeError, FlexwireError
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
    help="Treat each line of DATA (a file, or - for standard input) as one message or frame, in "
    "hex or base64. The command prints one line for each message or frame.",
)
@release_option
@specs_options
@encoding_option
@notation_option
@lenient_option
@click.option("--compact", is_flag=True, help="Print JSON on one line.")
@click.option(
    "--format",
    "output",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.JSON,
    show_default="json",
    help="The output format: JSON, or human-readable text that includes the names of error codes.",
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
    **framing_values: Any,
) -> None:
    """Decode one MESSAGE, or a whole frame, and print its JSON form.

    Without --frame, DATA is the message alone, without a request or response header. With --frame,
    DATA is the header and body together, and the output includes records and error code names.

    DATA is hex, a hex dump, base64, the path of a file, or - for standard input.

    \b
    flexwire decode MetadataRequest 00010000 --version 12
    flexwire decode --frame request.hex
    flexwire decode --frame response.hex --api Metadata --version 12
    flexwire decode capture.pcapng --frame-number 17
    """  # noqa: D301 - click needs a real backspace character
    framing = FramingOptions(**framing_values)
    if output is Format.TEXT and (lines or compact):
        raise click.UsageError("--lines and --compact print JSON, so leave out --format text")
    message, data = split_words(words, framing)
    if message is None:
        refuse_for_frames(release, specs, encoding, lenient=lenient)
        if lines:

            def read_line(raw: bytes) -> Any:
                return _line(frames_of(raw, notation, framing, version))

            _print_lines(data, notation, read_line, _is_part)
            return
        frames = read_frames(data, notation, framing, version)
        for shown in frames:
            if shown.is_believed or frames[1:]:
                _print_frame(frame_form(shown), output, compact=compact)
        raise_first(frames, framing)
        return
    message_class = find_message(message, release, specs, specs_mode)

    def read(raw: bytes) -> tuple[Any, int]:
        body, number = body_and_version(message_class, raw, version)
        value = message_class.decode(body, number, lenient=lenient, encoding=encoding)
        form = value.to_json(number) if output is Format.JSON else named_form(value, number)
        return form, number

    if lines:
        _print_lines(data, notation, lambda raw: read(raw)[0])
        return
    form, number = _hinting(read, read_bytes(data, notation))
    _print_message(f"{message_class.__name__} version {number}", form, output, compact=compact)


def _hinting(decode_bytes: Callable[[bytes], tuple[Any, int]], raw: bytes) -> tuple[Any, int]:
    """Decode a message. If the bytes cannot be decoded, print a hint that they may be a frame."""
    try:
        return decode_bytes(raw)
    except DecodeError:
        if advice := hint(raw):
            note(advice)
        raise


def named_form(value: Message, version: int) -> dict[str, Any]:
    """Return the JSON form of a message, with names of error codes and decoded records."""
    from flexwire.protocol.readable_json import to_readable_json as as_json

    return as_json(value, version)


def frame_form(shown: ShownFrame) -> dict[str, Any]:
    """Return the JSON form of a frame, or of the part of the frame that could be read."""
    from flexwire.codec import message
    from flexwire.protocol import withhold
    from flexwire.protocol.readable_json import to_readable_json as as_json

    frame = shown.frame
    if frame is None:
        return _form_of_part(shown)
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


def _form_of_part(shown: ShownFrame) -> dict[str, Any]:
    """Return the form of an incomplete or invalid frame: the part that was read, and the error."""
    from flexwire.codec import message
    from flexwire.protocol.readable_json import make_readable

    part = shown.part
    if part is None:
        raise AssertionError  # ``part`` is never None for an incomplete frame.
    here = len(part.payload)
    form: dict[str, Any] = {
        "frame": part.kind,
        **({"where": shown.where} if shown.where else {}),
        "length": part.announced if part.is_cut or part.announced else here,
    }
    if form["length"] != here:
        form["present"] = here
    if not shown.is_believed:
        return {**form, "error": f"{type(part.error).__name__}: {part.error}"}
    if part.message_name is not None:
        form["headerVersion"] = part.header_version
    is_hidden = shown.withheld and part.may_hold_credentials
    if part.header is not None and part.header.form:
        # An invalid length may have moved a credential into the strings of the header.
        form["header"] = {
            name: value
            for name, value in part.header.form.items()
            if isinstance(value, int) or not is_hidden
        }
    if part.message_name is not None:
        form |= {"message": part.message_name, "version": part.version}
        if is_hidden:
            form["withheldCredentials"] = 1
        elif part.body is not None:
            form["body"] = make_readable(part.body.form, message(part.message_name), part.version)
    return {**form, "error": f"{type(part.error).__name__}: {part.error}"}


def _line(frames: list[ShownFrame]) -> dict[str, Any]:
    """Return the output for one line of input, with all frames in the line."""
    forms = [frame_form(frame) for frame in frames]
    if len(forms) == 1:
        return forms[0]
    failed = [form["error"] for form in forms if "error" in form]
    return {"frames": forms, **({"error": failed[0]} if failed else {})}


def _print_message(title: str, form: dict[str, Any], output: Format, *, compact: bool) -> None:
    if output is Format.JSON:
        _print(form, compact=compact)
        return
    print_outline(title, form)


def _print_frame(form: dict[str, Any], output: Format, *, compact: bool) -> None:
    if output is Format.JSON:
        _print(form, compact=compact)
        return
    from flexwire.cli.explain import withheld_note
    from flexwire.facts.units import plural

    where = f"{form['where']}: " if "where" in form else ""
    withheld = withheld_note(form.get("withheldCredentials", 0))
    size = "unknown size" if form["length"] is None else plural(form["length"], "byte")
    here = f", of which {form['present']} are present" if "present" in form else ""
    print_line(f"{where}{form['frame']} of {size}{here}{withheld}")
    # A header has no message name. The header version is in headerVersion, next to the JSON form.
    if "header" in form:
        version = f" version {form['headerVersion']}" if "headerVersion" in form else ""
        print_outline(f"header{version}", form["header"])
    if "body" in form:
        print_outline(f"{form['message']} version {form['version']}", form["body"])


def _print(form: Any, *, compact: bool) -> None:
    print(json.dumps(form, ensure_ascii=False, indent=None if compact else 2))


def _is_part(form: dict[str, Any]) -> bool:
    """Return whether the frames in a line are incomplete."""
    return "error" in form


def _print_lines(
    data: str,
    notation: Notation,
    decode_line: Callable[[bytes], Any],
    is_part: Callable[[Any], bool] = lambda _: False,
) -> None:
    """Decode each line. If a line fails, its output is the error, and the command fails."""
    failed = 0
    for _, line in read_lines(data):
        try:
            form = decode_line(read_line(line, notation))
        except FlexwireError as error:
            failed += 1
            form = {"error": f"{type(error).__name__}: {error}"}
        else:
            failed += is_part(form)
        print(json.dumps(form, ensure_ascii=False), flush=True)
    if failed:
        print(f"{failed} of the lines could not be decoded", file=sys.stderr)
        sys.exit(1)


_WITHIN = "  "


def outline(form: Mapping[str, Any]) -> Iterator[str]:
    """Yield a form as lines: values in JSON, and error codes with their names.

    Every element of an array begins with a dash. Arrays of plain values stay on one line.

    >>> for line in outline({"topics": [{"name": "a", "ids": [1, 2]}, {"name": "b", "ids": []}]}):
    ...     print(line)
    topics:
      - name: "a"
        ids: [1, 2]
      - name: "b"
        ids: []
    """
    from flexwire.protocol.readable_json import error_name_key

    keys = {error_name_key(name) for name in form}
    for name, value in form.items():
        if name not in keys:
            yield from _field(name, value, form.get(error_name_key(name)))


def print_outline(title: str, form: Mapping[str, Any]) -> None:
    """Print a title, and the lines of a form below it."""
    print(title)
    for line in outline(form):
        print(f"{_WITHIN}{line}")


def _field(name: str, value: Any, called: str | None) -> Iterator[str]:
    name_text = printable(name)
    if isinstance(value, dict) and value:
        yield f"{name_text}:"
        yield from (_WITHIN + line for line in outline(value))
    elif isinstance(value, list) and any(isinstance(element, dict | list) for element in value):
        yield f"{name_text}:"
        for element in value:
            yield from (_WITHIN + line for line in _element(element))
    else:
        yield f"{name_text}: {_plain(value)}" + (f" {called}" if called else "")


def _element(element: Any) -> Iterator[str]:
    lines = outline(element) if isinstance(element, dict) and element else iter([_plain(element)])
    yield f"- {next(lines)}"
    yield from (_WITHIN + line for line in lines)


def _plain(value: Any) -> str:
    # The text may contain control characters from the network.
    return printable(json.dumps(value, ensure_ascii=False))
