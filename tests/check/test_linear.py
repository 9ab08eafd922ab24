"""For every rule, a spec of twice the size takes twice the work, measured in function calls."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.schema.editions import editions_of
from flexwire.schema.sources import SpecFile
from flexwire.specs.breaking.changes import breaking_rules, find_changes
from flexwire.specs.lint.config import ALL, LINT, Config, rules_named
from flexwire.specs.lint.lint import lint

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

pytestmark = pytest.mark.slow

Fields = list[dict[str, Any]]
FEW, MANY = 40, 160


def field(number: int, **facts: Any) -> dict[str, Any]:
    return {"name": f"F{number}", "type": "int32", "versions": "0+"} | facts


def struct(number: int) -> dict[str, Any]:
    return {"name": f"S{number}", "versions": "0+", "fields": [field(0)]}


# Specs with any number of fields, which differ in one respect.
SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "inline": lambda count: {"fields": [field(one) for one in range(count)]},
    "other type": lambda count: {"fields": [field(one, type="int64") for one in range(count)]},
    "other names": lambda count: {"fields": [field(one + count) for one in range(count)]},
    "other order": lambda count: {"fields": [field(one) for one in reversed(range(count))]},
    "fewer": lambda count: {"fields": [field(one) for one in range(0, count, 2)]},
    "nullable": lambda count: {
        "fields": [
            field(one, type="string", nullableVersions="0+", default="null") for one in range(count)
        ]
    },
    "tagged": lambda count: {
        "fields": [field(one, tag=one, taggedVersions="0+") for one in range(count)]
    },
    "other tags": lambda count: {
        "fields": [field(one, tag=count - 1 - one, taggedVersions="0+") for one in range(count)]
    },
    "tags of others": lambda count: {
        "fields": [field(one + count, tag=one, taggedVersions="0+") for one in range(count)]
    },
    "other capitals": lambda count: {
        "fields": [field(one, name=f"f{one}", tag=one, taggedVersions="0+") for one in range(count)]
    },
    "structures": lambda count: {
        "fields": [field(one, type=f"[]S{one}", fields=[field(0)]) for one in range(count)]
    },
    "common structures": lambda count: {
        "fields": [field(one, type=f"[]S{one}") for one in range(count)],
        "commonStructs": [struct(one) for one in range(count)],
    },
    "one structure": lambda count: {
        "fields": [field(one, type="[]S0") for one in range(count)],
        "commonStructs": [struct(0)],
    },
    "behind": lambda count: {"fields": [field(one, versions="0") for one in range(count)]},
    "ahead": lambda count: {"fields": [field(one, versions="9+") for one in range(count)]},
}
ALIKE = [
    ("inline", other)
    for other in ("inline", "other type", "other names", "other order", "fewer", "nullable")
]
ALIKE += [("tagged", other) for other in ("tagged", "inline", "other tags", "tags of others")]
ALIKE += [("tagged", "other capitals"), ("inline", "tagged"), ("inline", "behind")]
ALIKE += [(one, one) for one in ("structures", "common structures", "one structure")]
ALIKE += [("inline", "structures"), ("structures", "common structures"), ("ahead", "behind")]


def source(shape: str, count: int) -> SpecFile:
    spec = {"name": "Foo", "type": "data", "validVersions": "1-3", "flexibleVersions": "0+"}
    text = json.dumps(spec | SHAPES[shape](count), indent=1)
    return SpecFile("Foo.json", "Foo.json", "", text.encode(), whole=False)


def calls(work: Callable[[], object]) -> int:
    """Count the function calls, including those of methods written in C."""
    count = 0

    def seen(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def compare(old: str, new: str, count: int) -> None:
    (before, _), (after, _) = (
        editions_of([source(shape, count)], "strict") for shape in (old, new)
    )
    find_changes(before["Foo"], after["Foo"], breaking_rules().values())


@pytest.mark.parametrize(("old", "new"), ALIKE)
def test_comparing_is_linear_in_the_fields(old: str, new: str) -> None:
    compare(old, new, FEW)
    few, many = (calls(partial(compare, old, new, count)) for count in (FEW, MANY))
    assert many / few < 1.2 * MANY / FEW


@pytest.mark.parametrize("shape", SHAPES)
def test_lint_is_linear_in_the_fields(shape: str) -> None:
    config = Config(rules_named(ALL, of=LINT))
    lint([source(shape, FEW)], config)
    few, many = (calls(partial(lint, [source(shape, count)], config)) for count in (FEW, MANY))
    assert many / few < 1.2 * MANY / FEW


def test_a_scan_for_each_field_is_seen() -> None:
    def scan(count: int) -> None:
        for one in range(count):
            for other in range(one):
                abs(other)

    few, many = (calls(partial(scan, count)) for count in (FEW, MANY))
    assert many / few > 2 * MANY / FEW
