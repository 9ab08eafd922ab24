from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import SpecError
from flexwire.schema.parse import Mode, parse_spec
from flexwire.schema.spec import FieldSpec, FieldType, MessageSpec, MessageType, Position
from flexwire.versions import Versions
from tests.each import each

CASES = [
    json.loads(line)
    for line in Path(__file__)
    .with_name("spec-cases.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
# Broken rules that leave a spec readable: Kafka's generator refuses such specs; lint must report
# them.
LINT = {
    "flex-range",
    "listeners-on-response",
    "unstable-on-response",
    "tag-subset",
    "tag-gap",
    "tag-mapkey",
    "zerocopy-records",
    "ent-mismatch",
}
MODES: tuple[Mode, ...] = ("strict", "legacy", "kip", "draft")
# Strings that Kafka's parser accepts, but that Kafka's generator refuses and flexwire does not
# understand either.
REFUSED_EARLY = {"common-lower", "common-respec"}


def message(*fields: dict[str, Any], **more: Any) -> str:
    spec = {
        "type": "request",
        "name": "FooRequest",
        "validVersions": "0-2",
        "flexibleVersions": "1+",
        "fields": list(fields),
    }
    return json.dumps({key: value for key, value in (spec | more).items() if value != "absent"})


def field(spec: dict[str, Any], mode: Mode = "strict") -> FieldSpec:
    facts = {"name": "Bar", "type": "int32", "versions": "0+"} | spec
    facts = {key: value for key, value in facts.items() if value != "absent"}
    return parse_spec(message(facts), mode=mode).fields[0]


def refusal(text: str, mode: Mode = "strict") -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "Foo.json", mode=mode)
    return caught.value


@each("case", {case["case"]: case for case in CASES})
def test_strict_reads_what_kafkas_generator_reads(case: dict[str, str]) -> None:
    readable = case["outcome"] != "PARSE-FAIL" or case["case"] in LINT
    if readable and case["case"] not in REFUSED_EARLY:
        assert isinstance(parse_spec(case["spec"], mode="strict"), MessageSpec)
    else:
        assert refusal(case["spec"]).line >= 1


def test_every_key_is_read() -> None:
    spec = parse_spec(
        message(
            {
                "name": "Bar",
                "type": "[]Baz",
                "versions": "0+",
                "nullableVersions": "1+",
                "tag": 0,
                "taggedVersions": "2+",
                "default": "null",
                "ignorable": True,
                "about": "The bars.",
                "fields": [{"name": "Id", "type": "string", "versions": "0+", "mapKey": True}],
            },
            {
                "name": "Topic",
                "type": "string",
                "versions": "1",
                "flexibleVersions": "none",
                "entityType": "topicName",
            },
            {"name": "Data", "type": "bytes", "versions": "0+", "zeroCopy": True},
            apiKey=7,
            listeners=["broker", "controller"],
            deprecatedVersions="0",
            latestVersionUnstable=True,
            commonStructs=[{"name": "Common", "versions": "1+", "fields": []}],
        ),
        mode="strict",
    )
    assert (spec.name, spec.type, spec.api_key) == ("FooRequest", MessageType.REQUEST, 7)
    assert (spec.valid_versions, spec.flexible_versions) == (Versions(0, 2), Versions.parse("1+"))
    assert (spec.deprecated_versions, spec.latest_version_unstable) == (Versions(0, 0), True)
    assert spec.listeners == ("broker", "controller")
    assert spec.common_structs[0].name == "Common"
    bars, topic, data = spec.fields
    assert bars.type == FieldType("Baz", is_array=True)
    assert (bars.tag, bars.tagged_versions) == (0, Versions.parse("2+"))
    assert (bars.nullable_versions, bars.default) == (Versions.parse("1+"), "null")
    assert (bars.ignorable, bars.about) == (True, "The bars.")
    assert bars.fields[0].map_key
    assert (topic.flexible_versions, topic.entity_type) == (Versions.NONE, "topicName")
    assert data.zero_copy
    assert data.flexible_versions is None


@pytest.mark.parametrize(
    ("spec", "attribute", "value"),
    [
        ({"default": 5}, "default", "5"),
        ({"default": -1.50}, "default", "-1.5"),
        ({"default": False}, "default", "false"),
        ({"default": None}, "default", ""),
        ({"tag": "0", "taggedVersions": "1+"}, "tag", 0),
        ({"tag": " 3 ", "taggedVersions": "1+"}, "tag", 3),
        ({"tag": 0.9, "taggedVersions": "1+"}, "tag", 0),
        ({"tag": None}, "tag", None),
        ({"tag": ""}, "tag", None),
        ({"ignorable": "true"}, "ignorable", True),
        ({"ignorable": "False"}, "ignorable", False),
        ({"ignorable": 1}, "ignorable", True),
        ({"ignorable": 0}, "ignorable", False),
        ({"ignorable": None}, "ignorable", False),
        ({"versions": 1}, "versions", Versions(1, 1)),
        ({"versions": "absent", "tag": 0, "taggedVersions": "1+"}, "versions", Versions(1, 32767)),
        ({"type": " int8 "}, "type", FieldType("int8")),
        ({"entityType": "unknown"}, "entity_type", ""),
        ({"type": "string", "entityType": 4}, "entity_type", "topicName"),
        ({"type": "string", "flexibleVersions": ""}, "flexible_versions", None),
    ],
)
def test_values_are_coerced_as_jackson_does(
    spec: dict[str, Any], attribute: str, value: object
) -> None:
    assert getattr(field(spec), attribute) == value


def test_a_single_value_is_a_list_of_one() -> None:
    spec = parse_spec(
        '{"type": 0, "name": "A", "validVersions": "0", "flexibleVersions": "", "apiKey": "5",'
        ' "listeners": "broker", "fields": {"name": "b", "type": "int8", "versions": 0}}',
        mode="strict",
    )
    assert (spec.type, spec.listeners, len(spec.fields)) == (MessageType.REQUEST, ("broker",), 1)
    assert (spec.api_key, spec.flexible_versions) == (5, Versions.NONE)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"tagg": 1}, "unknown key 'tagg' in the field; did you mean 'tag'?"),
        ({"Name": 1}, "did you mean 'name'?"),
        ({"colour": 1}, "known are name, versions, fields"),
        ({"name": "absent"}, "the field has no 'name'"),
        ({"name": "a_b"}, "field name 'a_b' must consist of letters and digits"),
        ({"type": "absent"}, "field Bar has no 'type'"),
        ({"type": "int31"}, "unknown type 'int31'"),
        ({"type": "[]"}, "no element type"),
        ({"type": "[][]int8"}, "arrays of arrays"),
        ({"type": "Baz/../.."}, "cannot be the name of a class"),
        ({"versions": "absent"}, "field Bar has no 'versions'"),
        ({"versions": "1-"}, "'versions' of field Bar: '1-' is not a version range"),
        ({"versions": [0]}, "'versions' of field Bar must be a scalar, got an array"),
        ({"default": {}}, "'default' of field Bar must be a scalar, got an object"),
        ({"tag": 0}, "a tag but no 'taggedVersions'"),
        ({"taggedVersions": "1+"}, "'taggedVersions' but no 'tag'"),
        ({"tag": -1, "taggedVersions": "1+"}, "tags begin at 0"),
        ({"tag": 2**31, "taggedVersions": "1+"}, "is an int32"),
        ({"tag": True, "taggedVersions": "1+"}, "is an int32, got 'true'"),
        ({"tag": "one", "taggedVersions": "1+"}, "is an int32, got 'one'"),
        ({"ignorable": "yes"}, "must be true or false, got 'yes'"),
        ({"ignorable": 0.5}, "must be true or false, got '0.5'"),
        ({"entityType": "topic"}, "did you mean 'topicName'?"),
        ({"nullableVersions": "0+"}, "type int32 cannot be null"),
        ({"flexibleVersions": " "}, "has no 'flexibleVersions'"),
        ({"fields": []}, "type int32 has no fields"),
    ],
)
def test_a_field_without_meaning_is_refused(spec: dict[str, Any], reason: str) -> None:
    facts = {"name": "Bar", "type": "int32", "versions": "0+"} | spec
    facts = {key: value for key, value in facts.items() if value != "absent"}
    assert reason in str(refusal(message(facts)))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"name": "absent"}, "the spec has no 'name'"),
        ({"name": "../Foo"}, "cannot be the name of a class"),
        ({"type": "absent"}, "the spec has no 'type'"),
        ({"type": "Request"}, "did you mean 'request'?"),
        ({"type": 99}, "cannot be '99'"),
        ({"validVersions": "absent"}, "the spec has no 'validVersions'"),
        ({"validVersions": ""}, "the spec has no 'validVersions'"),
        ({"flexibleVersions": "absent"}, "the spec has no 'flexibleVersions'"),
        ({"apiKey": 70000}, "is an int16, got '70000'"),
        ({"listeners": ["Broker"]}, "did you mean 'broker'?"),
        ({"listeners": [["broker"]]}, "must be a scalar, got an array"),
        ({"fields": [None]}, "the field must be an object, got null"),
        ({"commonStructs": [{"name": "S", "fields": []}]}, "structure S has no 'versions'"),
        ({"about": "text"}, "unknown key 'about'"),
    ],
)
def test_a_message_without_meaning_is_refused(more: dict[str, Any], reason: str) -> None:
    assert reason in str(refusal(message(**more)))


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ({"name": "Bar"}, {"name": "Bar"}, "name Bar in FooRequest already belongs to field Bar"),
        ({"name": "Bar"}, {"name": "bar"}, "name bar in FooRequest already belongs to field Bar"),
        ({"name": "BarId"}, {"name": "BARId"}, "already belongs to field BarId"),
        (
            {"name": "A", "tag": 0, "taggedVersions": "1+"},
            {"name": "B", "tag": 0, "taggedVersions": "2+"},
            "tag 0 in FooRequest already belongs to field A",
        ),
    ],
)
def test_two_fields_do_not_share_a_name_or_a_tag(
    one: dict[str, Any], other: dict[str, Any], reason: str
) -> None:
    rest = {"type": "int8", "versions": "0+"}
    text = message(one | rest, other | rest)
    error = refusal(text, "legacy")
    assert reason in str(error)
    assert text[error.column - 1 :].startswith(json.dumps(other | rest))


