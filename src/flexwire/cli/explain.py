"""`flexwire explain`: print an annotated hex dump."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.frames import (
    FramingOptions,
    ShownFrame,
    body_and_version,
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
    format_option,
    lenient_option,
    notation_option,
    optional_version_option,
    read_bytes,
    release_option,
    specs_options,
)
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.cli.terminal import note
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec import Annotation, Explanation, Message
    from flexwire.errors import DecodeError
    from flexwire.protocol.frame_explanation import FrameSection
    from flexwire.schema.parse import Mode
    from flexwire.wire.encoding import Encoding

_ADVICE_WIDTH = 96
# With eight bytes per line, the path and the value fit into 100 columns.
_WIDTH = 8


@click.command()
@words_argument
@optional_version_option
@framing_options
@release_option
@specs_options
@encoding_option
@notation_option
@lenient_option
@format_option
@click.option(
    "--size",
    metavar="N",
    help=(
        "Explain N, a size from an error message in a log. N is a decimal number, 0x followed by "
        "hex digits, or four characters. Do not combine this option with arguments or with "
        "options other than --format."
    ),
)
@takes_standard_input("words", "request", specs=spec_name)
def explain(
    *,
    words: tuple[str, ...],
    size: str | None,
    version: int | str | None,
    release: str | None,
    specs: tuple[str, ...],
    specs_mode: Mode,
    encoding: Encoding,
    notation: Notation,
    lenient: bool,
    output: Format,
    **framing_values: Any,
) -> None:
    """Explain one MESSAGE, or a whole frame, byte by byte.

    Prints an annotated hex dump: offset, bytes, field path, type, value, and the names of error
    codes. Records are also explained, unless they are compressed.

    DATA is hex, a hex dump, base64, the path of a file, or - for standard input. If the bytes
    contain an error, the command explains all bytes before the error, prints the error on standard
    error, and exits with 1.

    \b
    flexwire explain MetadataRequest 00010000 --version 12
    flexwire explain --frame response.hex --request request.hex
    flexwire explain capture.pcapng --frame-number 17
    flexwire explain --size 369295616
    """  # noqa: D301 - click needs a real backspace character
    framing = FramingOptions(**framing_values)
    if size is not None:
        if words or framing.is_asked or version is not None:
            raise click.UsageError("with --size, leave out all other arguments and options")
        _explain_size(size, output)
        return
    message, data = split_words(words, framing)
    if message is None:
        refuse_for_frames(release, specs, encoding, lenient=lenient)
        frames = read_frames(data, notation, framing, version)
        _explain_frames(frames, output)
        raise_first(frames, framing)
        return
    message_class = find_message(message, release, specs, specs_mode)
    raw = read_bytes(data, notation)
    explanation = explain_message(message_class, raw, version, lenient=lenient, encoding=encoding)
    if output is Format.JSON:
        print(json.dumps(explanation_form(explanation), ensure_ascii=False, indent=2))
    else:
        for line in table_lines(explanation, raw):
            print(line)
    if explanation.error is not None:
        if advice := hint(raw):
            note(advice)
        raise explanation.error


def explain_message(
    message_class: type[Message],
    raw: bytes,
    version: int | str | None,
    *,
    lenient: bool,
    encoding: Encoding,
) -> Explanation:
    """Explain a message in the given version, or in the version in the two preceding bytes."""
    from flexwire.codec import explain as explain_bytes
    from flexwire.protocol.nested_messages import explain_versioned, with_nested

    body, number = body_and_version(message_class, raw, version)
    if len(body) < len(raw):
        versioned = explain_versioned(message_class, raw)
        if versioned is not None:
            return versioned[0]
    explained = explain_bytes(message_class, raw, number, lenient=lenient, encoding=encoding)
    return with_nested(explained, message_class.__name__)


def _explain_size(text: str, output: Format) -> None:
    from flexwire.protocol.first_bytes import identify_first_bytes, parse_size

    first = parse_size(text)
    opening = identify_first_bytes(first)
    number = int.from_bytes(first, "big", signed=True)
    if output is Format.JSON:
        form = {
            "size": number,
            "bytes": first.hex(),
            "isLength": opening.is_length,
            "what": opening.what,
            "advice": opening.advice,
        }
        print(json.dumps(form, ensure_ascii=False, indent=2))
        return
    shown = first.decode("latin-1")
    as_text = f' "{printable(shown)}"' if shown.isprintable() and shown.isascii() else ""
    print(f"{number} is the bytes {first.hex(' ')}{as_text}: {opening.what}")
    print(textwrap.fill(opening.advice, _ADVICE_WIDTH))


def _explain_frames(frames: list[ShownFrame], output: Format) -> None:
    error: DecodeError | None = None
    forms = []
    for shown in frames:
        if shown.where and output is Format.TEXT:
            print(shown.where)
        for part in frame_sections(shown):
            withheld = withheld_note(part.withheld)
            if output is Format.TEXT:
                for line in section_lines(part):
                    print(line)
            forms.append({"title": f"{part.title}{withheld}", **explanation_form(part.explanation)})
            if shown.part is None:
                error = error or part.explanation.error
    if output is Format.JSON:
        print(json.dumps(forms, ensure_ascii=False, indent=2))
    if error is not None:
        raise error


def frame_sections(shown: ShownFrame) -> Iterator[FrameSection]:
    """Yield the readable parts of a frame's header and body."""
    from flexwire.protocol.frame_explanation import explain_frame

    if shown.frame is not None:
        yield from explain_frame(shown.frame, withheld=shown.withheld)
    elif shown.part is not None:
        yield from shown.part.parts(withheld=shown.withheld)


