"""docs/formats.md: every key in the JSON that an analysis writes, from its classes."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from typing import TYPE_CHECKING, Any, get_args, get_origin

from flexwire.capture.files.comments import (
    CaptureFilter,
    fault_comment,
    faults_comment,
    filter_comment,
    rehearsal_comment,
    rehearsing_comment,
    sampling_comment,
    stamp_comment,
)
from flexwire.facts.facts import Facts
from flexwire.report.audit_files import COLUMNS
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "formats.md"
_MARK = "<!-- From here on written from the classes. -->\n"
_COMMENTS_HEAD = """
## What `tap` writes

`tap` writes pcapng files, one after another ([the ring](tap.md)). Comments in these files contain
what flexwire knows in addition to the packets. Other programs that read these files keep and show
the comments:

| comment | where | example |
|---|---|---|
"""
_COMMENTS = [
    (
        "a part of the connections (`--sample`)",
        "section header",
        sampling_comment(0.1),
    ),
    (
        "a part of the frames (`--only-…`)",
        "section header",
        filter_comment(CaptureFilter(topics=("orders",))),
    ),
    (
        "tags that were added to a request's header (`--header-tag`)",
        "the packet with which the request begins",
        stamp_comment(7, {10042: b"hi"}),
    ),
    (
        "a [rehearsal](rehearse.md) (`--pretend`)",
        "section header",
        rehearsing_comment("4.4.0"),
    ),
    (
        "what a [rehearsal](rehearse.md) did with a request (`--pretend`)",
        "the packet with which the request begins",
        rehearsal_comment(7, "4.4.0", "closed", "Produce v2", "billing"),
    ),
    (
        "the [faults](faults.md) of a tap (`--fault`)",
        "section header",
        faults_comment(["Fetch delay=2s 5%"], 7),
    ),
    (
        "what a [fault](faults.md) did (`--fault`)",
        "the packet with which the request or response begins",
        fault_comment(7, "Fetch delay=2s 5%", "delayed"),
    ),
]


def files() -> dict[Path, str]:
    """Return the page. Everything above the mark is written by hand and is kept."""
    comments = "".join(
        f"| {subject} | {place} | `{text.decode()}` |\n" for subject, place, text in _COMMENTS
    )
    written = PAGE.read_text(encoding="utf-8").partition(_MARK)[0]
    return {PAGE: written + _MARK + _COMMENTS_HEAD + comments + _facts() + _audit()}


def _facts() -> str:
    """Return the part about `facts.json`, with a section for each class in it."""
    head = """
## facts.json

The file contains one object, `Facts`. Each key ends with its unit: `…_us` is whole microseconds,
`…_ms` is milliseconds, `…bytes` is bytes. A point in time is in microseconds since the epoch, UTC.
An unknown value is null. `flexwire.facts.facts.Facts.from_json` reads the file.
"""
    return head + "".join(map(_section, classes_of(Facts)))


def _audit() -> str:
    """Return the part about `audit.json` and `audit.csv`."""
    columns = "".join(f"- `{name}`\n" for name in COLUMNS)
    return f"""
## audit.json

The file contains the keys of [Audit](#audit), but each of the `findings` is an object with the keys
below. Unknown values are null, times are in ISO 8601 format in UTC, and groups and topics are
arrays. If captures contain only a part of the traffic, `sampled` states which part. The keys are
the columns of `audit.csv`, in their order. [The table of the audit](tables.md#audit) describes the
meaning of each key:

{columns}"""


def _section(kind: type) -> str:
    hints = typing.get_type_hints(kind)
    lines = [
        f"| `{field.name}` | {_type_text(hints[field.name])} |"
        for field in dataclasses.fields(kind)
    ]
    description = inspect.cleandoc(kind.__doc__ or "").partition("\n>>>")[0].strip()
    text = re.sub(r"``?([^`]+)``?", r"`\1`", description)
    return "\n".join(
        [f"\n### {kind.__name__}\n{text}\n", "| key | what |", "|---|---|", *lines, ""]
    )


def _type_text(kind: Any) -> str:
    """Return a type in JSON's terms."""
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return f"array of {_type_text(arguments[0])}"
    if get_origin(kind) is dict:
        return f"object of {_type_text(arguments[1])}"
    if get_origin(kind) is typing.Literal:
        return ", ".join(f'"{value}"' for value in arguments)
    if get_origin(kind) in {types.UnionType, typing.Union}:
        return " or ".join(
            "null" if member is types.NoneType else _type_text(member) for member in arguments
        )
    if dataclasses.is_dataclass(kind):
        name = kind.__name__ if isinstance(kind, type) else ""
        return f"[{name}](#{name.lower()})"
    return {str: "string", int: "integer", float: "number", bool: "boolean"}.get(kind, str(kind))


def classes_of(kind: Any, classes: list[type] | None = None) -> list[type]:
    """Return the dataclasses in a type, starting with the type itself."""
    classes = [] if classes is None else classes
    for argument in get_args(kind):
        classes_of(argument, classes)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind not in classes:
        classes.append(kind)
        for hint in typing.get_type_hints(kind).values():
            classes_of(hint, classes)
    return classes


if __name__ == "__main__":
    write_files(files())
