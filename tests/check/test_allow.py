"""A comment allows a finding on its line. A comment that allows nothing is itself a finding."""

from __future__ import annotations

import pytest

from flexwire.schema.editions import editions_of
from flexwire.schema.sources import SpecFile
from flexwire.schema.text import SpecText
from flexwire.specs.allow_comments import find_allow_comments
from flexwire.specs.breaking.changes import breaking_rules
from flexwire.specs.breaking.report import compare
from flexwire.specs.lint.config import LINT, Config, rules_named
from flexwire.specs.lint.lint import lint
from flexwire.specs.lint.rules import rules
from tests.check.pages import findings
from tests.check.released import Released, released

HEAD = (
    '{ "name": "Foo", "type": "data", "validVersions": "0-1", "flexibleVersions": "0+",'
    ' "fields": [\n'
)
TAIL = "\n] }"
# This spec breaks TAG_SKIPPED at the tag.
FIELD = '{ "name": "A", "type": "int8", "versions": "0+", "tag": 1, "taggedVersions": "0+" }'
ALLOW = "// flexwire: allow TAG_SKIPPED tag 0 was never released"


def told(body: str, config: Config | None = None) -> list[tuple[str, int]]:
    found = findings({"Foo.json": f"{HEAD}{body}{TAIL}"}, config)
    return [(one.rule, one.line) for one in found]


@pytest.mark.parametrize(
    "body",
    [
        f"{ALLOW}\n{FIELD}",
        f"  {ALLOW}\r\n{FIELD}",
        f"{ALLOW}\r{FIELD}",
        f"{ALLOW}\n\n \t\n// more\n/* and\nmore */\n{FIELD}",
        f"{FIELD} {ALLOW}",
        f"/* a */ {FIELD} /* b */ {ALLOW}",
        f"/* a */ {ALLOW}\n{FIELD}",
        f"//flexwire:allow TAG_SKIPPED: tag 0 was never released\n{FIELD}",
        f"//\tflexwire:\tallow\tTAG_SKIPPED\t-\tx\n{FIELD}",
        f'// flexwire: allow KEY_UNKNOWN ours\n{ALLOW}\n{FIELD[:-1]}, "ours": 1 }}',
        f'{ALLOW}\n{FIELD[:-1]}, "ours": 1 }} // flexwire: allow KEY_UNKNOWN ours',
    ],
)  # fmt: skip
def test_a_comment_allows_a_rule_on_its_line_or_the_next(body: str) -> None:
    assert told(body) == []


@pytest.mark.parametrize(
    "body",
    [
        f'{{ "name": "B", "type": "int8", "versions": "0+" }}, {ALLOW}\n{FIELD}',
        f"{FIELD}\n{ALLOW}",
        f"{ALLOW}\n{FIELD[:30]}\n{FIELD[30:]}",
        f"// flexwire: allow TAG_REPEATED not this one\n{FIELD}",
    ],
)
def test_no_other_line_and_no_other_rule_is_allowed(body: str) -> None:
    assert sorted(rule for rule, _ in told(body)) == ["ALLOW_UNUSED", "TAG_SKIPPED"]


@pytest.mark.parametrize(
    "body",
    [
        f"/* {ALLOW} */\n{FIELD}",
        f"/* a\n{ALLOW}\n*/ {FIELD}",
        f"// {ALLOW}\n{FIELD}",
        f"// See {ALLOW[3:]}\n{FIELD}",
        f"// flexwire allow TAG_SKIPPED a reason\n{FIELD}",
        FIELD.replace('"A"', '"A", "about": "http://flexwire: allow TAG_SKIPPED it"'),
        FIELD.replace('"A"', '"A", "about": "\\"// flexwire: allow TAG_SKIPPED it"'),
    ],
)
def test_what_only_looks_like_it_is_none(body: str) -> None:
    assert [rule for rule, _ in told(body)] == ["TAG_SKIPPED"]


@pytest.mark.parametrize("reason", ["", " ", " -", ": "])
def test_without_a_reason_nothing_is_allowed(reason: str) -> None:
    body = f"// flexwire: allow TAG_SKIPPED{reason}\n{FIELD}"
    assert told(body) == [("ALLOW_WITHOUT_REASON", 2), ("TAG_SKIPPED", 3)]


