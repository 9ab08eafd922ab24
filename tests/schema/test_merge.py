"""A message's specs are merged: each supplies the facts about a field for its own versions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from flexwire.schema.merge import MergedField, merge
from flexwire.schema.parse import parse_spec
from flexwire.versions import Versions

if TYPE_CHECKING:
    from flexwire.schema.resolve import ServedSpec


def served(versions: str, *fields: dict[str, Any], flexible: str = "2+") -> ServedSpec:
    spec = {
        "type": "data",
        "name": "Foo",
        "validVersions": versions,
        "flexibleVersions": flexible,
        "fields": fields,
    }
    return parse_spec(json.dumps(spec)), Versions.parse(versions)


def bar(versions: str, type_: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": "Bar", "type": type_, "versions": versions, **more}


def merged(*specs: ServedSpec) -> MergedField:
    return merge(specs)["Foo"]["bar"]


def test_of_one_spec_open_ends_stay_open_and_others_closed() -> None:
    assert merged(served("0-5", bar("2+"))).present_in() == "2+"
    assert merged(served("0-5", bar("2-9"))).present_in() == "2-5"
    assert merged(served("0-5", bar("2-5"))).present_in() == "2-5"
    assert merged(served("0-5", bar("6+"))).present_in() == "none"


def test_a_spec_speaks_for_the_versions_it_serves() -> None:
    other = {"name": "Other", "type": "int8", "versions": "0+"}
    assert merged(served("4-5", bar("0+")), served("0-3", other)).present_in() == "4+"
    assert merged(served("4-5", other), served("0-3", bar("0+"))).present_in() == "0-3"
    assert merged(served("3-5", bar("5+")), served("0-2", bar("0-1"))).present_in() == "0-1,5+"
    # The open end of the older spec is not the end of the newest spec.
    assert merged(served("4-5", bar("4-5")), served("0-3", bar("0+"))).present_in() == "0-5"


def test_null_is_where_a_field_is_and_a_spec_says_so() -> None:
    one = merged(
        served("3-5", bar("0+", nullableVersions="0+")),
        served("0-2", bar("1+", nullableVersions="0-1")),
    )
    assert (one.nullable, one.nullable_in()) == (True, "1,3+")
    assert not merged(served("0-5", bar("0+"))).nullable
    # Records are null until they are set, although no version can carry a null.
    assert merged(served("0-5", bar("0+", "records"))).nullable


def test_tags_and_types_of_all_specs() -> None:
    tagged: dict[str, Any] = {"taggedVersions": "3+", "tag": 4}
    one = merged(served("3-5", bar("3+", **tagged)), served("0-2", bar("0+", "int8")))
    assert (one.tags, one.tagged_in(), one.present_in()) == ((4,), "3+", "0+")
    assert [str(kind) for kind in one.types] == ["string", "int8"]


def test_structures_are_merged_by_name_and_the_message_comes_first() -> None:
    inner = {"name": "At", "type": "int64", "versions": "0+"}
    late = {"name": "Late", "type": "int64", "versions": "0+"}
    found = merge(
        [
            served("1-2", bar("0+", "[]Inner", fields=[late])),
            served("0", bar("0+", "[]Inner", fields=[inner, late])),
        ]
    )
    assert list(found) == ["Foo", "Inner"]
    assert {name: one.present_in() for name, one in found["Inner"].items()} == {
        "late": "0+",
        "at": "0",
    }
