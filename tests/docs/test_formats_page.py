"""docs/formats.md says every key of the JSON that an analysis writes, as its classes do.

Write it anew with ``python -m tests.docs.test_formats_page``.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from pathlib import Path
from typing import Any, get_args, get_origin

from flexwire.capture.files.comments import (
    CaptureFilter,
    filter_comment,
    sampling_comment,
    stamp_comment,
)
from flexwire.facts.audit import Audit, AuditFinding
from flexwire.facts.facts import Facts
from flexwire.parties import Party
from flexwire.report.audit_files import COLUMNS, audit_json

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
MARK = "<!-- From here on written from the classes. -->\n"
COMMENTS_HEAD = """
## What `tap` writes

Files of pcapng, one after another ([the ring](tap.md)). What flexwire knows beside the packets
stands in comments, which other readers keep and show:

| comment | where | example |
|---|---|---|
"""
COMMENTS = [
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
]


def page() -> str:
    """Write the page."""
    comments = "".join(
        f"| {what} | {where} | `{text.decode()}` |\n" for what, where, text in COMMENTS
    )
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    return written + MARK + COMMENTS_HEAD + comments + facts() + audit()


def facts() -> str:
    """What `facts.json` has, a section for each class in it."""
    head = """
## facts.json

One object, `Facts`. Keys end with their units: `…_us` is whole microseconds (since the epoch, UTC,
for a moment), `…_ms` milliseconds, `…bytes` bytes. What may be unknown is null.
`flexwire.facts.facts.Facts.from_json` reads it.
"""
    return head + "".join(map(section, classes_of(Facts)))


def audit() -> str:
    """What `audit.json` and `audit.csv` have."""
    columns = "".join(f"- `{one}`\n" for one in COLUMNS)
    return f"""
## audit.json

The keys of [Audit](#audit), but that `findings` are as in `audit.csv`: one object each with these
keys, unknown ones null, times as ISO 8601 in UTC, groups and topics as arrays. Where captures hold
a part, `sampled` says of what. They are the columns of `audit.csv`, in their order, and mean what
[the table of the audit](tables.md#audit) says:

{columns}"""


def section(one: type) -> str:
    hints = typing.get_type_hints(one)
    lines = [
        f"| `{field.name}` | {shown(hints[field.name])} |" for field in dataclasses.fields(one)
    ]
    told = inspect.cleandoc(one.__doc__ or "").partition("\n>>>")[0].strip()
    text = re.sub(r"``?([^`]+)``?", r"`\1`", told)
    return "\n".join([f"\n### {one.__name__}\n{text}\n", "| key | what |", "|---|---|", *lines, ""])


def shown(kind: Any) -> str:
    """A type as JSON has it."""
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return f"array of {shown(arguments[0])}"
    if get_origin(kind) is dict:
        return f"object of {shown(arguments[1])}"
    if get_origin(kind) is typing.Literal:
        return ", ".join(f'"{one}"' for one in arguments)
    if get_origin(kind) in {types.UnionType, typing.Union}:
        return " or ".join("null" if one is types.NoneType else shown(one) for one in arguments)
    if dataclasses.is_dataclass(kind):
        name = kind.__name__ if isinstance(kind, type) else ""
        return f"[{name}](#{name.lower()})"
    return {str: "string", int: "integer", float: "number", bool: "boolean"}.get(kind, str(kind))


def classes_of(one: Any, found: list[type] | None = None) -> list[type]:
    """The classes that stand in ``one``, itself first."""
    found = [] if found is None else found
    for argument in get_args(one):
        classes_of(argument, found)
    if dataclasses.is_dataclass(one) and isinstance(one, type) and one not in found:
        found.append(one)
        for hint in typing.get_type_hints(one).values():
            classes_of(hint, found)
    return found


def test_the_page_is_what_the_classes_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_key_of_facts_is_on_the_page() -> None:
    built = Facts(title="t", made_at_us=0, flexwire_version="0", newest_release="4").to_json()
    told = PAGE.read_text(encoding="utf-8").partition("\n### Facts\n")[2].partition("\n### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE) == [*built]


def test_a_finding_has_the_keys_that_the_page_lists() -> None:
    party = Party(client_id=None, address=None)
    finding = AuditFinding("4.4.0", "will break", "", "", "client", party, 1, 0, 0, 1, 1)
    (written,) = json.loads(audit_json(Audit(findings=(finding,))))["findings"]
    told = PAGE.read_text(encoding="utf-8").partition("\n## audit.json\n")[2]
    assert re.findall(r"^- `(\w+)`$", told, re.MULTILINE) == [*written]


def test_every_type_has_a_word_and_every_class_says_what_it_is() -> None:
    told = PAGE.read_text(encoding="utf-8")
    assert "| value |" not in told
    assert all(f"\n### {one.__name__}\n" in told for one in classes_of(Facts))
    assert all(one.__doc__ for one in classes_of(Facts))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
