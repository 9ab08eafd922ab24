"""Stage the pages of the site in one directory, as the generator reads them."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from tools.site.contents import MODULES, SECTIONS
from tools.site.front import section_of_pages

if TYPE_CHECKING:
    from pathlib import Path

# The pages that `flexwire schema docs` adds to this directory.
GUIDE_LINK = (
    '<a href="../guide/index.html">The guide to every message of every bundled release</a> is a '
    "part of this site; and this is how it is made."
)
_LINK = re.compile(r"(?<!!)(?P<text>\[[^\]]*\])\((?P<target>[^)\s]+)\)")
_COMMENT = re.compile(r"^<!-- not run:.*?-->\s*?\n", re.MULTILINE | re.DOTALL)


def stage(root: Path, source: Path) -> None:
    """Write the pages of ``root`` into ``source``, with an index that lists them all.

    Links between pages stay; links to other files in the repository are replaced by the files'
    names.
    """
    shutil.rmtree(source, ignore_errors=True)
    pages = [page for pages in SECTIONS.values() for page in pages]
    for page in pages:
        _write(source / f"{page}.md", _text(root, f"{page}.md"))
    for path in sorted((root / "docs" / "reference").rglob("*.md")):
        name = path.relative_to(root).as_posix()
        if name.removesuffix(".md") not in pages:
            _write(source / name, "---\norphan: true\n---\n" + _text(root, name))
    described: set[int] = set()
    for module in MODULES:
        _write(source / "api" / f"{module}.md", api_page(module, described))
    guide = source / "docs" / "guide.md"
    heading, _, rest = guide.read_text(encoding="utf-8").partition("\n\n")
    _write(guide, f"{heading}\n\n{GUIDE_LINK}\n\n{rest}")
    title, _, rest = _text(root, "README.md").partition("\n")
    _write(source / "overview.md", f"{title}: installation and overview\n{rest}")
    # templates/front.html contains the text of the front page.
    _write(source / "index.md", f"# flexwire\n{contents()}")
    shutil.copytree(root / "docs" / "images", source / "docs" / "images")
    sections = json.dumps(section_of_pages())
    _write(source / "static" / "sections.js", f"window.flexwireSections = {sections};\n")


def contents() -> str:
    """Return the table of contents: a hidden list of pages for each section."""
    api = tuple(f"api/{module}" for module in MODULES)
    sections = {**SECTIONS, "Begin": ("overview", *SECTIONS["Begin"]), "Python API": api}
    order = [title for title in sections if title != "Project"] + ["Project"]
    parts = [
        "```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "\n".join(sections[title]) + "\n```"
        for title in order
    ]
    return "\n\n" + "\n\n".join(parts) + "\n"


def api_page(module: str, described: set[int]) -> str:
    """Return a page that the generator fills with the docstrings of the module's public names.

    The page leaves out objects that an earlier page describes, whose ids are in ``described``.
    """
    room = import_module(module)
    public = {name: getattr(room, name) for name in getattr(room, "__all__", ())}
    again = [name for name, value in public.items() if id(value) in described]
    described |= {id(value) for value in public.values() if callable(value)}
    # For a module without a list of names, the page shows what it defines, not what it imports.
    imported = "   :imported-members:\n" if public else ""
    left_out = f"   :exclude-members: {', '.join(again)}\n" if again else ""
    return (
        f"# `{module}`\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n"
        f"{imported}   :member-order: bysource\n{left_out}```\n"
    )


@cache
def _places(root: Path) -> frozenset[Path]:
    """Return the directories of pages whose links stay."""
    return frozenset(
        (root / f"{page}.md").resolve() for pages in SECTIONS.values() for page in pages
    )


def _text(root: Path, name: str) -> str:
    """Return a page's text for the site: without notes for the tests, with working links."""
    home = (root / name).parent
    pages = _places(root)
    front = (root / "README.md").resolve()
    reference = (root / "docs" / "reference").resolve()

    def led(match: re.Match[str]) -> str:
        target, mark, anchor = match["target"].partition("#")
        if not target or "://" in target:
            return match[0]
        path = (home / target).resolve()
        if path == front:
            up = "../" * (len(home.relative_to(root).parts))
            return f"{match['text']}({up}overview.md{mark}{anchor})"
        if path in pages or path.is_relative_to(reference):
            # A path means nothing to a reader of the site, so the page's title replaces the path.
            if match["text"] == f"[{target}]":
                return f"[{_title(path)}]({match['target']})"
            return match[0]
        return match["text"][1:-1]

    return _LINK.sub(led, _COMMENT.sub("", (root / name).read_text(encoding="utf-8")))


def _title(page: Path) -> str:
    """Return the first heading of a page."""
    return page.read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
