"""The code blocks on the page about conformance runs work, and its tables match the code."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from flexwire.cli.app import app
from flexwire.conformance import RULES, Asking, Kind, rules
from flexwire.conformance.matrix import CELLS
from flexwire.conformance.questions import NOT_ASKED, QUESTIONS
from flexwire.conformance.rules import NOT_JUDGED_CODES, QUIRKS
from flexwire.conformance.write_plans import own_questions
from flexwire.conformance.writing import PREFIX, write_questions
from flexwire.demo.cluster import MockBrokers
from flexwire.versions import HIGHEST, Versions
from tests.house.test_readme import blocks, check

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
PAGE_OF_CHANGES = ROOT / "CHANGELOG.md"


@pytest.mark.long
@pytest.mark.slow
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    with contextlib.closing(MockBrokers(1)) as brokers:
        [(host, port)] = brokers.addresses
        for block in blocks(PAGE):
            text = block.text.replace("localhost:9092", f"{host}:{port}")
            try:
                check(replace(block, text=text), tmp_path)
            except Exception as error:
                error.add_note(f"docs/conformance.md:{block.line}")
                raise


def rows(first: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this title."""
    table = PAGE.split(f"\n| {first} |")[1].split("\n\n")[0]
    lines = [line for line in table.splitlines()[1:] if not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_it_lists_what_is_asked_and_what_is_not() -> None:
    asked = {row[0].strip("`"): row[1] for row in rows("asked")}
    assert list(asked) == sorted(QUESTIONS)
    for name, questions in QUESTIONS.items():
        lowest = min(one.versions.lowest for one in questions)
        assert max(one.versions.highest for one in questions) == HIGHEST
        assert asked[name] == (f"{lowest}+" if lowest else "all")
    assert {row[0].strip("`"): row[1] for row in rows("not asked")} == NOT_ASKED


def test_it_lists_what_is_changed() -> None:
    changed = {row[0].strip("`"): row[1] for row in rows("changes")}
    questions = write_questions(PREFIX)
    assert list(changed) == list(questions)
    for name, asked in questions.items():
        versions = Versions(0, max(one.versions.highest for one in asked))
        assert changed[name] == ("all" if versions.open_ended else str(versions))


def test_it_lists_what_concerns_the_whole_cluster() -> None:
    asked = own_questions(Asking("", own=PREFIX, disposable=True))
    names = [row[0].strip("`") for row in rows("concerns the cluster")]
    assert names == [name for name in asked if name not in write_questions(PREFIX)]
    changelog = PAGE_OF_CHANGES.read_text(encoding="utf-8")
    assert f"tests {len(names)} APIs that concern a whole cluster" in changelog
    assert f"tests {len(asked) - len(names)} APIs that change something" in changelog


def test_the_figures_of_other_brokers_are_those_that_were_found() -> None:
    kept = json.loads((ROOT / "tests" / "conformance" / "others.json").read_text(encoding="utf-8"))
    for row, one in zip(rows("broker"), kept.values(), strict=True):
        figures = [one[key] for key in ("cases", "judged", "asKafka")]
        deviating = sum(
            count for _, rule, count in one["deviations"] if rule != rules.KAFKA_TAKES.name
        )
        assert row == [one["name"], *map(str, [*figures, deviating])]


def test_it_has_every_rule_word_kind_and_quirk() -> None:
    assert [(row[0].strip("`"), row[1], row[2]) for row in rows("rule")] == [*RULES]
    assert {row[0] for row in rows("word")} == {*CELLS.values()}
    assert [row[0] for row in rows("kind")] == [kind.value for kind in Kind]
    assert [row[0:2] + row[3:] for row in rows("API")] == [
        [f"`{quirk.api_name}`", str(quirk.versions), quirk.reason] for quirk in QUIRKS
    ]
    assert [row[2].split(", ") for row in rows("API")] == [[*quirk.releases] for quirk in QUIRKS]
    assert f"({', '.join(map(str, sorted(NOT_JUDGED_CODES)))})" in PAGE


def test_every_option_that_it_names_is_one() -> None:
    command = app.commands["conform"]
    known = {name for option in command.params for name in option.opts}
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert named <= known
