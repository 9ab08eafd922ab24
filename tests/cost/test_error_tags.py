from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import message
from flexwire.schema.catalog import catalog
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.specs.cost.meter import ComparisonSide, CostMeter, SentMessage, VersionChoice
from flexwire.specs.cost.sides import ErrorTaggedSpecs, bundled_specs, single_version
from flexwire.specs.cost.tagging import NewlyTaggedField, Share
from tests.cost.made import body, compare, spec, totals
from tests.each import each

CODE, TEXT = {"name": "ErrorCode", "type": "int16"}, {"name": "ErrorMessage", "type": "string"}
NULLABLE = TEXT | {"nullableVersions": "0+", "default": "null"}


def tagged(
    name: str, version: int, *messages: Any, at: VersionChoice = VersionChoice.SENT
) -> CostMeter:
    old = bundled_specs()
    meter = CostMeter(ComparisonSide(old), ComparisonSide(ErrorTaggedSpecs(old)), at)
    for one in messages:
        meter.add(SentMessage(name, None, None, version, one.encode(version)))
    return meter


@each("name", catalog().names())
def test_a_spec_of_one_version_lays_it_and_the_next_out_as_the_whole_spec_does(name: str) -> None:
    entry = catalog().entry(name)
    for version in entry.versions:
        spec = entry.spec(version)
        cut = single_version(spec, version)
        assert [*cut.valid_versions] == [version]
        layout = resolve(spec, version).layout()
        assert resolve(cut, version).layout() == layout
        assert resolve(cut, version + 1).layout() == layout


@pytest.mark.long
@pytest.mark.slow
def test_every_response_with_an_error_code_has_it_tagged_in_every_version() -> None:
    old = bundled_specs()
    new = ErrorTaggedSpecs(old)
    changed = 0
    for name in catalog().names():
        entry = catalog().entry(name)
        edition = old.find((name, None, None))
        assert edition is not None
        for version in entry.versions:
            target, at = new.target((name, None, None), edition, version, newest=False)
            names = {one.name for one in edition.at(version).walk() if version in one.versions}
            if entry.type is MessageType.RESPONSE and "ErrorCode" in names and entry.api_key != 17:
                assert at == version + 1, (name, version)
                codes = [one for one in target.at(at).walk() if one.name == "ErrorCode"]
                assert codes
                assert all(at in one.tagged_versions for one in codes)
                changed += 1
            elif not entry.type.is_api or entry.api_key == 17:
                assert (target, at) == (edition, version)
    assert changed > 300


def test_a_zero_code_saves_two_bytes_and_another_costs_two_more() -> None:
    made = message("HeartbeatResponse")
    for code, saved in ((0, 2), (25, -2)):
        meter = tagged("HeartbeatResponse", 4, made(error_code=code))
        (row,) = meter.rows.values()
        assert (row.old_version, row.new_version, row.whole.saved) == (4, 5, saved)
        (share,) = row.shares
        assert (share.values, share.set) == (1, int(code != 0))
        assert share.break_even == 0.5


def test_the_break_even_share_is_where_both_sides_are_equal() -> None:
    made = message("HeartbeatResponse")
    for failing in range(11):
        messages = [made(error_code=int(place < failing)) for place in range(10)]
        (row,) = tagged("HeartbeatResponse", 4, *messages).rows.values()
        (share,) = row.shares
        assert share.share == failing / 10
        assert share.break_even == 0.5
        assert row.whole.saved == 40 * 0.5 - 4 * failing


@pytest.mark.parametrize("letters", [0, 1, 10, 126])
def test_a_message_saves_up_to_one_in_three(letters: int) -> None:
    # From this count, the size of the tagged field takes two bytes.
    old = spec(NULLABLE)
    new = spec(NULLABLE | {"taggedVersions": "0+", "tag": 0})
    raws = [body(old), body(old), body(old, error_message="m" * letters)]
    meter = compare(old, new, *raws)
    (row,) = meter.rows.values()
    assert row.whole.saved == 0
    assert row.shares[0].break_even == pytest.approx(1 / 3)
    assert row.shares[0].share == pytest.approx(1 / 3)


def test_longer_messages_break_even_earlier() -> None:
    old, new = spec(NULLABLE), spec(NULLABLE | {"taggedVersions": "0+", "tag": 0})
    meter = compare(old, new, *[body(old)] * 3, body(old, error_message="m" * 127))
    (row,) = meter.rows.values()
    assert row.shares[0].break_even == pytest.approx(1 / 4)
    assert row.whole.saved == 0