def test_structures_are_given_their_fields_once() -> None:
    inner = [{"name": "Id", "type": "int8", "versions": "0+"}]
    one = {"name": "A", "type": "[]S", "versions": "0+", "fields": inner}
    other = {"name": "B", "type": "S", "versions": "0+", "fields": inner}
    assert "structure S is defined twice" in str(refusal(message(one, other)))
    reference = {key: value for key, value in other.items() if key != "fields"}
    assert parse_spec(message(one, reference)).structs()["S"][0].name == "Id"


def test_a_position_is_that_of_the_object() -> None:
    text = '{"type": "data", "name": "Foo", "validVersions": "0",\r\n "fields": [ // näme\n'
    text += '\t{ "name": "A",\n  "type": "S", "versions": "0+", "fields": ['
    text += '{"name": "B", "type": "int8", "versions": "0"}]}]}'
    outer = parse_spec(text).fields[0]
    assert outer.position == Position(3, 2)
    assert outer.fields[0].position == Position(4, 45)


def test_an_error_points_at_the_value() -> None:
    text = '{"type": "data",\n "name": "Foo",\n "validVersions": "x"}'
    error = refusal(text)
    assert (error.source, error.line, error.column) == ("Foo.json", 3, 19)


TAGGED_STRUCTURE = {
    "name": "State",
    "type": "State",
    "tag": 1,
    "taggedVersions": "1+",
    "fields": [{"name": "Id", "type": "int8", "versions": "1+"}],
}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (message(flexibleVersions="absent"), "has no 'flexibleVersions'"),
        (message() + " ]}", "after the end of the spec"),
        (message(TAGGED_STRUCTURE), "field State has no 'versions'"),
    ],
)
def test_legacy_reads_what_earlier_releases_hold(text: str, reason: str) -> None:
    assert reason in str(refusal(text))
    spec = parse_spec(text, mode="legacy")
    assert spec.valid_versions == Versions(0, 2)
    for one in spec.fields:
        assert one.versions == one.tagged_versions == Versions.parse("1+")


