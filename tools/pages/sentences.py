"""`python -m tools.pages.sentences --draw 40`: random sentences of the project, for a stranger.

Someone who wrote none of them reads the sentences of each surface, and marks each sentence that is
not understood at the first reading, or that would not pass in a good English manual. A strict
reader marks some sentences of every project. ``--beside`` therefore mixes as many sentences of
other projects with these, without their places: the sentences of flexwire must pass as often as
the others. The reader does not see the key, which says where each sentence comes from. ``--seed``
repeats a draw, as long as the texts do not change.

    python -m tools.pages.sentences --surface docs --beside ../uv/docs --key docs.key
"""

from __future__ import annotations

import argparse
import ast
import io
import itertools
import random
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.pages.files import DOCS, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SOURCES: Final = ROOT / "src" / "flexwire"
# Packages whose strings appear in the report or the guide, not on a terminal.
_REPORT: Final = ("report", "facts", "answers", "measures", "specs/guide", "protocol/audit")
_README: Final = ("README.md", "docs/tutorial.md", "docs/cookbook.md")
_CHANGES: Final = ("CHANGELOG.md", "docs/decisions.md")
# Pages that repeat the help.
_HELP_PAGES: Final = ("docs/cli.md",)
_FEWEST_WORDS: Final = 4
# An English word. Paths, options and queries do not match.
_WORD = re.compile(r"(?<!\S)[(\"*`]*[A-Za-z][A-Za-z'-]*[)\"*`,.;:?!]*(?!\S)")
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?][)*\"]*(?=\s+[A-Z`\"'(*\[{\d-])")
_LIST_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_NO_PROSE = re.compile(r"^\s*(#|>|<!--|<|\$ |\[.*\]: )")
_DIRECTIVE = re.compile(r"^#!|^#:|\b(?:type: ignore|fmt:|ruff:|pragma|distutils:|cython:)")
_NOQA = re.compile(r"noqa: [A-Z0-9, ]+ - ")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and the file and line of its paragraph."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        """Return the position and the sentence, on one line."""
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph that have enough words to be judged.

    >>> split_sentences("Each piece is read once. See e.g. the fold, which adds them up. Yes.")
    ['Each piece is read once.', 'See e.g. the fold, which adds them up.']
    """
    text = " ".join(text.split())
    ends = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    sentences = (text[start:end].strip() for start, end in itertools.pairwise(ends))
    return [one for one in sentences if len(_WORD.findall(one)) >= _FEWEST_WORDS]


def page_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, list items and table cells of a Markdown page, each with its line."""
    paragraph: list[str] = []
    first, in_block = 1, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = line.lstrip().startswith("```")
        is_cell = line.startswith("|")
        ends = not line.strip() or is_fence or is_cell or _NO_PROSE.match(line)
        if ends or in_block or _LIST_ITEM.match(line):
            if paragraph:
                yield first, " ".join(paragraph)
            paragraph = []
        if is_fence:
            in_block = not in_block
        elif is_cell and not in_block:
            yield from ((number, cell) for cell in re.split(r"(?<!\\)\|", line) if cell.strip())
        elif not ends and not in_block:
            first = first if paragraph else number
            paragraph.append(_LIST_ITEM.sub("", line, count=1))


def page_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a Markdown page."""
    for line, paragraph in page_paragraphs(path.read_text(encoding="utf-8")):
        yield from (Sentence(path, line, text) for text in split_sentences(paragraph))


