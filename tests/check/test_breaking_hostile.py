"""A comparison of any two specs ends in time and reports the right findings."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.errors import SpecError
from flexwire.schema.editions import Edition
from flexwire.schema.parse import parse_spec
from flexwire.schema.sources import LARGEST, read_sources
from flexwire.specs.breaking.changes import breaking_rules, find_changes
from flexwire.specs.lint.config import BREAKING, LINT, ConfigError, rules_named
from flexwire.versions import Versions

if TYPE_CHECKING:
    from click.testing import Result

OLD = (
    '{ "name": "Foo", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": [\n'
    '{ "name": "A", "type": "int8", "versions": "0+" } ] }'
)
NEW = OLD.replace("int8", "int16")


def breaking(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["schema", "breaking", *arguments])


def found(old: str, new: str) -> list[tuple[str, str]]:
    before, after = (Edition(parse_spec(text)) for text in (old, new))
    found = find_changes(before, after, breaking_rules().values())
    return [(one.rule.id, one.text) for one in found]


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository whose second revision breaks the first."""
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for text in (OLD, NEW):
        Path("specs/Foo.json").write_text(text, encoding="utf-8")
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x", "--no-gpg-sign"]):
            subprocess.run(["git", *identity, *arguments], check=True)
    subprocess.run(["git", "update-ref", "refs/remotes/origin/main", "HEAD~1"], check=True)
    return tmp_path


def test_versions_are_told_in_full_however_many_there_are() -> None:
    wide = '"validVersions": "0-32766"'
    old = OLD.replace('"validVersions": "0"', wide)
    later = '{ "name": "A", "type": "int8", "versions": "0-9" }'
    assert found(old, old) == []
    [(rule, text)] = found(old, old.replace("int8", "int16"))
    assert (rule, text.split("; ")[0]) == (
        "FIELD_TYPE_CHANGED",
        "A was int8 and is now int16, in versions 0-32766",
    )
    gone = old.replace('{ "name": "A", "type": "int8", "versions": "0+" }', later)
    [(rule, text)] = found(old, gone)
    assert (rule, text.split("; ")[0]) == (
        "FIELD_REMOVED",
        "A (int8) was removed, in versions 10-32766",
    )


def test_a_release_s_versions_may_each_have_a_layout() -> None:
    many = OLD.replace('"validVersions": "0"', '"validVersions": "0-4"')
    old = Edition(parse_spec(many))
    other = parse_spec(many.replace("int8", "int16"))
    new = Edition(parse_spec(many), {1: other, 3: other})
    for one, two in ((old, new), (new, old)):
        [change] = find_changes(one, two, breaking_rules().values())
        assert change.versions == (1, 3)
    assert find_changes(new, new, breaking_rules().values()) == []


def test_versions_that_nobody_has_are_not_told_of() -> None:
    # The valid versions of a message may have gaps.
    spec = parse_spec(OLD.replace('"validVersions": "0"', '"validVersions": "0-9"'))
    valid = Versions.parse_set("1-2,5,8-9")
    old = Edition(replace(spec, valid_versions=valid))
    new = Edition(parse_spec(NEW.replace('"validVersions": "0"', '"validVersions": "2-8"')))
    for one, other in ((old, new), (new, old)):
        [change] = [c for c in find_changes(one, other, breaking_rules().values()) if c.versions]
        assert change.versions == (2, 5, 8)


def doubling(levels: int, innermost: str) -> str:
    """Return a message in which each structure holds the next one twice."""
    structs = [
        {
            "name": f"S{level}",
            "versions": "0+",
            "fields": [
                {"name": name, "type": f"[]S{level + 1}", "versions": "0+"} for name in ("L", "R")
            ],
        }
        for level in range(levels)
    ]
    structs[-1]["fields"] = [{"name": "A", "type": innermost, "versions": "0+"}]
    spec = json.loads(OLD) | {"commonStructs": structs}
    spec["fields"] = [{"name": "S", "type": "[]S0", "versions": "0+"}]
    return json.dumps(spec)


def test_structures_that_double_at_each_level_are_gone_through_once() -> None:
    assert found(doubling(60, "int8"), doubling(60, "int8")) == []
    [(rule, text)] = found(doubling(60, "int8"), doubling(60, "int16"))
    assert rule == "FIELD_TYPE_CHANGED"
    assert text.startswith(f"S.{'L.' * 59}A was int8 and is now int16")


