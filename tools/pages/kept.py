"""`python -m tools.pages.kept OLD [NEW] [PATH]...`: what the pages lost between two revisions.

The command compares the numbers, the commands and the code blocks of each Markdown page. A fact
that a page lost counts as moved if another page gained it. The command lists each lost fact with
its old line, and exits with 1 if the list is not empty. After you shorten a page, look at each of
these lines.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tools.pages.files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE: Final = "the work tree"
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_SPAN = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"^(?:flexwire|make|python|pip|git|\.venv/bin/\w+) ")
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Fact:
    """A number, a command or a code block, without line breaks for the comparison."""

    kind: str
    text: str


def facts(page: str) -> dict[Fact, str]:
    r"""Return the facts of a page, each with the line on which it first occurs.

    >>> for fact in facts("Reads 1,000 records.\n```\n$ flexwire decode X\n```\n"):
    ...     print(fact.kind, fact.text)
    number 1,000
    command flexwire decode X
    block $ flexwire decode X
    """
    found: dict[Fact, str] = {}
    for line, text, is_block in _parts(page):
        if is_block:
            commands = [row[2:] for row in text.splitlines() if row.startswith("$ ")]
            names = [Fact("command", row) for row in commands] + [Fact("block", _plain(text))]
        else:
            spans = [Fact("command", span) for span in _SPAN.findall(text) if _COMMAND.match(span)]
            names = [*spans, *(Fact("number", one) for one in _NUMBER.findall(text))]
        for name in names:
            found.setdefault(name, line)
    return found


def _plain(text: str) -> str:
    return " ".join(text.split())


def _parts(page: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each line or code block, with its line number, its text, and whether it is a block."""
    block: list[str] | None = None
    for line in page.splitlines():
        if line.lstrip().startswith("```"):
            if block is not None:
                yield (block[0] if block else line), "\n".join(block), True
            block = [] if block is None else None
        elif block is not None:
            block.append(line)
        else:
            yield line, line, False


@dataclass(frozen=True, slots=True)
class Loss:
    """A fact that a page lost, its old line, and the pages that gained it."""

    page: str
    fact: Fact
    line: str
    moved_to: tuple[str, ...]


def losses(old: Mapping[str, str], new: Mapping[str, str]) -> list[Loss]:
    """Return the facts in the pages ``old`` (texts by path) that the same pages in ``new`` lack."""
    before = {path: facts(text) for path, text in old.items()}
    after = {path: facts(text) for path, text in new.items()}
    gained = {path: found.keys() - before.get(path, {}).keys() for path, found in after.items()}
    return [
        Loss(path, fact, line, tuple(other for other in gained if fact in gained[other]))
        for path, found in before.items()
        for fact, line in found.items()
        if fact not in after.get(path, {})
    ]


def read_pages(revision: str) -> dict[str, str]:
    """Return all Markdown pages of a revision, or of the work tree, by path."""
    if revision == HERE:
        paths = _git("ls-files", "*.md").splitlines()
        return {path: (ROOT / path).read_text("utf-8") for path in paths if (ROOT / path).exists()}
    paths = _git("ls-tree", "-r", "--name-only", revision).splitlines()
    return {path: _git("show", f"{revision}:{path}") for path in paths if path.endswith(".md")}


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],  # noqa: S607 - as a user's shell would find it
        cwd=ROOT, capture_output=True, check=True, encoding="utf-8",
    )  # fmt: skip
    return done.stdout


def main() -> int:
    """List lost facts, and count moved ones."""
    parser = argparse.ArgumentParser("python -m tools.pages.kept", description=__doc__)
    parser.add_argument("old", help="a revision of git")
    parser.add_argument("new", nargs="?", default=HERE, help="a revision; default: the work tree")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only these pages")
    arguments = parser.parse_args()
    found = [
        loss
        for loss in losses(read_pages(arguments.old), read_pages(arguments.new))
        if not arguments.paths or loss.page in arguments.paths
    ]
    lost = [loss for loss in found if not loss.moved_to]
    for loss in lost:
        text = (
            loss.fact.text if len(loss.fact.text) <= _LONGEST else f"{loss.fact.text[:_LONGEST]}…"
        )
        sys.stdout.write(f"{loss.page}: lost {loss.fact.kind} {text}\n    {loss.line.strip()}\n")
    sys.stdout.write(f"{len(lost)} lost, {len(found) - len(lost)} moved to another page\n")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
