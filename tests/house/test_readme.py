from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flexwire.answers import ANSWERS
from flexwire.cli.app import app
from flexwire.schema.catalog import catalog

README = Path(__file__).parents[2] / "README.md"
_BLOCK = re.compile(
    r"(?:^<!-- not run:(?P<reason>.*?)-->\s*?\n\s*)?"
    r"^```(?P<language>.*)\n(?P<text>(?:.*\n)*?)^```[ \t]*$",
    re.MULTILINE,
)
_COMMAND = re.compile(
    r"^\$ (?P<command>(?:.*\\\n)*.*)$\n?(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE
)
# These commands run this test, so this test cannot run the blocks that show them.
_RECURSIVE = re.compile(r"\bmake (?:run|test)\b|\bpytest\b")
_MARK = "-- end of output, with status"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its line, and, if it must not be run, the reason."""

    language: str
    text: str
    line: int
    reason: str | None


def blocks(page: str) -> list[Block]:
    found = [
        Block(
            match["language"].strip(),
            match["text"],
            page.count("\n", 0, match.start("language")) + 1,
            None if match["reason"] is None else match["reason"].strip(),
        )
        for match in _BLOCK.finditer(page)
    ]
    fences = len(re.findall(r"^\s*(?:```|~~~)", page, re.MULTILINE))
    assert fences == 2 * len(found), "a fence is indented, unclosed or made of tildes"
    return found


def check_page(page: str, directory: Path) -> None:
    for block in blocks(page):
        check(block, directory)


def run_python(block: Block, page: str, names: dict[str, Any], directory: Path) -> None:
    """Run a Python block in ``directory``; an error names the line of the page."""
    program = compile("\n" * block.line + block.text, page, "exec")
    with contextlib.chdir(directory):
        exec(program, names)  # noqa: S102 - we wrote the page ourselves


def check(block: Block, directory: Path, *, is_here: bool = False) -> None:
    """Run one block in ``directory``; its output must be as shown.

    If ``is_here``, a block that begins with an analysis uses this process's session.
    """
    if block.reason is not None:
        assert block.reason, "a block that is not run says why"
    elif block.language == "console":
        check_console(block.text, directory, is_here=is_here)
    elif block.language == "python":
        assert re.search(r"^\s*assert ", block.text, re.MULTILINE), "nothing is asserted"
        run_python(block, "README.md", {"__name__": "readme"}, directory)
    else:
        pytest.fail(f"a block of {block.language or 'no language'} cannot be run, nor says why")


def check_console(text: str, directory: Path, *, is_here: bool = False) -> None:
    assert text.startswith("$ "), "a console block begins with a command"
    assert not _RECURSIVE.search(text), "this would run itself: mark the block as not run"
    shown = [(match["command"], match["output"]) for match in _COMMAND.finditer(text)]
    commands = [command for command, _ in shown]
    happened: list[tuple[str, int]] = []
    if is_here and commands[0].startswith("flexwire analyze "):
        with contextlib.chdir(directory):
            done = CliRunner().invoke(app, shlex.split(commands.pop(0))[1:])
        happened.append((done.output, done.exit_code))
    happened += run(commands, directory)
    for index, (command, expected) in enumerate(shown):
        output, status = happened[index]
        assert matches(expected, output), (
            f"$ {command}\n{output}\n-- but the page shows\n{expected}"
        )
        told = index + 1 < len(shown) and shown[index + 1][0] == "echo $?"
        assert status == 0 or told, f"$ {command}\nfails ({status}), and no `echo $?` tells"


def run(commands: list[str], directory: Path) -> list[tuple[str, int]]:
    """Run commands one after another in one shell; return the output and exit status of each."""
    script = "".join(
        f"{command}\n_status=$?; printf '%s\\n' '{_MARK} '$_status; (exit $_status)\n"
        for command in commands
    )
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "FORCE_COLOR"}}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment |= {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}
    answer = subprocess.run(
        ["bash", "-c", script],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    ends = re.findall(rf"((?:.|\n)*?){re.escape(_MARK)} (\d+)\n", answer.stdout)
    assert len(ends) == len(commands), f"the shell gave up:\n{answer.stdout}"
    return [(output, int(status)) for output, status in ends]


def matches(expected: str, output: str) -> bool:
    """Return whether the output is as shown; "…" matches any text, and line ends are trimmed."""
    pattern = ".*?".join(re.escape(part) for part in tidy(expected).split("…"))
    return re.fullmatch(pattern, tidy(output), re.DOTALL) is not None


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a directory for a reader who follows the page; blocks use files of earlier blocks."""
    return tmp_path_factory.mktemp("readme")


