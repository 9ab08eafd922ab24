"""Tool results as escaped text of limited length, with a count of omissions.

A client pays for each character of a result, and names in a capture come from strangers. A result
is therefore truncated to `MOST_CHARACTERS`. The text of a result is JSON in which
`flexwire.printable` has escaped all invisible characters.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from flexwire.facts.units import shorten
from flexwire.printable import printable

MOST_CHARACTERS: Final = 50_000
"""The approximate number of characters in the longest result."""
LONGEST_TEXT: Final = 2_000
"""The maximum number of characters in a value. Longer values are truncated."""
MOST_PLACES: Final = 20
"""The maximum number of places with omissions that a result lists."""
_SHORTEST_TEXT: Final = 20
# A field needs its name and a few further characters.
_AROUND: Final = 4
# Additional characters for plain values. The error in a result is such a value.
_RESERVE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a result. ``more`` is the number of rows after them."""

    rows: list[Any]
    more: int = 0

    @classmethod
    def of(cls, rows: list[Any], skip: int, most: int) -> Page:
        """Return at most ``most`` rows after the first ``skip`` rows.

        >>> Page.of([1, 2, 3, 4], 1, 2)
        Page(rows=[2, 3], more=1)
        """
        return cls(rows[skip : skip + most], max(len(rows) - skip - most, 0))


def to_text(form: dict[str, Any]) -> str:
    r"""Return a result as JSON text, with a list of the omitted parts.

    The elements of a dict, a list and a `Page` are kept until the text reaches `MOST_CHARACTERS`.
    ``leftOut`` lists each place with the number of elements that are missing there. ``leftOut`` is
    empty if nothing is missing. A truncated text ends with the number of its missing characters.

    >>> print(to_text({"rows": Page(["a\x1b[2J"], more=7)}))
    {"result": {"rows": ["a\u001b[2J"]}, "leftOut": [{"place": "rows", "count": 7}]}
    """
    cutter = _Cutter()
    answer = {"result": cutter.cut(form, ""), "leftOut": cutter.left_out}
    if cutter.more_places:
        answer["placesNotNamed"] = cutter.more_places
    return _text_of(answer)


def _text_of(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))


class _Cutter:
    """Truncate a form to a length.

    ``left_out`` contains the number of missing elements for each place.
    """

    def __init__(self) -> None:
        self._room = MOST_CHARACTERS
        self.left_out: list[dict[str, Any]] = []
        self.more_places = 0

    def cut(self, value: Any, place: str) -> Any:
        if isinstance(value, dict):
            return self._cut_fields(value, place)
        if isinstance(value, Page):
            return self._cut_elements(value.rows, place, value.more)
        if isinstance(value, list | tuple):
            return self._cut_elements(value, place, 0)
        if isinstance(value, str):
            value = self._cut_text(value)
        self._room -= len(_text_of(value)) + _AROUND
        return value

    def _cut_fields(self, fields: dict[str, Any], place: str) -> dict[str, Any]:
        """Truncate fields, but keep plain values first, so that no long list displaces an error."""
        kept: dict[str, Any] = {}
        for is_inner in (False, True):
            for name, value in fields.items():
                if isinstance(value, dict | list | tuple | Page) != is_inner:
                    continue
                if self._room <= (0 if is_inner else -_RESERVE):
                    continue
                self._room -= len(name) + _AROUND
                kept[name] = self.cut(value, f"{place}.{name}" if place else name)
        self._note(place, len(fields) - len(kept))
        return {name: kept[name] for name in fields if name in kept}

    def _cut_elements(self, elements: Any, place: str, more: int) -> list[Any]:
        kept: list[Any] = []
        for number, element in enumerate(elements):
            if self._room <= 0:
                break
            kept.append(self.cut(element, f"{place}[{number}]"))
        self._note(place, len(elements) - len(kept) + more)
        return kept

    def _cut_text(self, text: str) -> str:
        most = max(min(LONGEST_TEXT, self._room), _SHORTEST_TEXT)
        kept = most
        # A character that is escaped may become twelve characters.
        while (size := len(_text_of(text[:kept]))) > most + _AROUND:
            kept = kept * most // size
        return shorten(text, kept)

    def _note(self, place: str, count: int) -> None:
        if not count:
            return
        if len(self.left_out) < MOST_PLACES:
            self.left_out.append({"place": shorten(place), "count": count})
        else:
            self.more_places += 1
