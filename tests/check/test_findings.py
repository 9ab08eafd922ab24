"""One run reports all findings, but no finding that only follows from another."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import SpecError
from flexwire.schema.parse import Mode, parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.sources import LARGEST, turning_points
from flexwire.schema.text import MOST_PROBLEMS
from flexwire.specs.lint.config import Config, rules_named
from tests.check.pages import findings
from tests.check.released import released
from tests.check.test_generator import CASES

MODES: tuple[Mode, ...] = ("strict", "legacy", "kip", "draft")
RELEASED = [one for one in released() if len(one.text) < 4000]


def spec(*fields: dict[str, Any], **more: Any) -> str:
    whole = {
        "type": "data",
        "name": "Foo",
        "validVersions": "0-3",
        "flexibleVersions": "1+",
        "fields": list(fields),
    }
    return json.dumps(whole | more)


def told(text: str, mode: Mode = "strict") -> list[str]:
    return sorted(one.rule for one in findings({"Foo.json": text}, Config(mode=mode)))


def field(**facts: Any) -> dict[str, Any]:
    return {"name": "Bar", "type": "int32", "versions": "0+"} | facts


def inline(name: str, *fields: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return field(name=name, type=facts.pop("type", f"[]{name}"), fields=list(fields), **facts)


ALL_AT_ONCE = """{ "type": "data", "name": "Foo", "validVersions": "0-3", "flexibleVersions": "1-2",
  "fields": [
    { "name": "A", "type": "int31", "versions": "0+", "abuot": "?" },
    { "name": "B", "type": "string", "versions": "x", "entityType": "topicname" },
    { "name": "C", "type": "[]S", "versions": "2+", "fields": [
      { "name": "D", "type": "int8", "versions": "2+", "default": "200", "nullableVersions": "2+" },
      { "name": "E", "type": "int8", "versions": "2+", "tag": 1, "taggedVersions": "2+" }
    ] },
    [ 1 ]
  ] }"""


def test_all_findings_are_told_in_the_order_of_the_text() -> None:
    found = findings({"Foo.json": ALL_AT_ONCE})
    assert [(one.line, one.column, one.rule) for one in found] == [
        (1, 78, "FLEXIBLE_VERSIONS_CLOSED"),
        (3, 28, "TYPE_INVALID"),
        (3, 55, "KEY_UNKNOWN"),
        (4, 50, "VERSIONS_INVALID"),
        (4, 69, "VALUE_INVALID"),
        (6, 67, "DEFAULT_INVALID"),
        (6, 94, "TYPE_NOT_NULLABLE"),
        (7, 63, "TAG_SKIPPED"),
        (7, 84, "TAGGED_VERSIONS_NOT_FLEXIBLE"),
        (9, 5, "VALUE_INVALID"),
    ]


# A value that cannot be read is reported once, and nothing else is reported about it.
ALONE = [
    (spec(field(tag=0, taggedVersions="x")), "VERSIONS_INVALID"),
    (spec(field(tag=0, taggedVersions=[])), "VALUE_INVALID"),
    (spec(field(tag="one", taggedVersions="1+")), "VALUE_INVALID"),
    (spec(field(tag=0, tagedVersions="1+", versions="1+")), "KEY_UNKNOWN"),
    (
        spec(field(name="A", tag="x", taggedVersions="1+"), field(tag=1, taggedVersions="1+")),
        "VALUE_INVALID",
    ),
    (spec(field(name={})), "VALUE_INVALID"),
    (spec(field(name=7)), "NAME_INVALID"),
    (spec(field(type={}, default="x")), "VALUE_INVALID"),
    (spec(field(type="int31", default="x", nullableVersions="0+")), "TYPE_INVALID"),
    (spec(inline("S", field(), type="[]s")), "TYPE_INVALID"),
    (spec(inline("S", field(versions="3"), versions="?")), "VERSIONS_INVALID"),
    (spec(field(tag=0, taggedVersions="1+"), flexibleVersions="?"), "VERSIONS_INVALID"),
    (spec(field(versions="2"), validVersions="?"), "VERSIONS_INVALID"),
    (spec(field(versions="2"), validVersions="?", deprecatedVersions="1"), "VERSIONS_INVALID"),
    (spec(type="dta"), "VALUE_INVALID"),
    (spec(type=[], listeners=["broker"], latestVersionUnstable=True), "VALUE_INVALID"),
    (spec(deprecatedVersions="?"), "VERSIONS_INVALID"),
    (spec(type="request", name="FooRequest", apiKey="x"), "VALUE_INVALID"),
    (spec(type="request", name={}, apiKey=1), "VALUE_INVALID"),
    (spec(validVersions={}), "VALUE_INVALID"),
    (spec(inline("S", field(versions="0"), versions={})), "VALUE_INVALID"),
    ("[]", "VALUE_INVALID"),
    ("null", "VALUE_INVALID"),
    ("", "TEXT_NOT_JSON"),
    (spec(commonStructs=[[]]), "VALUE_INVALID"),
    (spec(field(type="S"), commonStructs=[{"name": "S", "fields": []}]), "VERSIONS_MISSING"),
]


@pytest.mark.parametrize(("text", "rule"), ALONE)
def test_what_cannot_be_read_is_told_once_and_alone(text: str, rule: str) -> None:
    # An empty common structure is a finding of its own.
    assert [one for one in told(text) if one != "STRUCT_WITHOUT_FIELDS"] == [rule]


S = {"name": "S", "versions": "0+", "fields": [field()]}
TAGGED = field(tag=0, taggedVersions="1+")
# Cases without an example on the pages: a spec and all its findings.
CASES_BESIDE_THE_PAGES: list[tuple[str, list[str]]] = [
    (spec(field(name="A"), TAGGED), []),
    (spec(field(versions="none")), []),
    (spec(field(versions="9+")), ["FIELD_ABOVE_VALID"]),
    (spec(field(versions="4+", type="string", nullableVersions="4+", tag=0, taggedVersions="4+")),
     ["FIELD_ABOVE_VALID"]),
    (spec(field(type="string", nullableVersions="4+")), ["FIELD_ABOVE_VALID"]),
    (spec(field(tag=0, taggedVersions="4+")), ["FIELD_ABOVE_VALID"]),
    (spec(inline("S", field(versions="4+"), versions="4+")), ["STRUCT_NEVER_PRESENT"]),
    (spec(inline("S", field(), field(name="B", versions="4+"))), ["FIELD_ABOVE_VALID"]),
    (spec(field(type="[]S"),
          commonStructs=[S | {"fields": [field(), field(name="B", versions="4")]}]),
     ["FIELD_ABOVE_VALID"]),
    (spec(field(versions="0"), validVersions="1-3"), []),
    (spec(validVersions="none", fields=[]), []),
    (spec(flexibleVersions="none"), []),
    (spec(flexibleVersions=""), []),
    (spec(inline("S", field(tag=1, taggedVersions="1+"))), ["TAG_SKIPPED"]),
    (spec(field(tag=-1, taggedVersions="1+")), ["TAG_NEGATIVE"]),
    (spec(field(tag=3, taggedVersions="1+"), field(name="B", tag=5, taggedVersions="1+")),
     ["TAG_SKIPPED"]),
    (spec(field(type="string", flexibleVersions="none", tag=0, taggedVersions="1+")),
     ["TAGGED_VERSIONS_NOT_FLEXIBLE"]),
    (spec(field(type="bytes", flexibleVersions="2+")), []),
    (spec(field(type="[]string", flexibleVersions="2+")), ["FLEXIBLE_OVERRIDE_MISPLACED"]),
    (spec(field(type="records", flexibleVersions="2+")), ["FLEXIBLE_OVERRIDE_MISPLACED"]),
    (spec(field(type="[]bytes", zeroCopy=True)), ["BYTES_IN_ARRAY", "ZERO_COPY_MISPLACED"]),
    (spec(field(type="records", default="null")), []),
    (spec(field(type="records", default="x")), []),
    (spec(field(type="string", default="null", nullableVersions="0+")), []),
    (spec(field(type="string", default="null", versions="2+", nullableVersions="2+")), []),
    (spec(field(default="null")), ["DEFAULT_INVALID"]),
    (spec(field(type="[]int8", default="null")), ["DEFAULT_NULL_MISPLACED"]),
    (spec(field(type="[]int8", default="0")), ["DEFAULT_INVALID"]),
    (spec(field(type="[]string", entityType="topicName")), []),
    (spec(field(type="int64", entityType="producerId")), []),
    (spec(field(type="int64", entityType="brokerId")), ["ENTITY_TYPE_MISMATCHED"]),
    (spec(field(type="uint32", default="2147483647")), []),
    (spec(field(type="uint32", default="2147483648")), ["DEFAULT_ABOVE_JAVA_INT"]),
    (spec(field(type="uint32", default="4294967295")), ["DEFAULT_ABOVE_JAVA_INT"]),
    (spec(field(type="uint32", default="4294967296")), ["DEFAULT_INVALID"]),
    (spec(field(type="uint32", default="0xffffffff")), []),
    (spec(field(type="uint16", default="65535")), []),
    (spec(field(type="string", default="a\nb")), ["DEFAULT_NOT_ESCAPED"]),
    (spec(field(name="Class")), ["NAME_JAVA_KEYWORD"]),
    (spec(field(name="ClassName")), []),
    (spec(field(type="int64", default="3000000000")), []),
    (spec(field(type="uint32", default="9" * 5000)), ["DEFAULT_INVALID"]),
    (spec(field(zeroCopy=True, versions="1+", tag=0, taggedVersions="1+")),
     ["ZERO_COPY_MISPLACED"]),
    (spec(field(tag=0, taggedVersions="none")), ["TAGGED_VERSIONS_MISSING"]),
    (spec(field(tag=0, taggedVersions="3-1")),
     ["TAGGED_VERSIONS_MISSING", "VERSIONS_BACKWARDS"]),
    (spec(type="request", name="FooRequest", apiKey=1, listeners=["broker"],
          latestVersionUnstable=True), []),
    (spec(type="header", name="FooHeader"), []),
    # Structures.
    (spec(field(type="S"), field(name="B", type="[]S"), commonStructs=[S]), []),
    (spec(field(type="S"), commonStructs=[S, S]), ["STRUCT_REPEATED"]),
    (spec(inline("S", field()), commonStructs=[S]), ["STRUCT_REPEATED"]),
    (spec(field(name="A", type="S"), inline("S", field())), ["STRUCT_SHARED_INLINE"]),
    (spec(field(type="T"), commonStructs=[S | {"name": "T", "fields": [field(type="U")]}]),
     ["COMMON_STRUCT_INCOMPLETE"]),
    (spec(field(type="T"), commonStructs=[
        S | {"name": "T", "fields": [field(type="U"), field(name="B", type="U")]}]),
     ["COMMON_STRUCT_INCOMPLETE", "COMMON_STRUCT_INCOMPLETE"]),
    (spec(field(type="S"), commonStructs=[S | {"versions": "5+"}]),
     ["STRUCT_NEVER_PRESENT", "COMMON_STRUCT_ABSENT"]),
    (spec(field(type="S"), commonStructs=[S | {"versions": "0-2"}]), ["COMMON_STRUCT_ABSENT"]),
    (spec(field(type="S", versions="2+"), commonStructs=[S | {"versions": "2+"}]), []),
    (spec(inline("S", inline("T", field(), versions="0-1"), versions="2+")),
     ["STRUCT_NEVER_PRESENT"]),
    (spec(inline("S", inline("T", inline("U", field()), versions="0-1"), versions="2+")),
     ["STRUCT_NEVER_PRESENT"]),
    (spec(field(type="Foo")), ["STRUCT_CONTAINS_ITSELF"]),
    (spec(inline("S", field(type="S"))), ["STRUCT_CONTAINS_ITSELF", "STRUCT_SHARED_INLINE"]),
    (spec(field(type="S"), commonStructs=[
        S | {"fields": [field(type="T")]}, S | {"name": "T", "fields": [field(type="[]S")]}]),
     ["STRUCT_CONTAINS_ITSELF"]),
    (spec(field(type="S", versions="2+"), commonStructs=[
        S | {"versions": "2+", "fields": [field(), field(name="B", versions="0-1")]}]),
     ["FIELD_NEVER_PRESENT"]),
    # Map keys.
    (spec(field(type="[]S"), commonStructs=[S | {"fields": [field(mapKey=True)]}]), []),
    (spec(field(type="S"), commonStructs=[S | {"fields": [field(mapKey=True)]}]),
     ["MAP_KEY_UNUSED"]),
    # These cases test whether array elements can be zero bytes long.
    (spec(inline("S", field(versions="1+"), versions="1+")), []),
    (spec(inline("S", field(versions="1+"))), ["ELEMENTS_WITHOUT_BYTES"]),
    (spec(inline("S", field(versions="0-1"), versions="1+"), flexibleVersions="none"),
     ["ELEMENTS_WITHOUT_BYTES"]),
    (spec(inline("S", field(type="T")), commonStructs=[
        S | {"name": "T", "fields": [field(versions="1+")]}]), ["ELEMENTS_WITHOUT_BYTES"]),
    (spec(inline("S", field(type="T", nullableVersions="0+")), commonStructs=[
        S | {"name": "T", "fields": [field(versions="1+")]}]), []),
    (spec(inline("S", field(type="[]T", versions="0"), type="S"), commonStructs=[
        S | {"name": "T", "fields": [field(versions="1+")]}]), ["ELEMENTS_WITHOUT_BYTES"]),
    (spec(inline("S", field(type="[]T")), commonStructs=[
        S | {"name": "T", "fields": [field(versions="1+")]}]), ["ELEMENTS_WITHOUT_BYTES"]),
    (spec(inline("S", field(type="[]int8"))), []),
    (spec(field(type="S"), commonStructs=[S | {"fields": [
        field(versions="1+", tag=0, taggedVersions="1+")]}]), []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rules"), CASES_BESIDE_THE_PAGES)
def test_neither_more_nor_less_is_told(text: str, rules: list[str]) -> None:
    assert told(text) == sorted(rules)


@pytest.mark.parametrize(
    ("text", "mode", "rules"),
    [
        (spec(field(tag=0, versions="1+")), "kip", []),
        (spec(field(tag=0), flexibleVersions="0-3"), "kip", ["FLEXIBLE_VERSIONS_CLOSED"]),
        (spec(field(tag=0, versions="1+")), "strict", ["TAGGED_VERSIONS_MISSING"]),
        (spec(field(tag=0)), "legacy", ["TAGGED_VERSIONS_MISSING"]),
        (spec() + "]", "legacy", []),
        (spec() + "]", "kip", ["TEXT_AFTER_SPEC"]),
        (spec(flexibleVersions=None), "legacy", []),
        (spec(flexibleVersions=None), "kip", ["FLEXIBLE_VERSIONS_MISSING"]),
        (spec(versionsWithOptional="1+"), "draft", ["KEY_UNKNOWN"]),
        (spec(versionsWithOptional="1+"), "strict", ["KEY_UNKNOWN"]),
    ],
)  # fmt: skip
def test_a_mode_has_its_own_grammar(text: str, mode: Mode, rules: list[str]) -> None:
    assert told(text, mode) == rules


# Findings about the directory, with one or two files.
REQUEST = {"type": "request", "name": "ARequest", "apiKey": 1}
RESPONSE = {"type": "response", "name": "AResponse", "apiKey": 1}


@pytest.mark.parametrize(
    ("one", "other", "rules"),
    [
        (REQUEST, RESPONSE, []),
        (REQUEST, {}, ["PARTNER_MISSING"]),
        (RESPONSE, {}, ["PARTNER_MISSING"]),
        (REQUEST, RESPONSE | {"apiKey": 2}, ["PARTNER_MISSING", "PARTNER_MISSING"]),
        (REQUEST, RESPONSE | {"apiKey": "x"}, ["VALUE_INVALID"]),
        (REQUEST, RESPONSE | {"apiKey": None}, ["API_KEY_MISSING", "PARTNER_MISSING"]),
        (REQUEST, RESPONSE | {"name": "AReponse"}, ["NAME_WITHOUT_SUFFIX"]),
        (REQUEST, RESPONSE | {"validVersions": "0-2"}, ["PARTNER_VERSIONS_DIFFERENT"]),
        (REQUEST, RESPONSE | {"validVersions": "x"}, ["VERSIONS_INVALID"]),
        (REQUEST, RESPONSE | {"flexibleVersions": "none"}, ["PARTNER_FLEXIBILITY_DIFFERENT"]),
        (REQUEST | {"flexibleVersions": "4+"}, RESPONSE | {"flexibleVersions": "none"}, []),
        (REQUEST | {"validVersions": "none"}, RESPONSE | {"validVersions": "none"}, []),
        (
            {"type": "metadata", "name": "ARecord", "apiKey": 1},
            {"type": "metadata", "name": "BRecord", "apiKey": 1},
            ["API_KEY_REPEATED"],
        ),
        (
            {"type": "metadata", "name": "ARecord", "apiKey": "x"},
            {"type": "metadata", "name": "BRecord", "apiKey": "x"},
            ["VALUE_INVALID", "VALUE_INVALID"],
        ),
        (
            {"type": "metadata", "name": "ARecord", "apiKey": 1, "listeners": "?"},
            {"type": "metadata", "name": "BRecord", "apiKey": 1},
            ["VALUE_INVALID"],
        ),
        (
            {"type": "metadata", "name": "ARecord"},
            {"type": "metadata", "name": "BRecord"},
            ["API_KEY_MISSING", "API_KEY_MISSING"],
        ),
        ({"apiKey": 1}, {"name": "Bar", "apiKey": 1}, []),
        ({"name": "Bar"}, {"name": "Bar"}, ["MESSAGE_REPEATED"]),
        ({"name": {}}, {"name": {}}, ["VALUE_INVALID", "VALUE_INVALID"]),
    ],
)
def test_a_directory_s_rules(one: dict[str, Any], other: dict[str, Any], rules: list[str]) -> None:
    found = findings({"A.json": spec(**one), "B.json": spec(**other)})
    assert sorted(one.rule for one in found) == sorted(rules)


def test_what_could_not_be_read_may_be_the_partner() -> None:
    found = findings({"A.json": spec(**REQUEST), "B.json": "{"})
    assert [one.rule for one in found] == ["TEXT_NOT_JSON"]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (spec(field(about="A.", name="A")), []),
        (spec(name="foo"), ["NAME_LOWERCASE"]),
        (spec(name={}), ["VALUE_INVALID"]),
        (spec(name=""), ["NAME_INVALID"]),
        (spec(field(about=" ")), ["ABOUT_MISSING"]),
        (spec(field(about="A.", versions="none")), []),
        (spec(field(about="A.", versions="0"), validVersions="none"), []),
        (spec(field(about="A.", versions="2"), validVersions="0-1"), ["FIELD_ABOVE_VALID"]),
        (spec(field(about="A.", versions="0"), validVersions="1-2"), ["FIELD_OUTSIDE_VALID"]),
        (spec(inline("S", field(about="A.", versions="4+"), about="S.", versions="2+")),
         ["FIELD_ABOVE_VALID"]),
        (spec(inline("S", field(about="A.", versions="0"), about="S.", versions="0+"),
              validVersions="1-2"), ["FIELD_OUTSIDE_VALID"]),
        (spec(inline("S", field(about="A.", versions="1+"), about="S.", versions="2+")),
         ["FIELD_OUTSIDE_STRUCT"]),
        (spec(inline("S", field(about="A.", versions="0-1"), about="S.", versions="2+")),
         ["FIELD_NEVER_PRESENT"]),
        (spec(inline("S", field(about="A.", versions="3"), about="S.", versions="2+")), []),
        (spec(field(about="A.", type="string", nullableVersions="0-9")), []),
        (spec(field(about="A.", ignorable=None, mapKey=False, zeroCopy=None, tag=None)), []),
        (spec(field(about="A.", ignorable="false")), ["VALUE_LOOSELY_WRITTEN"]),
        (spec(field(about="A.", versions=0)), ["VALUE_LOOSELY_WRITTEN"]),
        (spec(field(about="A.", ignorable=[])), ["VALUE_INVALID"]),
        (spec(field(about="A.", tag=0.9, taggedVersions="1+")), ["VALUE_LOOSELY_WRITTEN"]),
        (spec(field(about="A.", default=5)), []),
        (spec(apiKey=-1), []),
    ],
)  # fmt: skip
def test_pedantic_rules(text: str, rules: list[str]) -> None:
    found = findings({"specs/Foo.json": text}, Config(rules_named("ALL") - {"FILE_NAME_DIFFERENT"}))
    assert sorted(one.rule for one in found) == sorted(rules)


@pytest.mark.parametrize(
    ("file", "name", "told_of"),
    [("a/Foo.json", "Foo", False), ("a\\Foo.json", "Foo", False), ("Foo", "Bar", False),
     ("a/foo.json", "Foo", True), ("HEAD:a/Foo.json", "Foo", False), ("a/Foo.json", {}, False)],
)  # fmt: skip
def test_a_file_is_named_for_its_message(file: str, name: Any, told_of: bool) -> None:  # noqa: FBT001 - from the table
    found = findings({file: spec(name=name)}, Config(rules_named("FILE_NAME_DIFFERENT")))
    assert bool(found) is told_of


def test_a_finding_names_the_version() -> None:
    text = spec(inline("S", field(versions="0-1"), field(name="B", versions="3+")))
    (one,) = findings({"Foo.json": text.replace('"1+"', '"none"')})
    assert one.message == "elements of S take no bytes in version 2"


def draft(*optional: dict[str, Any], **more: Any) -> str:
    whole = json.loads(spec(optionalFields=list(optional), versionsWithOptional="2+", **more))
    del whole["flexibleVersions"]
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (draft({"name": "A", "type": "string", "tag": "0x0005", "nullable": True}), []),
        (draft({"name": "A", "type": "int8", "tag": 1, "nullable": True}), ["TYPE_NOT_NULLABLE"]),
        (draft({"name": "A", "type": "int8"}), ["TAG_MISSING"]),
        (draft({"name": "A", "type": "int8", "tag": -1}), ["TAG_NEGATIVE"]),
        (draft({"name": "A", "type": "int8", "tag": 1, "default": "999"}), ["DEFAULT_INVALID"]),
        (draft({"name": "A", "type": "int8", "tag": 1, "versions": "0+"}), ["KEY_UNKNOWN"]),
    ],
)
def test_the_first_draft_is_checked_by_the_same_rules(text: str, rules: list[str]) -> None:
    assert told(text, "draft") == rules


def refusal(text: str, mode: Mode) -> SpecError | None:
    """Return flexwire's own findings about a spec, at any version."""
    try:
        parsed = parse_spec(text, "Foo.json", mode=mode)
        for version in turning_points(parsed):
            resolve(parsed, version)
    except SpecError as error:
        return error
    return None


