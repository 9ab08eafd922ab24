"""The guide to the bundled messages, built once, and its pages as read from disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from flexwire.schema.catalog import catalog
from flexwire.specs.guide import bundled_messages, render

if TYPE_CHECKING:
    from flexwire.specs.guide.messages import GuideMessage


@cache
def messages() -> dict[str, GuideMessage]:
    return {one.name: one for one in bundled_messages(catalog())}


@cache
def site() -> dict[str, str]:
    bundled = catalog()
    return render(messages().values(), f"Kafka {bundled.newest_release}", bundled.releases)


def page_of(name: str) -> str:
    message = messages()[name]
    return f"{'api' if message.is_api else 'message'}/{message.title}.html"


@dataclass
class Shown:
    """A table row as a reader sees it."""

    place: str
    cells: list[str] = field(default_factory=list)
    chips: list[str] = field(default_factory=list)


class Tables(HTMLParser):
    """The table rows that describe fields, by the place in the row's id, in page order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: dict[str, Shown] = {}
        self._row: Shown | None = None
        self._in_chip = self._in_note = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "tr" and "data-path" in given:
            self._row = self.rows[given["id"] or ""] = Shown(given["id"] or "")
        if self._row is None:
            return
        if tag in {"th", "td"}:
            self._row.cells.append("")
        self._in_note |= tag == "small"
        if (given.get("class") or "").startswith("chip"):
            self._in_chip = True
            self._row.chips.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr":
            self._row = None
        if tag == "span":
            self._in_chip = False
        if tag == "small":
            self._in_note = False

    def handle_data(self, data: str) -> None:
        if self._row is None or self._in_note:
            return
        if self._in_chip:
            self._row.chips[-1] += data
        elif self._row.cells:
            self._row.cells[-1] += data


@cache
def tables(path: str) -> dict[str, Shown]:
    return Tables(site()[path]).rows
