"""Findings are shown in every output format."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import click
import pytest

from flexwire.specs.finding import Finding, Report, window
from flexwire.specs.lint import formats
from flexwire.specs.lint.rules import rules

LINE = '    { "name": "RackId", "type": "string", "tag": 2 }'


def report_of(findings: tuple[Finding, ...], files: tuple[str, ...]) -> Report:
    return Report(findings, files, rules(), "flexwire schema lint")


FOUND = (
    Finding("a/Foo.json", 3, 50, "TAG_SKIPPED", "tag 1 is not used", LINE, 50),
    Finding("a/Foo.json", 9, 1, "ABOUT_MISSING", "field <A> & 'B' 100%\n: no \"about\"", "{", 1),
    Finding("b c,d:e/Bar.json", 1, 1, "STRUCT_WITHOUT_FIELDS", "S has no fields", "", 1),
)
REPORT = report_of(FOUND, ("a/Foo.json", "a/Good.json", "b c,d:e/Bar.json"))
NOTHING = report_of((), ("a/Good.json",))


def test_text_shows_the_place_the_rule_and_the_line() -> None:
    assert formats.to_text(report_of(FOUND[:1], ("a/Foo.json",))) == (
        "a/Foo.json:3:50: TAG_SKIPPED tag 1 is not used\n"
        f"  3 | {LINE}\n"
        f"    | {' ' * 49}^\n"
        "\n"
        "1 finding in 1 of 1 file; 'flexwire schema lint --explain RULE' explains a rule\n"
    )
    assert formats.to_text(NOTHING) == "1 file, no findings\n"
    *_, third, nothing, summary = formats.to_text(REPORT).splitlines()
    assert (third, nothing) == (str(FOUND[2]), "")
    assert summary.startswith("3 findings in 2 of 3 files;")


def test_text_marks_the_whole_word() -> None:
    one = Finding("F.json", 1, 15, "TYPE_INVALID", "m", LINE, 15)
    assert (
        formats.to_text(report_of((one,), ("F.json",))).splitlines()[2]
        == f"    | {' ' * 14}{'^' * 8}"
    )


@pytest.mark.parametrize("width", [40, 80, 160])
def test_text_fits_the_terminal(width: int) -> None:
    long = " ".join(["word"] * 50)
    found = (Finding("F.json", 1, 500, "TAG_SKIPPED", long, "x" * 499 + "y" + "x" * 499, 500),)
    lines = formats.to_text(report_of(found, ("F.json",)), width).splitlines()
    # Every line above the summary fits the width.
    assert all(len(line) <= width for line in lines[:-1])
    excerpt, mark = lines[-4:-2]
    assert excerpt[mark.index("^")] == "y"
    # Without a terminal, a finding is one line, and its excerpt fits into that line.
    lines = formats.to_text(report_of(found, ("F.json",))).splitlines()
    assert lines[0] == str(found[0])
    assert len(lines[1]) <= 100


def test_text_has_colours_where_they_are_asked_for() -> None:
    coloured = formats.to_text(REPORT, 80, colour=True)
    assert coloured != formats.to_text(REPORT, 80)
    assert click.unstyle(coloured) == formats.to_text(REPORT, 80)
    assert click.unstyle(formats.to_text(NOTHING, colour=True)) == formats.to_text(NOTHING)
    assert click.style("TAG_SKIPPED", fg="red", bold=True) in coloured


def test_json_has_every_finding() -> None:
    assert json.loads(formats.to_json(REPORT))[0] == {
        "source": "a/Foo.json",
        "line": 3,
        "column": 50,
        "rule": "TAG_SKIPPED",
        "category": "GENERATOR",
        "message": "tag 1 is not used",
    }
    assert len(json.loads(formats.to_json(REPORT))) == 3
    assert json.loads(formats.to_json(NOTHING)) == []


def test_github_actions_gets_escaped_commands() -> None:
    error, notice, warning = formats.to_github_actions(REPORT).splitlines()
    assert error == "::error file=a/Foo.json,line=3,col=50,title=TAG_SKIPPED::tag 1 is not used"
    assert notice == (
        "::notice file=a/Foo.json,line=9,col=1,title=ABOUT_MISSING::"
        "field <A> & 'B' 100%25%0A: no \"about\""
    )
    assert warning == (
        "::warning file=b c%2Cd%3Ae/Bar.json,line=1,col=1,title=STRUCT_WITHOUT_FIELDS::"
        "S has no fields"
    )
    assert formats.to_github_actions(NOTHING) == ""


def test_junit_has_a_test_for_each_file() -> None:
    suites = ET.fromstring(formats.to_junit(REPORT))  # noqa: S314 - our own text
    (suite,) = suites
    assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
    for one in (suites, suite):
        assert (one.get("tests"), one.get("failures"), one.get("errors")) == ("3", "2", "0")
    assert [case.get("name") for case in suite] == list(REPORT.files)
    failures = [case.find("failure") for case in suite]
    assert [None if one is None else one.get("message") for one in failures] == [
        "2 findings",
        None,
        "STRUCT_WITHOUT_FIELDS",
    ]
    assert failures[0] is not None
    assert failures[0].text == f"{FOUND[0]}\n{FOUND[1]}"


def sarif_of(report: Report) -> Any:
    return json.loads(formats.to_sarif(report))


def test_sarif_keeps_the_rules_of_its_schema() -> None:
    log = sarif_of(REPORT)
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run.keys() == {"tool", "columnKind", "results"}
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    driver = run["tool"]["driver"]
    assert driver.keys() == {"name", "version", "rules"}
    told = driver["rules"]
    assert len({one["id"] for one in told}) == len(told)
    for one in told:
        assert one["shortDescription"]["text"].endswith(".")
        assert one["fullDescription"]["text"] == one["help"]["text"] == rules()[one["id"]].page
        assert one["defaultConfiguration"]["level"] in {"none", "note", "warning", "error"}
    for one in run["results"]:
        assert one.keys() == {"ruleId", "ruleIndex", "level", "message", "locations"}
        assert told[one["ruleIndex"]]["id"] == one["ruleId"]
        assert one["level"] == told[one["ruleIndex"]]["defaultConfiguration"]["level"]
        assert one["message"].keys() == {"text"}
        (location,) = one["locations"]
        place = location["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert place["region"]["startColumn"] >= 1
        # RFC 3986 allows no spaces, and a colon only after a scheme.
        uri = place["artifactLocation"]["uri"]
        assert re.fullmatch(r"(file:///)?[A-Za-z0-9._~/%-]+", uri)


def test_sarif_points_at_every_finding() -> None:
    results = sarif_of(REPORT)["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"] for one in results]
    assert [
        (
            unquote(one["artifactLocation"]["uri"]),
            one["region"]["startLine"],
            one["region"]["startColumn"],
        )
        for one in places
    ] == [(one.source, one.line, one.column) for one in FOUND]
    assert [one["level"] for one in results] == ["error", "note", "warning"]
    assert sarif_of(NOTHING)["runs"][0]["results"] == []
    absolute = report_of((Finding("/a b/F.json", 1, 1, "TAG_SKIPPED", "m"),), ("/a b/F.json",))
    result = sarif_of(absolute)["runs"][0]["results"][0]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "file:///a%20b/F.json"


@pytest.mark.parametrize("column", [1, 2, 6, 13, 21, 25, 26])
@pytest.mark.parametrize("width", [5, 9, 25, 26, 40])
def test_a_window_has_the_column_in_it(column: int, width: int) -> None:
    line = "abcdefghijklmnopqrstuvwxyz"
    shown, at = window(line, column, width)
    assert len(shown) == min(width, len(line))
    assert shown[at - 1] == line[column - 1]
    assert ("…" in shown) is (width < len(line))
    whole = shown.strip("…")
    assert shown.startswith("…") is not line.startswith(whole)
    assert shown.endswith("…") is not line.endswith(whole)
