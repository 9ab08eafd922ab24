"""docs/mcp.md: its program produces the result shown; the page names every tool and argument."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexwire.cli.mcp.arguments import MOST_BYTES, MOST_ROWS, PagedArguments
from flexwire.cli.mcp.bounds import LONGEST_TEXT, MOST_CHARACTERS
from flexwire.cli.mcp.tools import TOOLS
from tests.house.test_readme import blocks, check_page

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.slow
def test_its_program_does_what_it_says(tmp_path: Path) -> None:
    assert [one.language for one in blocks(PAGE)] == ["json", "python"]
    check_page(PAGE, tmp_path)


def test_it_names_every_tool() -> None:
    table = PAGE.partition("| tool | returns | rows |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(
        tool.name for tool in TOOLS
    )


def test_it_names_every_argument_of_every_tool() -> None:
    table = PAGE.partition("| tool | further arguments |\n|---|---|\n")[2].partition("\n\n")[0]
    named: dict[str, set[str]] = {}
    tools: list[str] = []
    for line in table.splitlines():
        _, of_tools, of_arguments, _ = line.split("|")
        tools = re.findall(r"`(\w+)`", of_tools) or tools
        for tool in tools:
            named.setdefault(tool, set()).update(re.findall(r"`(\w+)`", of_arguments))
    paged = set(PagedArguments.__struct_fields__)
    assert named == {tool.name: set(tool.arguments.__struct_fields__) - paged for tool in TOOLS}


def test_its_limits_are_those_of_the_tools() -> None:
    assert f"about {MOST_CHARACTERS:,} characters" in PAGE
    assert f"cut after {LONGEST_TEXT:,}" in PAGE
    assert f"up to {MOST_BYTES >> 20} MiB" in PAGE
    assert f"at most {MOST_ROWS:,}" in PAGE
