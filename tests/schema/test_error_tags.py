"""KIP-636's tagged errors change a spec and the bytes of its messages as the KIP describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message_of
from flexwire.codec.samples import random_message
from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.error_tags import TaggedErrors, tag_errors
from flexwire.schema.parse import parse_spec
from flexwire.schema.text import SpecText
from flexwire.schema.write import write_spec
from flexwire.versions import Versions
from tests.each import each

if TYPE_CHECKING:
    from flexwire.schema.spec import FieldSpec

REQUEST = """{
  "apiKey": 500, "type": "request", "name": "PingRequest",
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [ { "name": "Text", "type": "string", "versions": "0+" } ]
}
"""
RESPONSE = """// Kept: every comment.
{
  "apiKey": 500,
  "type":   "response",   "name": "PingResponse",
  "validVersions": "0-3", /* 3 is new */ "flexibleVersions": "2+",
  "commonStructs": [
    { "name": "Pong", "versions": "0+", "fields": [
      { "name": "ErrorCode", "type": "int16", "versions": "1+" },
      { "name": "Leader", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0 }
    ]}
  ],
  "fields": [
    { "name": "ErrorCode", "type": "int16", "versions": "0+",
      "about": "The error." },
    { "name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Pongs", "type": "[]Pong", "versions": "0+" },
    { "name": "Others", "type": "[]Other", "versions": "0+", "fields": [
      { "name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "1+" },
      { "name": "OldErrorCode", "type": "int16", "versions": "0+" },
      { "name": "ErrorCode", "type": "int16", "versions": "0-2" }
    ]}
  ]
}
"""


def rewritten(*texts: str) -> list[TaggedErrors]:
    return tag_errors(
        [SpecText(text, f"{number}.json") for number, text in enumerate(texts)], mode="kip"
    )


def test_only_the_change_is_a_change() -> None:
    request, response = rewritten(REQUEST, RESPONSE)
    assert request.text == REQUEST.replace('"0-3"', '"0-4"')
    expected = (
        RESPONSE.replace('"0-3"', '"0-4"')
        # In each structure, new tags follow the existing ones.
        .replace('"versions": "1+" },', '"versions": "1+", "taggedVersions": "4+", "tag": 1 },')
        .replace('"0+",\n      "about"', '"0+", "taggedVersions": "4+", "tag": 0,\n      "about"')
        .replace(
            '"versions": "0+", "nullableVersions": "0+"',
            '"versions": "0+", "taggedVersions": "4+", "tag": 1, "default": "null", '
            '"nullableVersions": "0+"',
        )
        # Version 0 cannot carry a null in this field, so null cannot be the default.
        .replace(
            '"versions": "0+", "nullableVersions": "1+"',
            '"versions": "0+", "taggedVersions": "4+", "tag": 0, "nullableVersions": "1+"',
        )
    )
    assert response.text == expected
    assert (response.version, response.error_codes, response.error_messages) == (4, 2, 2)
    assert response.sent_nulls == 1


def test_a_rewritten_set_is_not_what_it_was_but_can_be_rewritten_again() -> None:
    once = rewritten(REQUEST, RESPONSE)
    again = rewritten(*(one.text for one in once))
    # All errors are tagged already, so another version changes nothing.
    assert [one.text for one in again] == [one.text.replace('"0-4"', '"0-5"') for one in once]
    assert again[1].error_codes == 0


def test_what_is_not_flexible_becomes_so() -> None:
    old = RESPONSE.replace('"flexibleVersions": "2+"', '"flexibleVersions": "none"')
    old = old.replace(', "taggedVersions": "2+", "tag": 0', "")
    _, response = rewritten(REQUEST, old)
    assert response.made_flexible
    assert '"flexibleVersions": "4+"' in response.text
    made: Any = message_of(parse_spec(response.text))
    assert made().encode(3) == bytes.fromhex("0000 ffff 00000000 00000000")
    assert made().encode(4) == bytes.fromhex("01 01 00")


def test_an_older_spec_without_flexible_versions_gets_them() -> None:
    old = RESPONSE.replace(' /* 3 is new */ "flexibleVersions": "2+",', "")
    old = old.replace(', "taggedVersions": "2+", "tag": 0', "")
    [done] = tag_errors([SpecText(old, "old.json")], mode="legacy")
    assert '"validVersions": "0-4", "flexibleVersions": "4+",' in done.text
    assert parse_spec(done.text, mode="strict").flexible_versions == Versions.parse("4+")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (RESPONSE.replace("500", "17"), "KIP-636 excludes this API because of KAFKA-9577"),
        (RESPONSE.replace('"0-3"', '"none"'), "no version is valid"),
        (REQUEST, "the RPC has no error code"),
        ('{"type": "data", "name": "D", "validVersions": "0", "flexibleVersions": "none"}', "nei"),
    ],
)
def test_what_stays_as_it_is_says_why(text: str, reason: str) -> None:
    [done] = rewritten(text)
    assert done.text == text
    assert done.version is None
    assert done.reason.startswith(reason)


def test_faults_are_told_at_their_place() -> None:
    with pytest.raises(SpecError, match=r"0\.json:5:20"):
        rewritten(RESPONSE.replace('"0-3"', '"0-"'))
    with pytest.raises(SpecError, match="no unused version left"):
        rewritten(RESPONSE.replace('"0-3"', '"0-32767"'))


def rpcs() -> list[SpecText]:
    """Return every request and response of the newest release, as one spec each."""
    texts = []
    for name in catalog().names():
        entry = catalog().entry(name)
        if entry.type.value in {"request", "response"} and entry.current_versions:
            spec = entry.spec(entry.current_versions.highest)
            texts.append(SpecText(write_spec(spec), f"{name}.json"))
    return texts


DONE = tag_errors(rpcs(), mode="kip")


def test_the_document_names_the_only_one_that_becomes_flexible() -> None:
    assert {one.spec.name for one in DONE if one.made_flexible} == {
        "OffsetDeleteRequest",
        "OffsetDeleteResponse",
    }
    assert {one.spec.name for one in DONE if one.reason.startswith("KIP-636")} == {
        "SaslHandshakeRequest",
        "SaslHandshakeResponse",
    }
    # "the vast majority of RPCs"
    changed = sum(one.version is not None for one in DONE)
    assert changed > 0.9 * len(DONE)


def _is_error(one: FieldSpec) -> bool:
    return one.name in {"ErrorCode", "ErrorMessage"}


@pytest.mark.long
@pytest.mark.slow
@each("done", {done.spec.name: done for done in DONE})
def test_every_rpc_of_kafka_goes_through(done: TaggedErrors) -> None:
    spec = parse_spec(done.text, done.source, mode="kip")
    if done.version is None:
        assert spec == done.spec
        return
    made: Any = message_of(spec)
    old: Any = message_of(done.spec)
    for seed in range(3):
        value = random_message(made, done.version, seed)
        raw = made.definition.encode_generated(value, done.version)
        assert made.definition.encode_reference(value, done.version) == raw
        assert made.definition.decode_exactly(raw, done.version) == value
        assert made.decoder(done.version)(raw) == value
    for version in done.spec.valid_versions:
        value = random_message(old, version, version)
        raw = value.encode(version)
        # Bytes that were written before the change are read as before.
        assert made.decode(raw, version).to_json(version) == value.to_json(version)
    before = done.version - 1
    if before in done.spec.flexible_versions and before in done.spec.valid_versions:
        saved = sum(
            {"ErrorCode": 2, "ErrorMessage": 1}[one.name]
            for one in spec.fields
            if _is_error(one)
            and one.tagged_versions
            and before in one.versions
            and one.tagged_versions.lowest == done.version
        )
        assert len(made().encode(done.version)) == len(made().encode(before)) - saved


def test_the_document_s_figures() -> None:
    [text] = [one.text for one in DONE if one.spec.name == "DeleteTopicsResponse"]
    made: Any = message_of(parse_spec(text, mode="kip"))
    result = made.DeletableTopicResult

    def saved(**values: Any) -> int:
        value = made(responses=[result(name="t", **values)])
        return len(value.encode(6)) - len(value.encode(7))

    # "save two bytes for every error code and 1 byte for every message"
    assert saved() == 2 + 1
    # "a tagged field will require 4 bytes … rather than the 2 bytes needed for an int16"
    assert saved(error_code=3) == -2 + 1
    # "non-null error messages will require 2 bytes … more than the usual serialization"
    assert saved(error_code=3, error_message="none such") == -2 - 2
