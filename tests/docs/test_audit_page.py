"""The code block on the audit page runs, and the page's lists match the code."""

from __future__ import annotations

import re
from pathlib import Path

from flexwire.measures.evidence import SHOWN
from flexwire.protocol import api_name
from flexwire.protocol.audit import PINS, VERDICTS
from flexwire.protocol.audit.software import ABSENT, LIBRARIES
from flexwire.report.audit_files import COLUMNS
from tests.house.test_readme import blocks, check

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> list[str]:
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    return [row for row in rows if row not in {"verdict", "client"}]


def test_its_block_does_what_it_shows(tmp_path: Path) -> None:
    found = [block for block in blocks(PAGE) if block.language == "python"]
    assert found
    for block in found:
        check(block, tmp_path)


def test_it_explains_every_verdict_gravest_first() -> None:
    assert first_cells(section("The verdicts")) == list(VERDICTS)


def test_it_names_every_column_and_the_settings_that_pin() -> None:
    told = section("A finding's columns")
    assert set(re.findall(r"`(\w+)`", told)) == set(COLUMNS)
    assert f"the first {SHOWN} of each" in told
    settings = section("Settings that pin")
    for pin in PINS:
        assert f"| {pin.client} |" in settings
        assert all(f"`{setting}`" in settings for setting in pin.setting.split(", "))


def test_it_lists_what_clients_do_without_an_api() -> None:
    rows = re.findall(
        r"^\| (\w[\w, ]+) \| ([\w, -]+) \| (.+) \|$", section("Judging backwards"), re.MULTILINE
    )
    listed = {
        (name, software): told.startswith("fails")
        for names, clients, told in rows
        if names != "API"
        for name in names.split(", ")
        for software in clients.split(", ")
    }
    names = {"apache-kafka-java": "Java", "kgo": "franz-go", "librdkafka": "librdkafka"}
    known = {
        (api_name(key), names[software] if software else "every client"): one.outcome == "fails"
        for one in ABSENT
        for key in one.api_keys
        for software in (one.software or ("",))
    }
    assert listed == known


def test_it_has_the_first_release_of_every_library() -> None:
    rows = re.findall(
        r"^\| (.+) \| (\S+) \| (.*) \|$",
        section("The first releases that work on Kafka 4"),
        re.MULTILINE,
    )
    known = [(one.library, one.works_from or "none", one.remedy or one.note) for one in LIBRARIES]
    assert rows == [*known]
