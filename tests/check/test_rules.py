"""Every rule has a page, a category, and an example with a finding at exactly the shown place."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import flexwire
from flexwire.specs.lint.config import LINT, Config
from flexwire.specs.lint.rules import rules
from tests.check.pages import Example, example, findings
from tests.each import each

RULES = sorted(rules())
# The cases that no example on a page can show.
BUILT = {
    "STRUCTS_TOO_DEEP": (
        {
            "name": "Foo",
            "type": "data",
            "validVersions": "0",
            "flexibleVersions": "0+",
            "fields": [{"name": "A", "type": "S1", "versions": "0+"}],
        },
        (1, 1),
    )
}


def deep(depth: int) -> str:
    """Return a message with ``depth`` nested structures, including the message itself."""
    spec, _ = BUILT["STRUCTS_TOO_DEEP"]
    common = [
        {
            "name": f"S{number}",
            "versions": "0+",
            "fields": [{"name": "A", "type": f"S{number + 1}", "versions": "0+"}],
        }
        for number in range(1, depth)
    ]
    common[-1]["fields"] = [{"name": "A", "type": "int8", "versions": "0+"}]
    return json.dumps(spec | {"commonStructs": common})


def pair(rule: str) -> tuple[Example, Example]:
    """Return a spec that the rule flags, and the corrected spec."""
    if rule in BUILT:
        bad, good = {"Foo.json": deep(101)}, {"Foo.json": deep(100)}
        return Example(bad, ("Foo.json", 1, 1)), Example(good, None)
    flagged, instead = (example(rules()[rule].page, title) for title in ("Flagged", "Instead"))
    assert flagged, f"{rule} shows nothing that it flags"
    assert instead, f"{rule} does not show what to write instead"
    return flagged, instead


@each("rule", RULES)
def test_a_rule_flags_its_example_at_the_place_shown_and_nothing_else_does(rule: str) -> None:
    flagged, _ = pair(rule)
    found = findings(flagged.files, Config(LINT.defaults() | {rule}))
    assert [(one.source, one.line, one.column, one.rule) for one in found] == [
        (*(flagged.flagged or ()), rule)
    ]


@each("rule", RULES)
def test_the_mended_example_has_no_finding(rule: str) -> None:
    _, instead = pair(rule)
    assert instead.flagged is None
    assert findings(instead.files, Config(LINT.defaults() | {rule})) == ()


@each("rule", RULES)
def test_a_page_tells_what_and_who_says_so(rule: str) -> None:
    page = rules()[rule].page
    assert rules()[rule].summary.endswith(".")
    assert re.search(r"^Source: \S", page, re.MULTILINE)
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)+", rule)


def test_the_parser_s_rules_are_those_that_it_names() -> None:
    package = Path(flexwire.__file__).parent
    named = {
        node.value
        for file in (package / "schema").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", node.value)
    }
    own = {rule.id for rule in rules().values() if rule.message is None and rule.directory is None}
    # Specs that cannot be parsed, and findings that need the result of all other rules.
    assert own - {"TEXT_NOT_JSON", "ALLOW_UNUSED"} == named & set(RULES)


def test_header_versions_of_a_message_without_valid_versions_are_not_judged() -> None:
    spec = {
        "name": "ApiVersionsResponse",
        "type": "response",
        "apiKey": 18,
        "validVersions": "none",
        "flexibleVersions": "3+",
        "headerVersions": {"3-4": "9", "5+": "1"},
        "fields": [],
    }
    found = findings({"ApiVersionsResponse.json": json.dumps(spec)})
    assert [one.rule for one in found if one.rule.startswith("HEADER")] == []
    found = findings({"ApiVersionsResponse.json": json.dumps(spec | {"validVersions": "0-4"})})
    assert {one.rule for one in found if one.rule.startswith("HEADER")} == {
        "HEADER_VERSIONS_INCOMPLETE",
        "HEADER_VERSIONS_ABOVE_VALID",
        "HEADER_VERSION_LOWERED",
        "HEADER_VERSION_FIXED",
    }


def test_a_mark_is_where_it_stands() -> None:
    page = "About.\n\nFlagged:\n\n    { a,\n      b }\n      ^\n\nInstead:\n\n    { a }\n"
    shown = example(page, "Flagged")
    assert shown is not None
    assert shown.flagged == ("FooRequest.json", 3, 3)
    assert shown.files["FooRequest.json"].split("\n")[1:3] == ["{ a,", "  b }"]
    assert example(page, "Source") is None
