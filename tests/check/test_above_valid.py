"""Fields of future versions are reported. Fields of removed versions are reported on request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.specs.lint.config import ALL, Config, rules_named
from flexwire.versions import Versions
from tests.check.pages import findings
from tests.check.released import by_directory
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Iterator

Spec = dict[str, Any]
DIRECTORIES = by_directory()
FILES = {
    name: text
    for (release, _), files in DIRECTORIES.items()
    for name, text in files.items()
    if release == "3.8.1" and json.loads(text)["validVersions"] != "none"
}
PEDANTIC = Config(rules_named(ALL))


def leaves(fields: list[Spec], path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the path to every field that contains no other fields."""
    for place, one in enumerate(fields):
        if "fields" in one:
            yield from leaves(one["fields"], (*path, place))
        else:
            yield (*path, place)


def moved(text: str, path: tuple[int, ...], versions: str) -> str:
    """Return a spec that gives one field other versions, and that has no other findings."""
    spec = json.loads(text)
    fields = spec["fields"]
    for place in path[:-1]:
        fields = fields[place]["fields"]
    one = fields[path[-1]]
    fields[path[-1]] = {"name": one["name"], "type": one["type"], "versions": versions}
    return json.dumps(spec)


@pytest.mark.slow
@each("name", list(FILES), parts=5)
def test_above_is_a_finding_and_below_is_pedantic(name: str) -> None:
    text = FILES[name]
    valid = Versions.parse(json.loads(text)["validVersions"])
    above = [f"{valid.highest + 1}+", str(valid.highest + 2)]
    below = [f"0-{valid.lowest - 1}"] if valid.lowest else []
    assert {one.rule for one in findings({name: text})} == set()
    for path in leaves(json.loads(text)["fields"]):
        for versions in above:
            found = findings({name: moved(text, path, versions)})
            assert [one.rule for one in found].count("FIELD_ABOVE_VALID") == 1
        for versions in below:
            given = {name: moved(text, path, versions)}
            told = {one.rule for one in findings(given)}
            assert told.isdisjoint({"FIELD_ABOVE_VALID", "FIELD_OUTSIDE_VALID"})
            pedantic = {one.rule for one in findings(given, PEDANTIC)}
            assert "FIELD_OUTSIDE_VALID" in pedantic
            assert "FIELD_ABOVE_VALID" not in pedantic