def section_lines(section: FrameSection) -> Iterator[str]:
    """Yield the title of a header or body, its annotated hex dump, and an empty line."""
    yield f"{section.title}{withheld_note(section.withheld)}"
    yield from table_lines(section.explanation, section.data)
    yield ""


def withheld_note(count: int) -> str:
    """Return the note about withheld credentials that is appended to a title."""
    if not count:
        return ""
    return f"; {count} {'credential is' if count == 1 else 'credentials are'} withheld"


def explanation_form(explanation: Explanation) -> dict[str, Any]:
    """Return the JSON form of an explanation; see docs/json.md."""
    return {
        "annotations": [
            {
                "offset": annotation.offset,
                "length": annotation.length,
                "path": annotation.path,
                "type": annotation.type,
                "value": _plain(annotation.value),
                **({"error": name} if (name := _error_name(annotation)) else {}),
            }
            for annotation in explanation.annotations
        ],
        "rest": explanation.rest,
        "error": None if explanation.error is None else str(explanation.error),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def table_lines(explanation: Explanation, raw: bytes) -> Iterator[str]:
    """Yield the lines of the annotated hex dump."""
    rows = [
        (
            annotation.offset,
            annotation.offset + annotation.length,
            annotation.path,
            annotation.type,
            _text(annotation),
        )
        for annotation in explanation.annotations
    ]
    if explanation.rest < len(raw):
        rows.append((explanation.rest, len(raw), "", "(not decoded)", ""))
    path_width = max([len(row[2]) for row in rows] + [len("field")])
    type_width = max([len(row[3]) for row in rows] + [len("type")])
    header = ("offset", "bytes".ljust(3 * _WIDTH - 1), "field".ljust(path_width))
    yield "  ".join((*header, "type".ljust(type_width), "value"))
    for start, stop, path, kind, value in rows:
        for line, (at, text) in enumerate(_hex_lines(raw, start, stop)):
            columns = (path.ljust(path_width), kind.ljust(type_width), value)
            first = f"{at:6}  {text:{3 * _WIDTH - 1}}"
            yield "  ".join((first, *columns)).rstrip() if line == 0 else first.rstrip()


def _hex_lines(raw: bytes, start: int, stop: int) -> Iterator[tuple[int, str]]:
    for at in range(start, stop, _WIDTH):
        yield at, raw[at : min(at + _WIDTH, stop)].hex(" ")
    if start == stop:
        yield start, ""


def _error_name(annotation: Annotation) -> str | None:
    """Return the name of an error code, or None for other fields and for unknown codes."""
    from flexwire.protocol.error_codes import error_name, is_error_code

    field = annotation.path.rpartition(".")[2]
    return error_name(annotation.value) if is_error_code(field, annotation.type.lower()) else None


def _text(annotation: Annotation) -> str:
    value = annotation.value
    if isinstance(value, bytes):
        return f"{len(value)} {'byte' if len(value) == 1 else 'bytes'}"
    if value is None:
        return "null"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    name = _error_name(annotation)
    return printable(text if name is None else f"{text} {name}")