def test_without_a_set_value_a_small_one_stands_in() -> None:
    old, new = spec(NULLABLE), spec(NULLABLE | {"taggedVersions": "0+", "tag": 0})
    (row,) = compare(old, new, body(old)).rows.values()
    assert row.shares[0].break_even == pytest.approx(1 / 3)
    kinds = {
        "bool": 1 / 3, "int8": 1 / 3, "int32": 4 / 6, "uuid": 16 / 18, "float64": 8 / 10,
        "bytes": 1 / 3, "[]int32": None,
    }  # fmt: skip
    for kind, expected in kinds.items():
        field = {"name": "It", "type": kind}
        old, new = spec(field), spec(field | {"taggedVersions": "0+", "tag": 0})
        (row,) = compare(old, new, body(old)).rows.values()
        (share,) = row.shares
        assert share.break_even == (expected and pytest.approx(expected)), kind
        assert (share.old, share.new) == (row.body.old.total - 1, 0)


def test_set_is_what_is_not_the_default_of_the_new_side() -> None:
    old = spec(TEXT | {"nullableVersions": "0+"})
    for default, was_set in (("null", "m"), ("", None)):
        new = spec(TEXT | {"nullableVersions": "0+", "default": default, "taggedVersions": "0+",
                           "tag": 0})  # fmt: skip
        left_out = None if default else ""
        meter = compare(old, new, *(body(old, error_message=one) for one in (was_set, left_out)))
        ((share,),) = (row.shares for row in meter.rows.values())
        assert (share.values, share.set) == (2, 1), default
        assert share.new == 3 + len(was_set or "")


def test_a_null_in_some_versions_only_is_sent_still() -> None:
    # The rewrite cannot make such a null the default; a spec with one version shows this too.
    old = spec(TEXT | {"nullableVersions": "5+"}, valid="0-7", name="PingResponse", type="response",
               apiKey=12)  # fmt: skip
    cut = single_version(old.spec, 6)
    (field,) = cut.fields
    assert (str(field.versions), str(field.nullable_versions)) == ("0+", "5+")
    assert str(single_version(old.spec, 3).fields[0].nullable_versions) == "none"


def test_a_request_gets_the_next_version_with_its_response() -> None:
    (row,) = tagged("HeartbeatRequest", 4, message("HeartbeatRequest")()).rows.values()
    assert (row.new_version, row.whole.saved) == (5, 0)
    # A version that was not flexible becomes flexible: three strings and a count.
    (row,) = tagged("HeartbeatRequest", 2, message("HeartbeatRequest")()).rows.values()
    assert (row.new_version, row.whole.saved) == (3, 2 - 1)


def test_an_api_that_the_document_leaves_alone_is_compared_and_saves_nothing() -> None:
    meter = tagged("SaslHandshakeResponse", 1, message("SaslHandshakeResponse")())
    (row,) = meter.rows.values()
    assert (row.new_version, row.whole.saved, row.shares) == (1, 0, [])


def test_a_version_without_flexibility_gets_it() -> None:
    # OffsetDelete: two error codes, and one byte in each structure that becomes flexible.
    made = message("OffsetDeleteResponse")
    value = made(topics=[{"name": "t", "partitions": [{"partition_index": 0}]}])
    meter = tagged("OffsetDeleteResponse", 0, value)
    (row,) = meter.rows.values()
    # Two codes of 2 bytes, two arrays of 3, a string of 1; three counts of tagged fields.
    assert row.whole.saved == 2 * 2 + 2 * 3 + 1 - 3


def test_a_first_tag_in_a_flexible_structure_costs_no_count() -> None:
    old, new = spec(CODE), spec(CODE | {"taggedVersions": "0+", "tag": 0})
    assert totals(compare(old, new, body(old))) == (3, 1)
    assert totals(compare(old, new, body(old, error_code=1))) == (3, 5)


def test_newest_is_the_version_behind_the_newest() -> None:
    meter = tagged("HeartbeatResponse", 2, message("HeartbeatResponse")(), at=VersionChoice.NEWEST)
    (row,) = meter.rows.values()
    assert (row.version, row.old_version, row.new_version) == (2, 4, 5)
    assert row.whole.saved == 2


def test_a_field_that_no_message_has_has_no_share() -> None:
    (row,) = tagged("MetadataResponse", 12, message("MetadataResponse")(topics=[])).rows.values()
    assert {one.share for one in row.shares} == {None}
    assert isinstance(row.shares[0], Share)
    assert isinstance(row.shares[0].field, NewlyTaggedField)
