"""Records of coordinators are checked: their keys and values have types of their own since Kafka
4.1.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from flexwire.schema.editions import Edition
from flexwire.schema.parse import parse_spec
from flexwire.specs.breaking.changes import breaking_rules, find_changes
from flexwire.specs.lint.config import LINT, Config
from tests.check.pages import findings

KEY: dict[str, Any] = {
    "name": "FooKey",
    "type": "coordinator-key",
    "apiKey": 3,
    "validVersions": "0",
    "flexibleVersions": "none",
    "fields": [{"name": "Group", "type": "string", "versions": "0+"}],
}
VALUE = KEY | {"name": "FooValue", "type": "coordinator-value", "flexibleVersions": "0+"}
OTHER_KEY = KEY | {"name": "BarKey"}
OTHER_VALUE = VALUE | {"name": "BarValue"}


def lint(*specs: dict[str, Any]) -> list[str]:
    files = {f"{spec['name']}.json": json.dumps(spec) for spec in specs}
    return sorted(one.rule for one in findings(files, Config(LINT.defaults())))


@pytest.mark.parametrize(
    ("specs", "rules"),
    [
        ((KEY, VALUE), []),
        # The value may have any number of versions.
        ((KEY, VALUE | {"validVersions": "0-4"}), []),
        ((KEY | {"validVersions": "0-1"}, VALUE), ["COORDINATOR_KEY_VERSIONED"]),
        ((KEY | {"validVersions": "2"}, VALUE), ["COORDINATOR_KEY_VERSIONED"]),
        ((KEY | {"flexibleVersions": "0+"}, VALUE), ["COORDINATOR_KEY_VERSIONED"]),
        ((KEY | {"validVersions": "1", "flexibleVersions": "1+"}, VALUE),
         ["COORDINATOR_KEY_VERSIONED", "COORDINATOR_KEY_VERSIONED"]),
        ((KEY, VALUE, OTHER_KEY | {"apiKey": 4}, OTHER_VALUE | {"apiKey": 4}), []),
        ((KEY, VALUE, OTHER_KEY), ["API_KEY_REPEATED"]),
        ((KEY, VALUE, OTHER_VALUE), ["API_KEY_REPEATED"]),
        # Equal api keys of different types are different keys.
        ((KEY, VALUE, KEY | {"name": "FooRecord", "type": "metadata"}), []),
        ((KEY, VALUE, KEY | {"name": "Foo", "type": "data"}), []),
        ((KEY, OTHER_VALUE | {"apiKey": 4}), ["PARTNER_MISSING", "PARTNER_MISSING"]),
        ((KEY | {"apiKey": None}, VALUE), ["API_KEY_MISSING", "PARTNER_MISSING"]),
        ((KEY, VALUE | {"apiKey": None}), ["API_KEY_MISSING", "PARTNER_MISSING"]),
        ((KEY, VALUE | {"listeners": ["broker"]}), ["LISTENERS_MISPLACED"]),
        ((KEY | {"latestVersionUnstable": True}, VALUE), ["UNSTABLE_MISPLACED"]),
    ],
)  # fmt: skip
def test_lint_knows_their_types(specs: tuple[dict[str, Any], ...], rules: list[str]) -> None:
    assert lint(*specs) == rules


def told(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = (Edition(parse_spec(json.dumps(one))) for one in (old, new))
    return [
        f"{one.rule.id} {one.text}"
        for one in find_changes(before, after, breaking_rules().values())
    ]


def data(versions: str, **facts: Any) -> dict[str, Any]:
    """Return a key or a value as specs declared it before 4.1."""
    spec = KEY | {"type": "data", "validVersions": versions} | facts
    return {key: value for key, value in spec.items() if key != "apiKey"}


@pytest.mark.parametrize("number", [0, 1, 7, 32766])
def test_a_key_s_version_is_now_its_api_key(number: int) -> None:
    new = KEY | {"apiKey": number}
    assert told(data(str(number)), new) == []
    assert told(new, data(str(number))) == []
    [other] = told(data(str(number)), KEY | {"apiKey": number - 1 if number else 1})[:1]
    assert other.startswith(f"API_KEY_CHANGED FooKey had record type {number} (its version)")


def test_keys_are_compared_as_the_record_that_they_are() -> None:
    # Version 1 of the old spec is compared, including the field that this version added.
    later = [{"name": "At", "type": "int64", "versions": "1+"}]
    old = data("0-1", fields=KEY["fields"] + later)
    assert told(old, KEY | {"apiKey": 0}) == [
        "VERSION_REMOVED version 1 is no longer valid in FooKey"
    ]
    [gone] = told(old, KEY | {"apiKey": 1})
    assert gone.startswith("FIELD_REMOVED At (int64) was removed, in version 0")


def test_values_keep_their_versions() -> None:
    old = data("0-4", name="FooValue", flexibleVersions="4+")
    new = VALUE | {"validVersions": "0-4", "flexibleVersions": "4+"}
    assert told(old, new) == []
    assert told(new, old) == []
    [gone] = told(old, new | {"validVersions": "1-4"})
    assert gone.startswith("VERSION_REMOVED")


@pytest.mark.parametrize("kind", ["request", "response", "header", "metadata"])
def test_what_is_not_data_does_not_become_a_record(kind: str) -> None:
    for one in (KEY, VALUE):
        for old, new in ((one | {"type": kind}, one), (one, one | {"type": kind})):
            assert told(old, new)[0].startswith("MESSAGE_TYPE_CHANGED")
    assert told(KEY, KEY | {"type": "coordinator-value"})[0].startswith("MESSAGE_TYPE_CHANGED")
