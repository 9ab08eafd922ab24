"""Specs in the grammar of KIP-482's first draft are translated into today's message specs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flexwire.codec import Encoding, message_of
from flexwire.errors import SpecError
from flexwire.schema.parse import Mode, parse_spec
from flexwire.schema.write import write_spec
from flexwire.versions import Versions

# The draft's own example, without its stray commas and brackets.
FOO_RESPONSE = """{
  "apiKey": 9000,
  "type": "response",
  "name": "FooResponse",
  "validVersions": "0-9",
  "versionsWithOptional": "9+",
  "optionalFields": [
    { "name": "UserAgent", "type": "string", "nullable": true, "tag": "0x0001",
      "about": "The user-agent that sent this request." }
  ],
  "fields": [
    { "name": "Foos", "type": "[]Foo", "versions": "0+",
      "about": "Each foo.", "optionalFields": [
        { "name": "Bar", "type": "string", "nullable": false, "tag": "0x0001",
          "default": "hello world", "about": "The bar associated with this foo, if any." }
      ], "fields": [
        { "name": "Baz", "type": "int16", "versions": "0+",
          "about": "The baz associated with this foo." }
      ]
    }
  ]
}"""


MODES: tuple[Mode, ...] = ("strict", "legacy", "kip")


def draft(*optional: dict[str, Any], **more: Any) -> str:
    spec = {
        "type": "response",
        "name": "Foo",
        "validVersions": "0-9",
        "versionsWithOptional": "9+",
        "optionalFields": list(optional),
        "fields": [],
    }
    return json.dumps({key: value for key, value in (spec | more).items() if value != "absent"})


def test_the_draft_s_own_example_is_read() -> None:
    spec = parse_spec(FOO_RESPONSE, mode="draft")
    nine = Versions.parse("9+")
    assert (spec.name, spec.api_key, spec.flexible_versions) == ("FooResponse", 9000, nine)
    agent, foos = spec.fields
    assert (agent.name, agent.tag, agent.versions, agent.tagged_versions) == (
        ("UserAgent", 1, nine, nine)
    )
    assert agent.nullable_versions == nine
    bar, baz = foos.fields
    assert (bar.tag, bar.tagged_versions, bar.default) == (1, nine, "hello world")
    assert bar.nullable_versions == Versions.NONE
    assert (baz.tag, baz.versions) == (None, Versions.parse("0+"))
    assert bar.about == "The bar associated with this foo, if any."


def test_the_draft_s_own_example_is_written_as_the_draft_says() -> None:
    foo: Any = message_of(parse_spec(FOO_RESPONSE, mode="draft"))
    value = foo(user_agent="me", foos=[foo.Foo(baz=1), foo.Foo(baz=2, bar="b")])
    raw = value.encode(9, encoding=Encoding.OPTIONAL_BUFFERS)
    assert raw == bytes.fromhex(
        "08 0001 00026d65 00"  # length 4, tag 1, "me"; end
        "00000002 00 0001"  # two foos; the first has no optional fields
        "06 0001 000162 00 0002"  # length 3, tag 1, "b"; end; baz
    )
    assert foo.decode(raw, 9, encoding=Encoding.OPTIONAL_BUFFERS) == value
    plain = foo(foos=[foo.Foo(baz=1)])
    for encoding in (Encoding.KAFKA, Encoding.OPTIONAL_BUFFERS):
        assert plain.encode(8, encoding=encoding) == bytes.fromhex("00000001 0001")


def test_a_draft_is_the_same_spec_in_the_final_grammar() -> None:
    spec = parse_spec(FOO_RESPONSE, mode="draft")
    final = write_spec(spec)
    assert '"flexibleVersions": "9+"' in final
    again = parse_spec(final, mode="strict")
    assert write_spec(again) == final
    assert message_of(again)().encode(9) == message_of(spec)().encode(9)


def test_a_message_may_have_no_versions_with_optional_fields() -> None:
    spec = parse_spec(draft(versionsWithOptional="absent"), mode="draft")
    assert spec.flexible_versions == Versions.NONE
    final = draft(versionsWithOptional="absent", optionalFields="absent")
    for mode in MODES[::2]:
        with pytest.raises(SpecError, match="the spec has no 'flexibleVersions'"):
            parse_spec(final, mode=mode)


TAGS = [("0x0001", 1), ("0x7fff", 32767), ("0x7FFF", 32767), ("7", 7), (0, 0), ("0x0", 0)]


@pytest.mark.parametrize(("written", "tag"), TAGS)
def test_a_tag_is_hexadecimal_or_decimal(written: Any, tag: int) -> None:
    one = parse_spec(draft({"name": "Bar", "type": "int8", "tag": written}), mode="draft")
    assert one.fields[0].tag == tag


@pytest.mark.parametrize("written", ["0x8000", "0xffff", 32768, "0x", "1f", "0x1g", "x1", [], True])
def test_a_tag_that_is_no_int16_from_0_is_refused(written: Any) -> None:
    with pytest.raises(SpecError, match="'tag' of field Bar"):
        parse_spec(draft({"name": "Bar", "type": "int8", "tag": written}), mode="draft")


BAR: dict[str, Any] = {"name": "Bar", "type": "int8", "tag": 1}
REFUSED = [
    (draft({**BAR, "tag": -1}), "tag -1; tags begin at 0"),
    (draft({"name": "Bar", "type": "int8"}), "field Bar is optional but has no 'tag'"),
    (draft(BAR, versionsWithOptional="absent"), "the spec has no 'versionsWithOptional'"),
    (draft(BAR, versionsWithOptional="none"), "the spec has no 'versionsWithOptional'"),
    (draft(BAR, {**BAR, "name": "Baz"}), "tag 1 in Foo already belongs to field Bar"),
    (draft(BAR, fields=[{"name": "Bar", "type": "int8", "versions": "0+"}]), "name Bar in Foo"),
    (draft({**BAR, "nullable": True}), "type int8 cannot be null; remove 'nullable'"),
    (draft({**BAR, "versions": "0+"}), "unknown key 'versions' in the field"),
    (draft({**BAR, "taggedVersions": "0+"}), "unknown key 'taggedVersions'"),
    (draft(flexibleVersions="9+"), "unknown key 'flexibleVersions' in the spec"),
    (draft({**BAR, "optionalFields": []}), "type int8 has no fields; use a structure"),
    (draft({**BAR, "default": "300"}), "default '300' is not a int8"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_the_draft_does_not_have_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        message_of(parse_spec(text, mode="draft"))().encode(9)
    assert caught.value.line == 1


@pytest.mark.parametrize("mode", MODES)
def test_no_other_grammar_has_the_draft_s_words(mode: Mode) -> None:
    with pytest.raises(SpecError, match="unknown key 'versionsWithOptional'"):
        parse_spec(FOO_RESPONSE, mode=mode)


def test_a_structure_may_have_optional_fields_alone_and_be_optional_itself() -> None:
    inner = {"name": "At", "type": "[]At", "tag": "0x0002", "optionalFields": [BAR]}
    made: Any = message_of(parse_spec(draft(inner), mode="draft"))
    value = made(at=[made.At(bar=7), made.At()])
    raw = value.encode(9, encoding=Encoding.OPTIONAL_BUFFERS)
    assert raw == bytes.fromhex("14 0002 00000002 02 0001 07 00 00 00")
    assert made.decode(raw, 9, encoding=Encoding.OPTIONAL_BUFFERS) == value
    common = {"name": "At", "versions": "0+", "optionalFields": [BAR], "fields": []}
    named = {"name": "When", "type": "At", "tag": 1}
    other: Any = message_of(parse_spec(draft(named, commonStructs=[common]), mode="draft"))
    assert other(when=other.At(bar=7)).encode(9) == bytes.fromhex("01 01 04 01 01 01 07")
