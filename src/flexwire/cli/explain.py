"""`flexwire explain`: an annotated hex dump."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.frames import (
    Framing,
    Shown,
    framing_options,
    hint,
    named,
    needed_version,
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
    format_option,
    lenient_option,
    notation_option,
    optional_version_option,
    read_bytes,
    release_option,
    specs_options,
)
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec import Annotation, Explanation
    from flexwire.schema.parse import Mode
    from flexwire.wire.encoding import Encoding

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
@takes_standard_input("words", "request", specs=spec_name)
def explain(
    *,
    words: tuple[str, ...],
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
    """  # noqa: D301 - click takes the character itself
    how = Framing(**framing)
    message, data = named(words, how)
    if message is None:
        refuse_for_frames(release, specs, encoding, lenient=lenient)
        with how.hinting():
            _explain_frames(read_frames(data, notation, how, version), output)
        return
    made = find_message(message, release, specs, specs_mode)
    raw = read_bytes(data, notation)
    number = needed_version(made, version)
    from flexwire.codec import explain as explain_bytes

    found = explain_bytes(made, raw, number, lenient=lenient, encoding=encoding)
    if output is Format.JSON:
        print(json.dumps(_as_json(found), ensure_ascii=False, indent=2))
    else:
        for line in table_lines(found, raw):
            print(line)
    if found.error is not None:
        if told := hint(raw):
            note(told)
        raise found.error


def _explain_frames(frames: list[Shown], output: Format) -> None:
    from flexwire.protocol.whole_frames import explain_frame

    error = None
    forms = []
    for shown in frames:
        if shown.where and output is Format.TEXT:
            print(shown.where)
        for part in explain_frame(shown.frame, withheld=shown.withheld):
            told = withheld_note(part.withheld)
            if output is Format.TEXT:
                print(f"{part.title}{told}")
                for line in table_lines(part.explanation, part.data):
                    print(line)
                print()
            forms.append({"title": f"{part.title}{told}", **_as_json(part.explanation)})
            error = error or part.explanation.error
    if output is Format.JSON:
        print(json.dumps(forms, ensure_ascii=False, indent=2))
    if error is not None:
        raise error


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