def docstrings(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.Constant]]:
    """Yield each docstring with the module, class or function that contains it.

    A string below a constant or an attribute describes it, and counts as a docstring too.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                value = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield node, value


def _is_command(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(re.search(r"\b(command|group)\(", ast.unparse(one)) for one in node.decorator_list)


def _of_text(path: Path, line: int, text: str) -> Iterator[Sentence]:
    """Yield the sentences of a docstring, without its examples."""
    text = text.partition(">>>")[0].partition("\b")[0]
    for offset, paragraph in page_paragraphs(text):
        yield from (Sentence(path, line + offset - 1, one) for one in split_sentences(paragraph))


def shown_texts(path: Path) -> Iterator[Sentence]:
    """Yield the sentences in a module that users read: its strings, and the help of commands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    described = {id(constant): node for node, constant in docstrings(tree)}
    parts = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value in ast.walk(node)
        if value is not node
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in parts:
            yield from _of_text(path, node.lineno, _template(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_shown = id(node) not in described or _is_command(described[id(node)])
            if is_shown and id(node) not in parts:
                yield from _of_text(path, node.lineno, node.value)


def _template(node: ast.JoinedStr) -> str:
    """Return the text of an f-string, with ``{…}`` for each inserted value."""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values
    )


def code_texts(path: Path) -> Iterator[Sentence]:
    """Yield the sentences in a module that developers read: docstrings and comments."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node, constant in docstrings(ast.parse(source)):
            if not _is_command(node):
                yield from _of_text(path, constant.lineno, str(constant.value))
    for line, text in comments(source, is_python=path.suffix == ".py"):
        yield from (Sentence(path, line, one) for one in split_sentences(text))


def comments(source: str, *, is_python: bool = True) -> list[tuple[int, str]]:
    r"""Return the comments of a source file with their lines.

    Consecutive lines are one comment, but a comment after code begins a new one.

    >>> comments("# A piece is read\n# once.\nx = 1  # noqa: S101 - why it is so\n")
    [(1, 'A piece is read once.'), (3, 'why it is so')]
    >>> comments("x = 1  # the first\ny = 2  # the next\n")
    [(1, 'the first'), (2, 'the next')]
    """
    if is_python:
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        places = [
            (*one.start, one.string, not one.line[: one.start[1]].strip())
            for one in tokens
            if one.type == tokenize.COMMENT
        ]
    else:
        places = [
            (number, match.start(1), match[1], True)
            for number, line in enumerate(source.splitlines(), 1)
            if (match := re.match(r"\s*((?:#|//|\*).*)", line))
        ]
    found: list[tuple[int, int, int, str]] = []
    for line, column, text, is_alone in places:
        if _DIRECTIVE.search(text) and not _NOQA.search(text):
            continue
        words = _NOQA.split(text)[-1].lstrip("#/*: ").strip()
        if is_alone and found and found[-1][1:3] == (line - 1, column):
            found[-1] = (found[-1][0], line, column, f"{found[-1][3]} {words}")
        else:
            found.append((line, line, column, words))
    return [(first, text) for first, _, _, text in found]


def _template_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a template of the report or of the guide."""
    text = re.sub(
        r"{#.*?#}|<style.*?</style>|<script.*?</script>", "", _read(path), flags=re.DOTALL
    )
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"{%.*?%}|<[^>]*>", " ", re.sub(r"{{.*?}}", "{…}", line))
        yield from (Sentence(path, number, one) for one in split_sentences(words))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _of_report(path: Path) -> bool:
    name = path.relative_to(SOURCES).as_posix()
    return name.startswith(tuple(f"{room}/" for room in _REPORT))


def _modules() -> Iterable[Path]:
    return sorted(SOURCES.rglob("*.py"))


