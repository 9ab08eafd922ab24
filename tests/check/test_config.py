"""The lint configuration sets rules, the mode, and excluded places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flexwire.schema.sources import read_sources
from flexwire.specs.lint.config import (
    LINT,
    Config,
    ConfigError,
    choose,
    find_config,
    read_config,
)
from flexwire.specs.lint.lint import lint
from flexwire.specs.lint.rule import Category
from flexwire.specs.lint.rules import rules

# Breaks NAME_WITHOUT_SUFFIX, TAG_SKIPPED and ABOUT_MISSING.
SPEC = {
    "type": "request",
    "name": "Foo",
    "apiKey": 1,
    "validVersions": "0",
    "flexibleVersions": "0+",
    "fields": [{"name": "A", "type": "int8", "versions": "0+", "tag": 1, "taggedVersions": "0+"}],
}


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def config(tmp_path: Path, text: str) -> Config:
    return read_config(written(tmp_path / "flexwire.toml", f"[lint]\n{text}"))


def linted(root: Path, chosen: Config, *names: str) -> dict[str, set[str]]:
    sources = read_sources([str(root / name) for name in names])
    findings = lint(sources, chosen).findings
    return {
        name: {one.rule for one in findings if one.source.endswith(name)} - {"PARTNER_MISSING"}
        for name in names
    }


def test_by_default_all_but_the_pedantic_rules_are_used(tmp_path: Path) -> None:
    pedantic = {rule.id for rule in rules().values() if rule.category is Category.PEDANTIC}
    assert LINT.defaults() == rules().keys() - pedantic
    assert pedantic
    assert Config().rules == config(tmp_path, "").rules == LINT.defaults()
    assert (Config().mode, config(tmp_path, 'mode = "kip"').mode) == ("strict", "kip")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('use = ["TAG_SKIPPED"]', {"TAG_SKIPPED"}),
        ('use = ["ALL"]', {"TAG_SKIPPED", "NAME_WITHOUT_SUFFIX", "ABOUT_MISSING"}),
        ('use = ["DEFAULT", "ABOUT_MISSING"]\nexcept = ["GENERATOR"]', {"ABOUT_MISSING"}),
        ('use = ["PEDANTIC"]', {"ABOUT_MISSING"}),
        ('except = ["TAG_SKIPPED"]', {"NAME_WITHOUT_SUFFIX"}),
        ('except = ["ALL"]', set()),
        ("use = []", {"TAG_SKIPPED", "NAME_WITHOUT_SUFFIX"}),
    ],
)
def test_use_and_except_take_rules_and_categories(
    tmp_path: Path, text: str, expected: set[str]
) -> None:
    written(tmp_path / "Foo.json", json.dumps(SPEC))
    found = linted(tmp_path, config(tmp_path, text), "Foo.json")
    assert found == {"Foo.json": expected}


@pytest.mark.parametrize(
    "ignore",
    [
        '["old"]',
        '["old/"]',
        '["old/*"]',
        '["o*.json"]',
        '["old/Foo.json"]',
        '{ ALL = ["old"] }',
        '{ GENERATOR = ["old"] }',
        '{ TAG_SKIPPED = ["old"], NAME_WITHOUT_SUFFIX = ["old/Foo.json"] }',
    ],
)
def test_what_is_ignored_is_not_told(tmp_path: Path, ignore: str) -> None:
    for name in ("old/Foo.json", "new/Foo.json"):
        written(tmp_path / name, json.dumps(SPEC))
    found = linted(tmp_path, config(tmp_path, f"ignore = {ignore}"), "old", "new")
    assert found == {"old": set(), "new": set()}
    found = linted(tmp_path, config(tmp_path, f"ignore = {ignore}"), "old/Foo.json", "new/Foo.json")
    assert found == {
        "old/Foo.json": set(),
        "new/Foo.json": {"TAG_SKIPPED", "NAME_WITHOUT_SUFFIX"},
    }


def test_what_is_in_a_jar_is_ignored_by_its_path_inside() -> None:
    ignored = ((frozenset({"TAG_SKIPPED"}), "common/message"),)
    chosen = Config(ignored=ignored, root=Path("/somewhere"))
    assert chosen.ignores("TAG_SKIPPED", "common/message/Foo.json")
    assert not chosen.ignores("TAG_REPEATED", "common/message/Foo.json")
    assert not chosen.ignores("TAG_SKIPPED", "common/messages/Foo.json")


def test_one_rule_is_ignored_in_one_file(tmp_path: Path) -> None:
    for name in ("old/Foo.json", "new/Foo.json"):
        written(tmp_path / name, json.dumps(SPEC))
    chosen = config(tmp_path, 'ignore = { TAG_SKIPPED = ["old/Foo.json"] }')
    assert linted(tmp_path, chosen, "old/Foo.json", "new/Foo.json") == {
        "old/Foo.json": {"NAME_WITHOUT_SUFFIX"},
        "new/Foo.json": {"TAG_SKIPPED", "NAME_WITHOUT_SUFFIX"},
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[lnit]", "unknown key 'lnit'; did you mean 'lint'?"),
        ("[lint]\nuses = []", "lint: unknown key 'uses'; did you mean 'use'?"),
        ('[lint]\nuse = ["TAG_SKIPED"]', "'TAG_SKIPED'; did you mean 'TAG_SKIPPED'?"),
        ('[lint]\nexcept = ["PEDANTRY"]', "did you mean 'PEDANTIC'?"),
        ('[lint]\nuse = ["XYZ"]', "'flexwire schema lint --explain ALL' lists"),
        ('[lint]\nuse = "TAG_SKIPPED"', "use: expected a list of strings, got 'TAG_SKIPPED'"),
        ("[lint]\nexcept = [1]", "except: expected a list of strings, got [1]"),
        ('[lint]\nignore = { TAGS = ["a"] }', "ignore: no rule or category 'TAGS'"),
        ("[lint]\nignore = { TAG_SKIPPED = 1 }", "ignore: expected a list of strings, got 1"),
        ("[lint]\nignore = 1", "ignore: expected a list of strings, got 1"),
        ('[lint]\nmode = "strikt"', "mode 'strikt'; did you mean 'strict'?"),
        ("[lint]\nmode = 1", "mode 1; known are strict, legacy, kip, draft"),
        ("lint = 1", "lint: expected a table, got 1"),
        ("[lint", "(at end of document)"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_told_with_the_nearest(tmp_path: Path, text: str, reason: str) -> None:
    path = written(tmp_path / "flexwire.toml", text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


def test_a_configuration_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flexwire.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="utf-8"):
        read_config(tmp_path / "flexwire.toml")
    with pytest.raises(ConfigError) as caught:
        read_config(tmp_path / "none.toml")
    assert str(caught.value) == f"{tmp_path / 'none.toml'}: No such file or directory"


def test_pyproject_has_a_table_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path / "pyproject.toml", '[tool.flexwire.lint]\nuse = ["TAG_SKIPPED"]')
    assert read_config(path).rules == {"TAG_SKIPPED"}
    for nothing in ("", "[tool]\n", "tool = 1\n", "[tool.flexwire]\n"):
        assert read_config(written(path, nothing)).rules == LINT.defaults()
    written(path, "[tool.flexwire.lnit]\n")
    with pytest.raises(ConfigError, match=r"tool\.flexwire: unknown key 'lnit'"):
        read_config(path)


def test_the_nearest_configuration_above_is_used(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_config(inner) is None
    outer = written(tmp_path / "pyproject.toml", "[tool.flexwire.lint]\n")
    assert find_config(inner) == outer
    # A file without a lint section is not a configuration.
    written(tmp_path / "a" / "pyproject.toml", "[tool.other]\n")
    assert find_config(inner) == outer
    nearer = written(tmp_path / "a" / "flexwire.toml", "")
    assert find_config(inner) == nearer


def test_names_are_chosen() -> None:
    assert choose(["TAG_SKIPPED", "JAVA"], ["BYTES_IN_ARRAY"]) == {"TAG_SKIPPED"} | {
        rule.id for rule in rules().values() if rule.category is Category.JAVA
    } - {"BYTES_IN_ARRAY"}
