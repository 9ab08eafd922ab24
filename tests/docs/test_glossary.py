"""docs/glossary.md explains each word once, and the classes that it names exist."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec

from tests.each import each
from tools.pages.files import DOCS

PAGE = (DOCS / "glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| (?!word )([^|-][^|]*) \| ([^|]+) \| `(flexwire[\w.]*)` \|$", PAGE, re.MULTILINE
)


def is_there(path: str) -> bool:
    """Return whether a path names a module, or a name in a module."""
    module, _, name = path.rpartition(".")
    try:
        if find_spec(path) is not None:
            return True
    except ModuleNotFoundError:
        pass
    return hasattr(import_module(module), name)


@each("row", ROWS)
def test_every_word_is_explained_and_its_class_is_there(row: tuple[str, str, str]) -> None:
    word, meaning, path = row
    assert meaning.endswith("."), word
    assert is_there(path), f"{word}: {path} is gone; name what it is called now"


def test_the_page_has_some_forty_words_each_once() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and "| word |" not in line]
    assert len(lines) == len(ROWS), "a row has no path of flexwire"
    words = [word for row in ROWS for word in row[0].split(", ")]
    assert len(words) == len({*words})
    assert len(ROWS) >= 40


def test_a_path_that_is_gone_is_seen() -> None:
    assert is_there("flexwire.wire.schema.Schema")
    assert is_there("flexwire.kernels")
    assert not is_there("flexwire.wire.schema.Gone")
