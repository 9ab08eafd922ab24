"""Read a page strictly: every tag is closed in order, and text and attributes are kept."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

INLINE = {"wbr", "bdi", "code"}
VOID = {"meta", "wbr", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The elements, attributes and text of a page; `AssertionError` if its tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.raw: dict[str, list[str]] = {"style": [], "script": []}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in INLINE:
            self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> out of turn at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        last = self._open[-1] if self._open else ""
        self.raw[last].append(data) if last in self.raw else self.text.append(data)

    def words(self) -> str:
        """Return all text that a reader sees, with one space for each run of white space."""
        return " ".join("".join(self.text).split())

    def shape(self) -> tuple[Counter[object], str, str]:
        """Return what hostile text must not change: elements, their attributes, script and style.

        A long name may break in other places, so line breaks do not count.
        """
        counted: Counter[object] = Counter(tag for tag in self.tags if tag != "wbr")
        counted.update((tag, name) for tag, name, _ in self.attributes)
        # An attribute that decides what is loaded or run must name a place on the page.
        leading = {"href", "src", "action", "style", "class"}
        counted.update(
            one
            for one in self.attributes
            if one[1] in leading and not one[2].startswith("#answer-")
        )
        return counted, "".join(self.raw["script"]), "".join(self.raw["style"])

    def values(self, name: str) -> list[str]:
        """Return the values of one attribute, in page order."""
        return [value for _, attribute, value in self.attributes if attribute == name]
