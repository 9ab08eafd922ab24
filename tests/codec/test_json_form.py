"""The JSON form keeps values that Kafka's converters lose, and errors in JSON name the path."""

from __future__ import annotations

import ast
import inspect
import math
import operator
import pickle
import re
from typing import Any

import pytest

from flexwire.codec import json_form, message
from flexwire.errors import EncodeError, JsonFormError, MissingFieldsError
from tests.codec.made_up import everything, made

MadeUp: Any = everything()


def test_records_and_unknown_tagged_fields_are_kept() -> None:
    value = MadeUp(batch=b"\x00\xff", unknown_tagged_fields={9: b"\x01\x02"})
    form = value.to_json(1)
    assert form["batch"] == "AP8="
    assert form["_unknownTaggedFields"] == [{"tag": 9, "data": "AQI="}]
    assert MadeUp.from_json(form, 1) == value


def test_tagged_fields_stand_in_it_only_where_they_are_not_default() -> None:
    assert "rack" not in MadeUp().to_json(1)
    assert MadeUp(rack="r").to_json(1)["rack"] == "r"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 1e300])
def test_every_double_comes_back(number: float) -> None:
    again = MadeUp.from_json(MadeUp(ratio=number).to_json(0), 0).ratio
    assert str(again) == str(number)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"count": "7"}, "at count: expected a int32, got '7'"),
    ({"count": True}, "at count: expected a int32, got True"),
    ({"flag": 1}, "at flag: expected a boolean, got 1"),
    ({"blob": "?"}, "at blob: expected base64, got '?'"),
    ({"id": "AAAA"}, "at id: expected a UUID in base64url, got 'AAAA'"),
    ({"names": "x"}, "at names: expected an array, got 'x'"),
    ({"topics": [{"name": "t"}]}, "at topics[0].leader: missing, and mandatory"),
    ({"topics": [3]}, "at topics[0]: expected an object for Topic, got 3"),
    ({"texd": "x"}, "has no field 'texd' in any version; did you mean 'text'?"),
    ({"_unknownTaggedFields": [{"tag": 9}]}, 'expected {"tag": …, "data": …}'),
    ({"_unknownTaggedFields": [{"tag": "9", "data": ""}]}, "expected an integer as the tag"),
]


@pytest.mark.parametrize(("change", "reason"), FAULTS)
def test_faults_are_errors_with_a_path(change: dict[str, Any], reason: str) -> None:
    form = {**MadeUp().to_json(1), **change}
    with pytest.raises(JsonFormError) as caught:
        MadeUp.from_json(form, 1)
    assert reason in str(caught.value)
    assert str(caught.value).startswith("MadeUp v1 at ")


def test_a_mandatory_field_that_is_missing_is_named() -> None:
    form = MadeUp().to_json(0)
    del form["offset"]
    with pytest.raises(JsonFormError, match="MadeUp v0 at offset: missing"):
        MadeUp.from_json(form, 0)