@pytest.mark.slow
@given(st.data())
def test_what_lint_passes_can_be_used_and_what_is_refused_is_told(data: st.DataObject) -> None:
    texts = st.sampled_from(CASES).map(lambda case: case["spec"])
    text = data.draw(texts | st.sampled_from(RELEASED).map(lambda one: one.text))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(text)))
        patch = ["", "null", "[]", "{", "}", '"', "-1", "1e999", "0", "none", "S", "9" * 5000]
        cut = data.draw(st.integers(0, 8))
        text = text[:at] + data.draw(st.sampled_from(patch)) + text[at + cut :]
    mode = data.draw(st.sampled_from(MODES))
    found = findings({"Foo.json": text}, Config(mode=mode))
    error = refusal(text, mode)
    assert error is None or found


@given(st.binary(max_size=60))
def test_any_bytes_are_told_of(content: bytes) -> None:
    assert findings({"Foo.json": content})


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"\xff", (1, 1)),
        ('{\n"ä": "'.encode() + b"\xe4", (2, 7)),
        (b" " * (LARGEST + 1), (1, 1)),
        (b'{"a": 1,}', (1, 9)),
        (b"[" * 5000, (1, 101)),
    ],
)
def test_what_is_no_json_is_told_at_its_place(content: bytes, place: tuple[int, int]) -> None:
    (one,) = findings({"Foo.json": content})
    assert (one.rule, one.line, one.column) == ("TEXT_NOT_JSON", *place)


