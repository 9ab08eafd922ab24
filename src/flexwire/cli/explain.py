"""`flexwire explain`: an annotated hex dump."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.frames import (
    Framing,
    Shown,
    body_and_version,
    framing_options,
    hint,
    named,
    raise_first,
    read_frames,
    refuse_for_frames,
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
# Eight bytes a line leave room for the path and the value on a screen of 100 columns.
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
    help="Say what N is, a size from an error in a log: a number, 0x and hex digits, or four "
    "characters. Nothing else is given then.",
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
    **framing: Any,
) -> None:
    """Explain one MESSAGE, or a whole frame, byte by byte.

    Prints an annotated hex dump: offset, bytes, field path, type, value, and the names of error
    codes. Records are explained as well, unless they are compressed.

    DATA is hex, a hex dump, base64, a file's path, or - for standard input. What precedes an error
    is explained too; the error goes to standard error, with exit code 1.

    \b
    flexwire explain MetadataRequest 00010000 --version 12
    flexwire explain --frame response.hex --request request.hex
    flexwire explain capture.pcapng --frame-number 17
    flexwire explain --size 369295616
    """  # noqa: D301 - click takes the character itself
    how = Framing(**framing)
    if size is not None:
        if words or how.is_asked or version is not None:
            raise click.UsageError("--size explains a number; leave out all else")
        _explain_size(size, output)
        return
    message, data = named(words, how)
    if message is None:
        refuse_for_frames(release, specs, encoding, lenient=lenient)
        frames = read_frames(data, notation, how, version)
        _explain_frames(frames, output)
        raise_first(frames, how)
        return
    made = find_message(message, release, specs, specs_mode)
    raw = read_bytes(data, notation)
    found = _explained(made, raw, version, lenient=lenient, encoding=encoding)
    if output is Format.JSON:
        print(json.dumps(_as_json(found), ensure_ascii=False, indent=2))
    else:
        for line in table_lines(found, raw):
            print(line)
    if found.error is not None:
        if told := hint(raw):
            note(told)
        raise found.error


def _explained(
    made: type[Message],
    raw: bytes,
    version: int | str | None,
    *,
    lenient: bool,
    encoding: Encoding,
) -> Explanation:
    from flexwire.codec import explain as explain_bytes
    from flexwire.protocol.nested_messages import explain_versioned, with_nested

    body, number = body_and_version(made, raw, version)
    if len(body) < len(raw):
        found = explain_versioned(made, raw)
        if found is not None:
            return found[0]
    explained = explain_bytes(made, raw, number, lenient=lenient, encoding=encoding)
    return with_nested(explained, made.__name__)


def _explain_size(text: str, output: Format) -> None:
    from flexwire.protocol.first_bytes import identify_first_bytes, parse_size

    first = parse_size(text)
    found = identify_first_bytes(first)
    number = int.from_bytes(first, "big", signed=True)
    if output is Format.JSON:
        form = {
            "size": number,
            "bytes": first.hex(),
            "isLength": found.is_length,
            "what": found.what,
            "advice": found.advice,
        }
        print(json.dumps(form, ensure_ascii=False, indent=2))
        return
    shown = first.decode("latin-1")
    told = f' "{printable(shown)}"' if shown.isprintable() and shown.isascii() else ""
    print(f"{number} is the bytes {first.hex(' ')}{told}: {found.what}")
    print(textwrap.fill(found.advice, _ADVICE_WIDTH))


def _explain_frames(frames: list[Shown], output: Format) -> None:
    error: DecodeError | None = None
    forms = []
    for shown in frames:
        if shown.where and output is Format.TEXT:
            print(shown.where)
        for part in _parts(shown):
            told = withheld_note(part.withheld)
            if output is Format.TEXT:
                print(f"{part.title}{told}")
                for line in table_lines(part.explanation, part.data):
                    print(line)
                print()
            forms.append({"title": f"{part.title}{told}", **_as_json(part.explanation)})
            if shown.part is None:
                error = error or part.explanation.error
    if output is Format.JSON:
        print(json.dumps(forms, ensure_ascii=False, indent=2))
    if error is not None:
        raise error


def _parts(shown: Shown) -> Iterator[FrameSection]:
    from flexwire.protocol.frame_explanation import explain_frame

    if shown.frame is not None:
        yield from explain_frame(shown.frame, withheld=shown.withheld)
    elif shown.part is not None:
        yield from shown.part.parts()


def withheld_note(count: int) -> str:
    """What a title says of credentials that are not shown."""
    if not count:
        return ""
    return f"; {count} {'credential is' if count == 1 else 'credentials are'} withheld"


def _as_json(found: Explanation) -> dict[str, Any]:
    return {
        "annotations": [
            {
                "offset": one.offset,
                "length": one.length,
                "path": one.path,
                "type": one.type,
                "value": _plain(one.value),
                **({"error": name} if (name := _error_name(one)) else {}),
            }
            for one in found.annotations
        ],
        "rest": found.rest,
        "error": None if found.error is None else str(found.error),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def table_lines(found: Explanation, raw: bytes) -> Iterator[str]:
    """The annotated hex dump, a line at a time."""
    rows = [
        (one.offset, one.offset + one.length, one.path, one.type, _text(one))
        for one in found.annotations
    ]
    if found.rest < len(raw):
        rows.append((found.rest, len(raw), "", "(not decoded)", ""))
    path_width = max([len(row[2]) for row in rows] + [len("field")])
    type_width = max([len(row[3]) for row in rows] + [len("type")])
    header = ("offset", "bytes".ljust(3 * _WIDTH - 1), "field".ljust(path_width))
    yield "  ".join((*header, "type".ljust(type_width), "value"))
    for start, stop, path, kind, value in rows:
        for line, (at, text) in enumerate(_hex_lines(raw, start, stop)):
            told = (path.ljust(path_width), kind.ljust(type_width), value)
            first = f"{at:6}  {text:{3 * _WIDTH - 1}}"
            yield "  ".join((first, *told)).rstrip() if line == 0 else first.rstrip()


def _hex_lines(raw: bytes, start: int, stop: int) -> Iterator[tuple[int, str]]:
    for at in range(start, stop, _WIDTH):
        yield at, raw[at : min(at + _WIDTH, stop)].hex(" ")
    if start == stop:
        yield start, ""


def _error_name(one: Annotation) -> str | None:
    """The name of an error code; None of another field, and of a code that Kafka does not have."""
    from flexwire.protocol.error_codes import error_name, is_error_code

    field = one.path.rpartition(".")[2]
    return error_name(one.value) if is_error_code(field, one.type.lower()) else None


def _text(one: Annotation) -> str:
    value = one.value
    if isinstance(value, bytes):
        return f"{len(value)} {'byte' if len(value) == 1 else 'bytes'}"
    if value is None:
        return "null"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    name = _error_name(one)
    return printable(text if name is None else f"{text} {name}")
