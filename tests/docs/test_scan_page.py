"""docs/scan.md: its programs produce the results shown, and the page names every option."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from flexwire.scan.captures import CaptureScan
from flexwire.scan.logs import LogScan
from tests.house.test_readme import blocks, check_page

PAGE = (Path(__file__).parents[2] / "docs" / "scan.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_programs_do_what_they_say(tmp_path: Path) -> None:
    assert [one.language for one in blocks(PAGE)] == ["python"] * 3
    check_page(PAGE, tmp_path)


@pytest.mark.parametrize(
    ("name", "scan"), [("scan_capture", CaptureScan), ("scan_kafka_log", LogScan)]
)
def test_it_names_every_option(name: str, scan: type) -> None:
    table = (
        PAGE.partition(f"and `{name}` accept these options:")[2]
        .partition("\n\nB")[0]
        .partition("\n\n`")[0]
    )
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)))
    assert sorted(named) == sorted(one.name for one in fields(scan))