@pytest.mark.parametrize(
    ("comment", "column", "reason"),
    [
        ("// flexwire: allow TAG_SKIPED x", 20, "'TAG_SKIPED'; did you mean 'TAG_SKIPPED'?"),
        ("// flexwire: allow tag_skipped x", 20, "did you mean 'TAG_SKIPPED'?"),
        ("// flexwire: allow GENERATOR x", 20, "no rule 'GENERATOR'; "),
        ("// flexwire: allow XYZ x", 20, "no rule 'XYZ'; --explain ALL lists them"),
        ("// flexwire: allow FIELD_REMOVD x", 20, "did you mean 'FIELD_REMOVED'?"),
        ("// flexwire: ignore TAG_SKIPPED x", 21, "expected 'allow', got 'ignore'; write "),
        ("// flexwire: allow", 14, "expected a rule; write"),
        ("// flexwire:", 13, "expected 'allow', got ''"),
    ],
)
def test_what_is_not_known_is_told(comment: str, column: int, reason: str) -> None:
    found = findings({"Foo.json": f"{HEAD}{comment}\n{FIELD}{TAIL}"})
    assert [one.rule for one in found] == ["ALLOW_UNKNOWN", "TAG_SKIPPED"]
    assert (found[0].line, found[0].column) == (2, column)
    assert reason in found[0].message


def test_of_two_for_the_same_one_is_unused() -> None:
    assert told(f"{ALLOW}\n{ALLOW}\n{FIELD}") == [("ALLOW_UNUSED", 3)]
    assert told(f"{ALLOW}\n{FIELD} {ALLOW}") == [("ALLOW_UNUSED", 3)]


def test_a_rule_that_is_not_asked_for_is_not_missed() -> None:
    unused = f"// flexwire: allow ABOUT_MISSING x\n{ALLOW}\n{FIELD}"
    assert told(unused) == []
    # But a comment with an "about" is allowed.
    with_about = unused.replace('"A"', '"A", "about": "B."')
    assert told(with_about, Config(rules_named("ALL"))) == [("ALLOW_UNUSED", 2)]
    ignored = ((frozenset({"ABOUT_MISSING"}), "Foo.json"),)
    assert told(with_about, Config(rules_named("ALL"), ignored=ignored)) == []
    assert told(ALLOW, Config(LINT.defaults() - {"TAG_SKIPPED"})) == []
    assert told(ALLOW, Config(LINT.defaults() - {"ALLOW_UNUSED"})) == []
    assert told(ALLOW) == [("ALLOW_UNUSED", 2)]


def test_what_breaking_finds_is_not_missed_by_lint() -> None:
    assert not rules().keys() & breaking_rules().keys()
    body = '// flexwire: allow FIELD_REMOVED only previews had it\n{ "name": "A", '
    assert told(f'{body}"type": "int8", "versions": "0+" }}') == []


REQUEST = (
    '{ "name": "ARequest", "type": "request", "validVersions": "0", "flexibleVersions": "0+",'
    ' "apiKey": 1 }'
)
PARTNER = "// flexwire: allow PARTNER_MISSING its response is written by hand\n"


def test_what_only_a_directory_shows_is_allowed_and_missed_only_there() -> None:
    other = {"Foo.json": f"{HEAD}{TAIL}"}
    assert [one.rule for one in findings({"A.json": REQUEST} | other)] == ["PARTNER_MISSING"]
    assert findings({"A.json": PARTNER + REQUEST} | other) == ()
    assert findings({"A.json": PARTNER + REQUEST}) == ()
    found = findings({"A.json": PARTNER + REQUEST, "B.json": "{"})
    assert [one.rule for one in found] == ["TEXT_NOT_JSON"]
    response = REQUEST.replace("Request", "Response").replace("request", "response")
    found = findings({"A.json": PARTNER + REQUEST, "B.json": response})
    assert [(one.source, one.rule) for one in found] == [("A.json", "ALLOW_UNUSED")]