def test_a_removed_message_has_nothing_but_a_name() -> None:
    spec = parse_spec(message(validVersions="none", flexibleVersions="absent"), mode="strict")
    assert spec.valid_versions == Versions.NONE


def test_in_the_kips_own_reading_a_tag_is_there_in_all_flexible_versions() -> None:
    text = message({"name": "Bar", "type": "int8", "tag": 0})
    assert "no 'taggedVersions'" in str(refusal(text))
    assert "no 'taggedVersions'" in str(refusal(text, "legacy"))
    one = parse_spec(text, mode="kip").fields[0]
    assert one.tagged_versions == one.versions == Versions.parse("1+")


def place_of_refusal(text: str, mode: Mode) -> tuple[int, int] | None:
    try:
        parse_spec(text, mode=mode)
    except SpecError as error:
        return error.line, error.column
    return None


@given(st.data())
def test_a_damaged_spec_is_read_or_refused(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(CASES))["spec"]
    at = data.draw(st.integers(0, len(text)))
    patch = data.draw(st.sampled_from(["", "null", "[]", "{", "}", '"', "-1", "1e999", "9" * 5000]))
    damaged = text[:at] + patch + text[at + data.draw(st.integers(0, 8)) :]
    for mode in MODES:
        place = place_of_refusal(damaged, mode)
        assert place is None or 1 <= place[0] <= 1 + damaged.count("\n")