@pytest.mark.long
@pytest.mark.slow
def test_a_text_full_of_faults_is_told_of_in_part() -> None:
    text = spec(*({"name": f"A{number}", "type": "int8"} for number in range(9999)))
    assert len(findings({"Foo.json": text})) == MOST_PROBLEMS
    bad = (field(name=f"A{number}", default="x") for number in range(9999))
    assert len(findings({"Foo.json": spec(*bad)})) == MOST_PROBLEMS


def test_nothing_in_a_finding_moves_the_cursor() -> None:
    name = "\x1b[2J\r\n" * 1000
    text = spec(field(name=name, type=None), **{name: 1}).replace("[", "[\t\x00", 1)
    found = findings({"F\noo.json": text.replace("\x00", "/*\x00*/")})
    assert {one.rule for one in found} == {"KEY_UNKNOWN", "NAME_INVALID", "TYPE_MISSING"}
    for one in found:
        assert (one.source + one.message + one.excerpt).isprintable()
        assert len(one.excerpt) == 1000
    (missing,) = (one for one in found if one.rule == "TYPE_MISSING")
    assert missing.message.endswith("…")
    assert len(missing.message) < 1000
    assert missing.excerpt[missing.excerpt_column - 1] == "{"
    assert missing.excerpt[missing.excerpt_column - 8 :].startswith("[ /* */{")


def test_the_largest_text_is_read() -> None:
    text = spec(about=1)
    (one,) = findings({"Foo.json": text + " " * (LARGEST - len(text))})
    assert one.rule == "KEY_UNKNOWN"