def test_each_file_has_its_own_comments() -> None:
    text = f"{HEAD}{FIELD}{TAIL}"
    bar = text.replace("Foo", "Bar")
    found = findings({"Foo.json": f"{HEAD}{FIELD} {ALLOW}{TAIL}", "Bar.json": bar})
    assert [(one.source, one.rule) for one in found] == [("Bar.json", "TAG_SKIPPED")]


def test_what_is_no_json_is_not_allowed() -> None:
    comment = "// flexwire: allow TEXT_NOT_JSON it is\n"
    assert [one.rule for one in findings({"Foo.json": f"{comment}{{"})] == ["TEXT_NOT_JSON"]
    assert [one.rule for one in findings({"Foo.json": f'{comment}{{ "a'})] == ["TEXT_NOT_JSON"]


@pytest.mark.slow
def test_a_text_full_of_comments_is_read_in_time() -> None:
    many = f"{ALLOW}\n" * 15_000
    found = findings({"Foo.json": f"{HEAD}{many}{FIELD}{TAIL}"})
    assert [one.rule for one in found] == ["ALLOW_UNUSED"] * 1000
    assert not find_allow_comments(SpecText("/*" * 400_000 + "flexwire:", "Foo.json"))
    assert not find_allow_comments(SpecText('"\\' * 400_000 + "flexwire:", "Foo.json"))


@pytest.mark.parametrize("one", released()[::40], ids=lambda one: one.name)
def test_a_released_spec_has_none(one: Released) -> None:
    assert find_allow_comments(SpecText(one.text, one.name)) == ()


OLD = HEAD.replace("0-1", "0") + '{ "name": "A", "type": "int8", "versions": "0+" }' + TAIL


def broken(new: str, *leave_out: str) -> list[tuple[str, int]]:
    def edition(text: str) -> SpecFile:
        return SpecFile("specs/Foo.json", "specs/Foo.json", "", text.encode(), whole=False)

    (old, _), (fresh, texts) = (editions_of([edition(text)], "strict") for text in (OLD, new))
    known = breaking_rules().keys() - set(leave_out)
    report = compare(old, fresh, texts, known, Config(frozenset(known)))
    return [(one.rule, one.line) for one in report.findings]


def test_what_a_change_breaks_is_allowed_at_its_place_in_the_new_spec() -> None:
    wider = OLD.replace("int8", "int16")
    assert broken(wider) == [("FIELD_TYPE_CHANGED", 2)]
    comment = "// flexwire: allow FIELD_TYPE_CHANGED no release had it\n"
    assert broken(f"{comment}{wider}") == [("FIELD_TYPE_CHANGED", 3)]
    field = wider.replace('{ "name": "A"', f'{comment}{{ "name": "A"')
    assert broken(field) == []
    assert broken(field.replace(" no release had it", "")) == [("FIELD_TYPE_CHANGED", 3)]
    assert broken(field.replace("FIELD_TYPE", "FIELD_ORDER")) == [("FIELD_TYPE_CHANGED", 3)]


def test_what_a_message_loses_is_allowed_where_it_begins() -> None:
    gone = OLD.replace('"validVersions": "0"', '"validVersions": "1"')
    licence = "// Licensed to nobody.\n\n"
    assert broken(licence + gone) == [("VERSION_REMOVED", 3)]
    comment = "// flexwire: allow VERSION_REMOVED nobody speaks it\n"
    assert broken(licence + comment + gone) == []
    assert broken(comment + licence + gone) == []


def test_an_allow_that_a_comparison_does_not_need_is_none_of_its_findings() -> None:
    assert broken(f"// flexwire: allow FIELD_REMOVED once it was\n{OLD}") == []


def test_a_finding_that_is_allowed_leaves_the_others() -> None:
    two = f'{ALLOW}\n{FIELD[:-1]}, "ours": 1 }}'
    source = SpecFile("Foo.json", "Foo.json", "", f"{HEAD}{two}{TAIL}".encode(), whole=False)
    (one,) = lint([source], Config()).findings
    assert (one.rule, one.line, one.column) == ("KEY_UNKNOWN", 3, FIELD.index(" }") + 4)
