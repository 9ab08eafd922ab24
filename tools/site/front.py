"""The front page of the site: the parts of README's first screen, for `templates/front.html`."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.site.contents import MODULES, SECTIONS

if TYPE_CHECKING:
    from pathlib import Path

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^- \*\*(?P<title>.+?)\.?\*\*(?P<text>(?: .*| *)\n(?:  .*\n)*)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+?)\.md\)")


@dataclass(frozen=True, slots=True)
class FrontPage:
    """The content of README's first screen: its sentence, its commands, and its bullets."""

    sentence: str
    install: str
    purposes: tuple[tuple[str, str], ...]
    example: tuple[str, str]
    demo: tuple[str, str]


def front_page(readme: str) -> FrontPage:
    """Return the parts of README's first screen; a missing part is an error."""
    first = readme.partition("\n## ")[0]
    sentence = re.search(r"^\*\*(.+?)\*\*$", first, re.MULTILINE | re.DOTALL)
    blocks = _CONSOLE.findall(first)
    purposes = tuple((match["title"], _inline(match["text"])) for match in _BULLET.finditer(first))
    if sentence is None or len(blocks) != len(("install", "example", "demo")) or not purposes:
        raise ValueError(f"expected a sentence, 3 blocks and purposes, got {len(blocks)} blocks")
    install, example, demo = blocks
    return FrontPage(
        " ".join(sentence[1].split()),
        install.strip().removeprefix("$ "),
        purposes,
        _command(example),
        _command(demo),
    )


def _command(block: str) -> tuple[str, str]:
    """Return the command of a block, and its output."""
    command, _, output = block.partition("\n")
    return command.removeprefix("$ "), output.rstrip()


def _inline(text: str) -> str:
    """Return a bullet's text as HTML, with its links converted to the site's."""
    plain = html.escape(" ".join(text.split()), quote=False)
    plain = re.sub(r"`([^`]+)`", r"<code>\1</code>", plain)
    return _LINK.sub(r'<a href="\2.html">\1</a>', plain)


def section_of_pages() -> dict[str, str]:
    """Return the section of each page by its path, for search results."""
    pages = {page: title for title, names in SECTIONS.items() for page in names}
    return {"overview": "Begin", **pages, **{f"api/{module}": "Python API" for module in MODULES}}


def titles(root: Path) -> dict[str, list[tuple[str, str]]]:
    """Return each section's pages, as their path and their title."""
    return {
        section: [(page, _title(root / f"{page}.md")) for page in pages]
        for section, pages in SECTIONS.items()
    }


def _title(page: Path) -> str:
    text = page.read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]
    return text.replace("`", "")