def _pages() -> Iterable[Path]:
    apart = {ROOT / name for name in (*_README, *_CHANGES, *_HELP_PAGES)}
    pages = [*DOCS.glob("*.md"), *(DOCS / "notes").glob("*.md")]
    own = (ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"))
    return [page for page in (*sorted(pages), *own) if page not in apart]


def _report() -> Iterator[Sentence]:
    for path in _modules():
        if _of_report(path):
            yield from shown_texts(path)
    for path in sorted(SOURCES.rglob("*.j2")):
        yield from _template_sentences(path)


def _code() -> Iterator[Sentence]:
    for folder in ("src", "tests", "tools"):
        for suffix in ("py", "pyx", "pxd", "h"):
            for path in sorted((ROOT / folder).rglob(f"*.{suffix}")):
                yield from code_texts(path)


def _of_pages(paths: Iterable[Path]) -> Iterator[Sentence]:
    return (sentence for path in paths for sentence in page_sentences(path))


SURFACES: Final[dict[str, Callable[[], Iterator[Sentence]]]] = {
    "readme": lambda: _of_pages(ROOT / name for name in _README),
    "help": lambda: (
        one for path in _modules() if not _of_report(path) for one in shown_texts(path)
    ),
    "report": _report,
    "docs": lambda: _of_pages(_pages()),
    "docstrings": _code,
    "changes": lambda: _of_pages(ROOT / name for name in _CHANGES),
}
"""The texts that people read, by name:

README, tutorial and cookbook; help, errors and notes; the report and the guide; the other pages;
docstrings and comments; CHANGELOG and decisions.
"""


def draw(surface: str, count: int, seed: int) -> list[Sentence]:
    """Return ``count`` sentences of a surface, drawn at random, in the order of their files."""
    every = list(dict.fromkeys(SURFACES[surface]()))
    chosen = random.Random(f"{surface} {seed}").sample(every, min(count, len(every)))  # noqa: S311 - a draw, not a secret
    return sorted(chosen, key=lambda one: (str(one.path), one.line))


def sentences_of(surface: str, paths: Iterable[Path]) -> list[Sentence]:
    """Return the sentences of other projects that compare with a surface.

    Pages are compared with pages, docstrings and comments with those of Python files, and help and
    errors with strings of Python files. ``paths`` are files and directories.
    """
    suffix, read = {"help": ("py", shown_texts), "docstrings": ("py", code_texts)}.get(
        surface, ("md", page_sentences)
    )
    files = (
        one for path in paths for one in (path.rglob(f"*.{suffix}") if path.is_dir() else [path])
    )
    return list(dict.fromkeys(one for file in sorted(files) for one in read(file)))


def mixed(own: list[Sentence], others: list[Sentence], seed: int) -> list[tuple[Sentence, bool]]:
    """Return all of ``own`` and as many of ``others`` in random order, and whether each is own."""
    chance = random.Random(f"beside {seed}")  # noqa: S311 - a draw, not a secret
    rows = [(one, True) for one in own]
    rows += [(one, False) for one in chance.sample(others, min(len(own), len(others)))]
    chance.shuffle(rows)
    return rows


def main() -> int:
    """Print sentences of one surface, or of all of them."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("python -m tools.pages.sentences", description=summary)
    parser.add_argument("--draw", type=int, default=40, metavar="N", help="from each surface")
    parser.add_argument("--surface", choices=[*SURFACES], action="append", help="default: all")
    parser.add_argument("--seed", type=int, help="default: another draw each time")
    parser.add_argument("--beside", nargs="+", type=Path, metavar="PATH", help="other projects")
    parser.add_argument("--key", type=Path, help="the file for the places, with --beside")
    arguments = parser.parse_args()
    if bool(arguments.beside) != bool(arguments.key):
        parser.error("--beside needs --key, and --key needs --beside")
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    keys: list[str] = []
    for surface in arguments.surface or SURFACES:
        sys.stdout.write(f"# {surface}, --seed {seed}\n")
        drawn = draw(surface, arguments.draw, seed)
        if not arguments.beside:
            sys.stdout.writelines(f"{one}\n" for one in drawn)
            continue
        rows = mixed(drawn, sentences_of(surface, arguments.beside), seed)
        for number, (one, is_own) in enumerate(rows, 1):
            sys.stdout.write(f"{number}. {one.text}\n")
            whose = "own" if is_own else "other"
            keys.append(f"{surface}\t{number}\t{whose}\t{one.path}:{one.line}\n")
    if arguments.key:
        arguments.key.write_text("".join(keys), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