def test_all_that_is_missing_is_named_at_once() -> None:
    form = MadeUp(topics=[MadeUp.Topic(name="t")]).to_json(0)
    del form["offset"], form["flag"], form["topics"][0]["leader"]
    with pytest.raises(MissingFieldsError) as caught:
        MadeUp.from_json(form, 0)
    reason = "missing, and mandatory in this version, as are offset, topics[0].leader"
    assert str(caught.value) == f"MadeUp v0 at flag: {reason}"
    assert caught.value.__notes__ == ["pass defaults=True to fill in the spec's defaults"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - ours


def test_of_many_that_are_missing_the_first_are_named_and_the_others_counted() -> None:
    form = {**MadeUp().to_json(0), "topics": [{"name": "t"}] * 2_000}
    with pytest.raises(MissingFieldsError) as caught:
        MadeUp.from_json(form, 0)
    first, told = caught.value.path, caught.value.reason
    named = {first, *re.findall(r"topics\[\d+\]\.\w+", told)}
    assert len(named) == 10
    (more,) = re.findall(r" and ([\d,]+) more$", told)
    missing = MadeUp.Topic().replace(name="t")
    each_has = len(MadeUp(topics=[missing]).to_json(0)["topics"][0]) - 1
    assert int(more.replace(",", "")) == 2_000 * each_has - 10


def test_what_is_missing_has_the_default_of_its_spec_where_that_is_asked_for() -> None:
    for version in (0, 1):
        assert MadeUp.from_json({}, version, defaults=True) == MadeUp()
        sparse = MadeUp.from_json({"topics": [{"name": "t"}], "count": 7}, version, defaults=True)
        assert sparse == MadeUp(topics=[MadeUp.Topic(name="t")], count=7)
    one, other = (MadeUp.from_json({}, 1, defaults=True) for _ in range(2))
    one.topics.append(MadeUp.Topic())
    one.names.append("x")
    assert other == MadeUp()


@pytest.mark.parametrize("name", ["MetadataRequest", "FetchRequest", "ProduceRequest"])
def test_defaults_encode_as_those_of_the_class_do(name: str) -> None:
    kind: Any = message(name)
    for version in kind.entry.versions:
        filled = kind.from_json({}, version, defaults=True)
        assert filled.encode(version) == kind().encode(version), version


def test_defaults_are_not_for_what_is_wrong() -> None:
    for form, reason in (({"texd": "x"}, "has no field 'texd'"), ({"topics": [3]}, "expected an")):
        with pytest.raises(JsonFormError, match=reason):
            MadeUp.from_json(form, 1, defaults=True)
    with pytest.raises(TypeError, match="defaults"):
        MadeUp.from_json({}, 1, defaults="yes")


def test_a_field_that_the_version_lacks_is_refused_unless_ignorable() -> None:
    one = made([{"name": "Rack", "type": "string", "versions": "1+"}])
    with pytest.raises(EncodeError, match="MadeUp v0 at rack: this version has no such field"):
        one(rack="r").to_json(0)
    assert one().to_json(0) == {}
    ignorable = made([{"name": "Rack", "type": "string", "versions": "1+", "ignorable": True}])
    assert ignorable(rack="r").to_json(0) == {}


class Seven:
    """An integer that is not an `int`, like numpy's."""

    def __index__(self) -> int:
        return 7


# Values that no version can carry, each in a place that the JSON form would have to show.
WRONG: list[tuple[dict[str, Any], int]] = [
    ({"flag": 1}, 0),
    ({"count": "7"}, 0),
    ({"count": 1.0}, 0),
    ({"count": 2**31}, 0),
    ({"ratio": "1.0"}, 0),
    ({"ratio": 10**400}, 0),
    ({"id": b"0123456789abcdef"}, 0),
    ({"text": None}, 0),
    ({"text": b"bytes"}, 0),
    ({"blob": "text"}, 0),
    ({"blob": None}, 0),
    ({"numbers": None}, 0),
    ({"numbers": 5}, 0),
    ({"flags": [2]}, 0),
    ({"ids": [None]}, 0),
    ({"names": ["a", 3]}, 0),
    ({"topics": [None]}, 0),
    ({"topics": [MadeUp.Topic(name="t", leader=5)]}, 0),
    ({"topics": [MadeUp.Topic(name="t", leader=MadeUp.Leader(epoch=None))]}, 0),
    ({"topics": [MadeUp.Topic(unknown_tagged_fields={9: b""})]}, 0),
    ({"unknown_tagged_fields": {9: b""}}, 0),
    ({"unknown_tagged_fields": {9: "text"}}, 1),
    ({"unknown_tagged_fields": {"9": b""}}, 1),
    ({"unknown_tagged_fields": {0: b""}}, 1),
    ({"rack": None}, 1),
    ({"level": None}, 1),
    ({"current": None}, 1),
    ({"current": MadeUp.Current(leader_id="1")}, 1),
    ({"marks": [1, "2"]}, 1),
]


@pytest.mark.parametrize(("change", "version"), WRONG)
def test_what_has_no_json_form_is_refused_in_the_words_of_the_reference(
    change: dict[str, Any], version: int
) -> None:
    value = MadeUp(**change)
    with pytest.raises(EncodeError) as judged:
        MadeUp.definition.encode_reference(value, version)
    with pytest.raises(EncodeError) as caught:
        value.to_json(version)
    assert str(caught.value) == str(judged.value)


def test_writing_the_json_form_words_no_error_of_its_own() -> None:
    tree = ast.parse(inspect.getsource(json_form))
    writers = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef) and one.name.lstrip("_").startswith("write")
    ]
    assert len(writers) == 3
    assert not [one for writer in writers for one in ast.walk(writer) if isinstance(one, ast.Raise)]


@pytest.mark.parametrize("number", [True, Seven()])
def test_what_the_wire_takes_for_an_integer_is_one_in_json(number: Any) -> None:
    again = MadeUp(count=number, numbers=[number]).to_json(0)
    assert {type(one) for one in (again["count"], *again["numbers"])} == {int}
    assert again["count"] == operator.index(number)