PAGE = README.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.slow
def test_every_block_of_the_readme_does_what_it_shows(
    directory: Path, subtests: pytest.Subtests
) -> None:
    for block in blocks(PAGE):
        with subtests.test(f"README.md:{block.line}"):
            check(block, directory)


def test_the_first_screen_shows_what_it_is_and_how_to_try_it() -> None:
    first = PAGE.partition("\n## ")[0]
    parts = [
        "**flexwire decodes",
        "$ pip install",
        "- **Find",
        "](docs/images/",
        "$ flexwire decode",
    ]
    places = [first.index(part) for part in [*parts, "$ make run"]]
    assert places == sorted(places)
    assert len(re.findall(r"^- \*\*", first, re.MULTILINE)) == 5
    assert "make test" not in PAGE, "it is for contributors: CONTRIBUTING.md says it"


def test_the_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\((.+?)\)", PAGE)
    assert pictures
    assert all((README.parent / name).stat().st_size < 200_000 for name in pictures)


def test_every_figure_of_speed_is_a_figure_of_the_page_on_speed() -> None:
    speed = (README.parent / "docs" / "performance.md").read_text(encoding="utf-8")
    told = [one for one in re.split(r"\n(?=- |\n)", PAGE) if "](docs/performance.md)" in one]
    figures = {figure for part in told[:1] for figure in re.findall(r"\d[\d,.]*\d|\d", part)}
    assert len(figures) > 2
    assert {
        one for one in figures if not re.search(rf"(?<![\d.,]){one}(?![\d.,]*\d)", speed)
    } == set()


def test_the_counts_on_the_page_are_those_of_the_package() -> None:
    assert f"The {len(ANSWERS)} built-in answers" in PAGE
    assert f"of {len(catalog().releases)} releases" in PAGE
    assert f"in {len(catalog().releases)} Kafka releases" in PAGE


GOOD = [
    "```console\n$ echo one; echo two\none\ntwo\n```",
    "```console\n$ printf 'a\\nb\\nc'\na\n…\n$ echo took 5 ms\ntook … ms\n```",
    "```console\n$ echo one \\\n  two\none two\n```",
    "```console\n$ export WORD=kept\n$ echo $WORD\nkept\n```",
    "```console\n$ echo oops >&2; (exit 3)\noops\n$ echo $?\n3\n```",
    "```python\nassert 1 + 1 == 2\n```",
    "<!-- not run: it would run itself -->\n```console\n$ make test\n```",
    "<!-- not run: a picture -->\n\n```\nanything\n```",
]
BAD = [
    "```console\n$ echo one\ntwo\n```",
    "```console\n$ echo one\n```",
    "```console\n$ true\none\n```",
    "```console\n$ echo one two\none\n```",
    "```console\n$ echo xay\na…\n```",
    "```console\n$ false\n```",
    "```console\n$ echo 'unclosed\n```",
    "```console\n$ exit 0\n$ echo never\nnever\n```",
    "```console\n$ make test\n```",
    "```console\nno command\n```",
    "```python\nassert 1 + 1 == 3\n```",
    "```python\n1 + 1\n```",
    "```\nwhat is this\n```",
    "```json\n{}\n```",
    "<!-- not run: -->\n```console\n$ make test\n```",
    "```python\nassert True\n",
    "- item\n  ```python\n  assert True\n  ```",
    "~~~python\nassert True\n~~~",
]


@pytest.mark.parametrize("page", GOOD)
def test_a_true_page_passes(page: str, tmp_path: Path) -> None:
    found = blocks(f"# Title\n\n{page}\n\nText.\n")
    assert len(found) == 1
    check(found[0], tmp_path)


@pytest.mark.parametrize("page", BAD)
def test_a_planted_lie_is_found(page: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_page(f"# Title\n\n{page}\n\nText.\n", tmp_path)


def test_a_block_knows_its_line() -> None:
    page = "# Title\n\n```python\nassert True\n```\n\n```console\n$ true\n```\n"
    assert [(block.line, block.language) for block in blocks(page)] == [
        (3, "python"),
        (7, "console"),
    ]
