"""A message's JSON form as people read it: a name a line, and what is within one further in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from flexwire.printable import printable
from flexwire.protocol.shown import name_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WITHIN = "  "


def outline(form: Mapping[str, Any]) -> Iterator[str]:
    """Give the lines of a form: values as JSON has them, and an error code's name behind its code.

    Every element of an array begins with a dash. Arrays of plain values stay on one line.

    >>> for line in outline({"topics": [{"name": "a", "ids": [1, 2]}, {"name": "b", "ids": []}]}):
    ...     print(line)
    topics:
      - name: "a"
        ids: [1, 2]
      - name: "b"
        ids: []
    """
    keys = {name_key(name) for name in form}
    for name, value in form.items():
        if name not in keys:
            yield from _field(name, value, form.get(name_key(name)))


def print_outline(title: str, form: Mapping[str, Any]) -> None:
    """Print a title, and the form's lines below it."""
    print(title)
    for line in outline(form):
        print(f"{_WITHIN}{line}")


def _field(name: str, value: Any, called: str | None) -> Iterator[str]:
    told = printable(name)
    if isinstance(value, dict) and value:
        yield f"{told}:"
        yield from (_WITHIN + line for line in outline(value))
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        yield f"{told}:"
        for one in value:
            yield from (_WITHIN + line for line in _element(one))
    else:
        yield f"{told}: {_plain(value)}" + (f" {called}" if called else "")


def _element(one: Any) -> Iterator[str]:
    lines = outline(one) if isinstance(one, dict) and one else iter([_plain(one)])
    yield f"- {next(lines)}"
    yield from (_WITHIN + line for line in lines)


def _plain(value: Any) -> str:
    # What a terminal would obey comes from the network.
    return printable(json.dumps(value, ensure_ascii=False))
