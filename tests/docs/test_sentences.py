"""One tool draws random sentences, and another lists what a page lost."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.searching import in_make_long
from tools.pages.files import ROOT
from tools.pages.kept import Fact, losses
from tools.pages.sentences import (
    SURFACES,
    code_texts,
    draw,
    main,
    page_paragraphs,
    page_sentences,
    shown_texts,
)

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """# A heading that is no sentence at all

The first paragraph goes on
over two lines in base64. It has *two* sentences here.

```
$ this block is a command and no prose
```
<!-- this comment is for the tests and nobody else -->
- An item of a list is a paragraph
  with its own second line.
- Another item follows it without a break.

| name | a cell with five words or more |
|---|---|
"""
MODULE = '''"""The module says what it is for."""

import click

# A comment of two lines is
# one paragraph for the reader.
LIMIT = 5
"""A constant has its docstring below it."""


@click.command("go")
def go() -> None:
    """Do what the name of it promises.

    \\b
    flexwire go --with many words here
    """
    raise ValueError(f"expected {LIMIT} words, got none of them at all")
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def test_a_page_has_its_paragraphs_items_and_cells_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    assert [(one.line, one.text) for one in page_sentences(path)] == [
        (3, "The first paragraph goes on over two lines in base64."),
        (3, "It has *two* sentences here."),
        (10, "An item of a list is a paragraph with its own second line."),
        (12, "Another item follows it without a break."),
        (14, "a cell with five words or more"),
    ]


def test_blocks_and_comments_are_no_paragraphs() -> None:
    text = " ".join(paragraph for _, paragraph in page_paragraphs(PAGE))
    assert "command" not in text
    assert "nobody else" not in text


def test_help_and_errors_are_shown_and_docstrings_and_comments_are_read(module: Path) -> None:
    assert {one.text for one in shown_texts(module)} == {
        "Do what the name of it promises.",
        "expected {…} words, got none of them at all",
    }
    assert {(one.line, one.text) for one in code_texts(module)} == {
        (1, "The module says what it is for."),
        (5, "A comment of two lines is one paragraph for the reader."),
        (8, "A constant has its docstring below it."),
    }


@pytest.mark.slow
@pytest.mark.parametrize("surface", ["readme", *in_make_long("help", "report", "docs", "changes")])
def test_every_surface_has_hundreds_of_sentences_and_a_seed_draws_the_same(
    surface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = draw(surface, 40, seed=7)
    # Each read takes a second.
    every = [*SURFACES[surface]()]
    assert len({*every}) > 100
    monkeypatch.setitem(SURFACES, surface, lambda: every)
    assert len({*drawn}) == 40
    assert drawn == draw(surface, 40, seed=7) != draw(surface, 40, seed=8)
    assert all(str(one).startswith(str(one.path.relative_to(ROOT))) for one in drawn)


def test_sentences_of_others_are_mixed_in_and_only_the_key_tells_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "other.md"
    page.write_text("\n\n".join(f"Sentence {n} of another project is here." for n in range(50)))
    key = tmp_path / "key"
    asked = ["--surface", "readme", "--draw", "10", "--seed", "7", "--beside", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["sentences", *asked, "--key", str(key)])
    assert main() == 0
    shown = [line.partition(". ") for line in capsys.readouterr().out.splitlines()[1:]]
    rows = [line.split("\t") for line in key.read_text(encoding="utf-8").splitlines()]
    assert [number for number, _, _ in shown] == [str(n) for n in range(1, 21)]
    assert [row[1] for row in rows] == [number for number, _, _ in shown]
    are_others = ["another project" in text for _, _, text in shown]
    assert [row[2] == "other" for row in rows] == are_others
    assert sum(are_others) == 10
    assert are_others != sorted(are_others)
    monkeypatch.setattr(sys, "argv", ["sentences", *asked])
    with pytest.raises(SystemExit):
        main()


def test_what_a_page_lost_is_listed_unless_another_page_gained_it() -> None:
    old = {
        "a.md": "It takes 12.5 s and 3 MB.\nRun `flexwire decode X`.\n```\n$ make run\n```\n",
        "b.md": "Nothing.\n",
    }
    new = {"a.md": "It takes 3 MB.\n", "b.md": "It took 12.5 s.\n"}
    found = {(one.page, one.fact): one.moved_to for one in losses(old, new)}
    assert found == {
        ("a.md", Fact("number", "12.5")): ("b.md",),
        ("a.md", Fact("command", "flexwire decode X")): (),
        ("a.md", Fact("command", "make run")): (),
        ("a.md", Fact("block", "$ make run")): (),
    }
    assert losses(old, old) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_revision_lost_nothing_to_itself() -> None:
    command = [sys.executable, "-m", "tools.pages.kept", "HEAD", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0 lost, 0 moved to another page\n")


def test_no_item_of_a_list_begins_twice() -> None:
    """A script once wrote "- - " into a page, and then the site could not be built."""
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    assert len(texts) > 500
    twice = re.compile(r"^\s*- - ", re.MULTILINE)
    assert [one.name for one in texts if twice.search(one.read_text(encoding="utf-8"))] == []
