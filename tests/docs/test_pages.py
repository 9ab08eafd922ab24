"""Every block of the tutorial produces the result shown, and every link on a page has a target."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.test_readme import Block, blocks, check

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = DOCS / "tutorial.md"
_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler


def needs_spark(block: Block) -> bool:
    return block.reason is None and "flexwire analyze" in block.text


def follow(directory: Path, wanted: Callable[[Block], bool]) -> list[Block]:
    """Run blocks of the tutorial in order, as a reader would, and keep the files they write."""
    followed = [block for block in blocks(TUTORIAL.read_text(encoding="utf-8")) if wanted(block)]
    for block in followed:
        try:
            check(block, directory)
        except Exception as error:
            error.add_note(f"docs/tutorial.md:{block.line}")
            raise
    return followed


@pytest.mark.long
@pytest.mark.slow
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    assert follow(tmp_path, lambda block: not needs_spark(block))


@pytest.mark.long
@pytest.mark.spark
def test_the_tutorial_s_capture_is_analyzed(tmp_path: Path) -> None:
    followed = follow(tmp_path, lambda block: needs_spark(block) or "PcapngWriter" in block.text)
    assert [block.language for block in followed] == ["python", "console"]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_no_block_takes_a_name_that_its_page_does_not_give(page: Path) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert unknown_names("".join(blocks)) == set()


def unknown_names(source: str) -> set[str]:
    tree = list(ast.walk(ast.parse(source)))
    names = [one for one in tree if isinstance(one, ast.Name)]
    given = {one.id for one in names if not isinstance(one.ctx, ast.Load)}
    given |= {one.arg for one in tree if isinstance(one, ast.arg)}
    for one in tree:
        if isinstance(one, ast.Import | ast.ImportFrom):
            given |= {(alias.asname or alias.name).split(".")[0] for alias in one.names}
        elif isinstance(one, _NAMED) and one.name:
            given.add(one.name)
    return {one.id for one in names} - given - {*dir(builtins)}


def test_a_name_that_nothing_gives_is_seen() -> None:
    assert unknown_names("import a.b as c, d.e\nf = c + d\ndef g(h): return h + i\n") == {"i"}


def test_links_lead_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for target in links(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_links_into_a_page_lead_to_one_of_its_headings() -> None:
    """No page links to a missing heading (building the site also fails on such a link, but takes
    a minute).
    """
    root = DOCS.parent
    seen = 0
    for page in (*DOCS.rglob("*.md"), *root.glob("*.md")):
        text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
        for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
            other = (page.parent / target) if target else page
            seen += 1
            assert anchor in slugs(other.read_text(encoding="utf-8")), f"{page.name}: #{anchor}"
    assert seen > 50


def slugs(text: str) -> set[str]:
    """Return the names by which the headings of a page are linked, as GitHub and the site do."""
    outside = re.sub(r"(?ms)^```.*?^```$", "", text)
    found = {*re.findall(r"<a id=\"([^\"]+)\">", text), *re.findall(r"(?m)^\(([\w-]+)\)=$", text)}
    for heading in re.findall(r"(?m)^#+ (.+)$", outside):
        plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain).strip().lower().replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


def test_a_heading_is_linked_by_its_words() -> None:
    page = "# `a_b`: What, *now*?\n```\n# no heading\n```\n## A [link](b.md)\n## A [link](b.md)\n"
    assert slugs(page) == {"a_b-what-now", "a-link", "a-link-1"}


def links(text: str) -> list[str]:
    outside = text.split("](")[1:]
    targets = [part.split(")")[0].split("#")[0] for part in outside]
    return [target for target in targets if target and "://" not in target]


def test_a_link_that_leads_nowhere_is_seen() -> None:
    assert links("[a](b.md), [c](d/e.md#f), [g](#h) and [i](https://example.org)") == [
        "b.md",
        "d/e.md",
    ]
