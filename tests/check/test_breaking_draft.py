"""The compatibility rules of KIP-482's first draft, which apply only in mode draft.

"In general, adding or removing an optional field is always a compatible operation, provided that we
don't reuse a tag that was used for something else in a previous release. Changing the type or
nullability of an existing optional field is also an incompatible change."
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.schema.editions import editions_of
from flexwire.schema.sources import SpecFile
from flexwire.specs.breaking.report import compare
from flexwire.specs.lint.config import BREAKING, Config, rules_named

if TYPE_CHECKING:
    from flexwire.schema.parse import Mode

Optional = dict[str, Any]
ONE: Optional = {"name": "One", "type": "string", "tag": "0x0001", "nullable": True}
TWO: Optional = {"name": "Two", "type": "int32", "tag": "0x0002", "default": "5"}
THREE: Optional = {"name": "Three", "type": "int32", "tag": "0x0003"}
MANDATORY = {"name": "Four", "type": "int32", "versions": "0+"}


def draft(*optional: Optional, inside: bool, versions: str = "1+") -> str:
    fields: list[dict[str, Any]] = [MANDATORY]
    spec: dict[str, Any] = {"name": "Foo", "type": "data", "validVersions": "0-2"}
    spec |= {"versionsWithOptional": versions}
    if not inside:
        return json.dumps(spec | {"optionalFields": list(optional), "fields": fields})
    struct = {"name": "Bars", "type": "[]Bar", "versions": "0+", "fields": fields}
    return json.dumps(spec | {"fields": [struct | {"optionalFields": list(optional)}]})


def final(*optional: Optional, inside: bool) -> str:
    """Return the same spec in the grammar of the final KIP."""
    fields: list[dict[str, Any]] = [MANDATORY]
    for one in optional:
        tagged = {key: value for key, value in one.items() if key != "nullable"}
        nullable = {"nullableVersions": "1+"} if one.get("nullable") else {}
        tag = int(one["tag"], 16)
        fields.append(tagged | nullable | {"tag": tag, "versions": "1+", "taggedVersions": "1+"})
    spec: dict[str, Any] = {"name": "Foo", "type": "data", "validVersions": "0-2"}
    spec |= {"flexibleVersions": "1+"}
    if not inside:
        return json.dumps(spec | {"fields": fields})
    struct = {"name": "Bars", "type": "[]Bar", "versions": "0+", "fields": fields}
    return json.dumps(spec | {"fields": [struct]})


def told(old: str, new: str, mode: Mode) -> list[str]:
    (before, _), (after, texts) = (
        editions_of([SpecFile("Foo.json", "Foo.json", "", text.encode(), whole=False)], mode)
        for text in (old, new)
    )
    config = Config(rules_named("WIRE", of=BREAKING), mode)
    return [one.rule for one in compare(before, after, texts, config.rules, config).findings]


COMPATIBLE: list[tuple[str, list[Optional], list[Optional], list[str]]] = [
    ("nothing", [ONE, TWO], [ONE, TWO], []),
    ("the first is added", [], [ONE], []),
    ("one is added", [ONE], [ONE, TWO], []),
    ("one is added before", [TWO], [ONE, TWO], []),
    ("one is removed", [ONE, TWO], [TWO], ["TAGGED_FIELD_REMOVED"]),
    ("the last is removed", [ONE], [], ["TAGGED_FIELD_REMOVED"]),
    ("all are removed", [ONE, TWO], [], ["TAGGED_FIELD_REMOVED", "TAGGED_FIELD_REMOVED"]),
    ("one goes and another comes", [ONE], [TWO], ["TAGGED_FIELD_REMOVED"]),
    ("one goes to a free tag", [ONE, TWO], [ONE, TWO | {"tag": "0x0007"}], ["TAG_CHANGED"]),
]
INCOMPATIBLE: list[tuple[str, list[Optional], list[Optional], str]] = [
    ("a tag is reused", [ONE, TWO], [ONE, THREE | {"tag": "0x0002"}], "TAG_REUSED"),
    (
        "two change places",
        [ONE, TWO],
        [ONE | {"tag": "0x0002"}, TWO | {"tag": "0x0001"}],
        "TAG_REUSED",
    ),
    ("the type", [ONE, TWO], [ONE, TWO | {"type": "int64"}], "FIELD_TYPE_CHANGED"),
    ("null is refused", [ONE], [ONE | {"nullable": False}], "FIELD_NULLABILITY_CHANGED"),
    ("null is taken", [ONE | {"nullable": False}], [ONE], "FIELD_NULLABILITY_CHANGED"),
    ("the default", [TWO], [TWO | {"default": "6"}], "TAGGED_DEFAULT_CHANGED"),
]


@pytest.mark.parametrize("inside", [False, True], ids=["message", "structure"])
@pytest.mark.parametrize(("_", "old", "new", "finally_"), COMPATIBLE)
def test_to_add_and_to_remove_is_compatible(
    _: str, old: list[Optional], new: list[Optional], finally_: list[str], *, inside: bool
) -> None:
    assert told(draft(*old, inside=inside), draft(*new, inside=inside), "draft") == []
    for mode in ("strict", "kip", "legacy"):
        assert told(final(*old, inside=inside), final(*new, inside=inside), mode) == finally_


@pytest.mark.parametrize("inside", [False, True], ids=["message", "structure"])
@pytest.mark.parametrize(("_", "old", "new", "rule"), INCOMPATIBLE)
def test_another_meaning_of_a_tag_is_not(
    _: str, old: list[Optional], new: list[Optional], rule: str, *, inside: bool
) -> None:
    assert set(told(draft(*old, inside=inside), draft(*new, inside=inside), "draft")) == {rule}
    for mode in ("strict", "kip", "legacy"):
        assert rule in told(final(*old, inside=inside), final(*new, inside=inside), mode)


@pytest.mark.parametrize("inside", [False, True], ids=["message", "structure"])
def test_existing_versions_are_not_changed_to_have_optional_fields(*, inside: bool) -> None:
    # "existing request versions will not be changed to support optional fields"
    for before, after in (("1+", "2+"), ("2+", "1+"), ("none", "0+")):
        optional = [ONE] if "none" not in (before, after) else []
        old = draft(*optional, inside=inside, versions=before)
        new = draft(*optional, inside=inside, versions=after)
        assert told(old, new, "draft") == ["VERSION_FLEXIBILITY_CHANGED"]


def test_mandatory_fields_are_as_strict_as_ever() -> None:
    old = draft(ONE, inside=False)
    assert told(old, old.replace(json.dumps(MANDATORY), ""), "draft") == ["FIELD_REMOVED"]