@pytest.mark.parametrize("form", ["text", "json", "github-actions", "junit", "sarif"])
def test_what_is_gone_is_told_in_every_format(specs: Path, form: str) -> None:
    (specs / "specs/Foo.json").write_text(NEW.replace("Foo", "Bar"), encoding="utf-8")
    done = breaking("specs", "--against", "HEAD:specs", "--format", form)
    assert done.exit_code == 100
    assert "MESSAGE_REMOVED" in done.output
    if form == "text":
        assert "1 finding in 1 of 2 files;" in done.output
    if form == "junit":
        suite = ET.fromstring(done.output)  # noqa: S314 - our own text
        names = {one.get("name"): len(one) for one in suite.iter("testcase")}
        assert names == {"specs/Foo.json": 0, "HEAD:specs/Foo.json": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            OLD.replace('"validVersions": "0"', '"validVersions": "0+"'),
            "validVersions 0+ has no end",
        ),
        (" " * (LARGEST + 1), "larger than 1 MiB"),
        ("", "expected a value, got the end of the text"),
    ],
)
def test_what_cannot_be_compared_is_refused(specs: Path, text: str, reason: str) -> None:
    (specs / "specs/Foo.json").write_text(text, encoding="utf-8")
    for arguments in (("specs", "--against", "HEAD:specs"), ("HEAD:specs", "--against", "specs")):
        error = breaking(*arguments).exception
        assert isinstance(error, SpecError)
        assert str(error).startswith("specs/Foo.json")
        assert reason in str(error)


def test_a_range_may_name_branches_with_slashes(specs: Path) -> None:
    assert specs.exists()
    assert breaking("origin/main..HEAD:specs").exit_code == 100
    assert breaking("HEAD..origin/main:specs").exit_code == 100
    assert breaking("origin/main..HEAD~1:specs").exit_code == 0
    three = breaking("origin/main...HEAD:specs")
    assert three.exit_code == 2
    assert "expected a range with two dots, got three" in three.output
    # A path that exists on disk is not read as a range.
    odd = specs / "a..b:c"
    odd.mkdir()
    (odd / "Foo.json").write_text(OLD, encoding="utf-8")
    assert breaking("a..b:c", "--against", "HEAD~1:specs").exit_code == 0


@pytest.mark.parametrize("ignore", ["specs", "specs/Foo.json", "*.json"])
def test_what_is_ignored_is_so_from_everywhere(
    specs: Path, monkeypatch: pytest.MonkeyPatch, ignore: str
) -> None:
    (specs / "flexwire.toml").write_text(f'[breaking]\nignore = ["{ignore}"]', encoding="utf-8")
    for new in ("specs", "HEAD:specs", str(specs / "specs"), "specs/Foo.json"):
        assert breaking(new, "--against", "HEAD~1:specs").exit_code == 0
    monkeypatch.chdir(specs / "specs")
    for new in (".", "Foo.json", "../specs", "HEAD:specs"):
        assert breaking(new, "--against", "HEAD~1:specs").exit_code == 0
    Path("Foo.json").write_text(NEW.replace("Foo", "Bar"), encoding="utf-8")
    assert breaking(".", "--against", "HEAD:specs").exit_code == 0
    (specs / "flexwire.toml").write_text('[breaking]\nignore = ["other"]', encoding="utf-8")
    assert breaking(".", "--against", "HEAD:specs").exit_code == 100


def test_a_pipe_in_a_directory_is_refused_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Foo.json")
    with pytest.raises(SpecError, match=r"Foo\.json: not a regular file"):
        read_sources([str(tmp_path)])


def test_a_rule_of_the_other_command_is_named_as_such() -> None:
    with pytest.raises(ConfigError, match="this name belongs to 'flexwire schema lint'"):
        rules_named("TAG_SKIPPED", of=BREAKING)
    with pytest.raises(ConfigError, match="this name belongs to 'flexwire schema breaking'"):
        rules_named("FIELD_ADDED", of=LINT)


def test_lint_has_nothing_to_say_of_a_release() -> None:
    done: Any = CliRunner().invoke(app, ["schema", "lint", "release:4.0"])
    assert done.exit_code == 2
    assert "release:4.0: the catalog does not contain the text of specs" in done.output
