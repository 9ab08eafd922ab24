"""Error codes equal Kafka's, and each is unique; field names in specs show where codes are."""

from __future__ import annotations

import re

import pytest

from flexwire.protocol.error_codes import (
    ERROR_NAMES,
    MEMBER_ID_REQUIRED,
    NO_ERROR,
    REBALANCE_IN_PROGRESS,
    RETRIABLE,
    error_codes,
    error_name,
    is_error_code,
)
from flexwire.protocol.error_meanings import MEANINGS
from flexwire.schema.catalog import catalog, release_order

# The number of codes in the enum in each release's clients.
COUNTS = {
    "2.4.1": 89,
    "2.5.0": 90,
    "2.7.0": 98,
    "2.8.0": 106,
    "3.0.0": 107,
    "3.2.0": 108,
    "3.4.0": 110,
    "3.5.0": 114,
    "3.6.0": 115,
    "3.7.0": 121,
    "3.8.0": 122,
    "3.9.0": 129,
    "4.0.0": 131,
    "4.3.0": 135,
    "4.4.0": 138,
}


def test_each_release_has_as_many_as_its_clients() -> None:
    found = error_codes()
    assert [one.code for one in found] == list(range(-1, 137))
    assert len({one.name for one in found}) == len(found)
    for release, count in COUNTS.items():
        until = release_order(release)
        assert sum(release_order(one.since) <= until for one in found) == count, release


def test_each_has_a_meaning_of_its_own_in_a_sentence_or_three() -> None:
    found = error_codes()
    assert set(MEANINGS) == {one.name for one in found}
    assert len({one.meaning for one in found}) == len(found)
    for one in found:
        assert re.fullmatch(r"[A-Z][^\n]{10,180}[a-z0-9)]\.", one.meaning), one.name
        assert one.name not in one.meaning, one.name
        assert "  " not in one.meaning, one.name


def test_some_by_hand() -> None:
    names = {
        -1: "UNKNOWN_SERVER_ERROR",
        NO_ERROR: "NONE",
        REBALANCE_IN_PROGRESS: "REBALANCE_IN_PROGRESS",
        35: "UNSUPPORTED_VERSION",
        MEMBER_ID_REQUIRED: "MEMBER_ID_REQUIRED",
        100: "UNKNOWN_TOPIC_ID",
        133: "SHARE_SESSION_LIMIT_REACHED",
    }
    assert {code: error_name(code) for code in names} == names
    assert error_name(137) is None
    assert error_name(-2) is None
    assert ERROR_NAMES.keys() > RETRIABLE
    assert 6 in RETRIABLE
    assert 35 not in RETRIABLE


@pytest.mark.parametrize(
    ("name", "kind", "is_one"),
    [
        ("ErrorCode", "int16", True),
        ("errorCode", "int16", True),
        ("TopicConfigErrorCode", "int16", True),
        ("acknowledgeErrorCode", "int16", True),
        ("errorCode", "int32", False),  # in Streams' own subscription data, which has other codes
        ("ErrorMessage", "int16", False),
        ("ErrorCodes", "int16", False),
        ("", "int16", False),
    ],
)
def test_a_field_is_an_error_code_by_name_and_type(name: str, kind: str, *, is_one: bool) -> None:
    assert is_error_code(name, kind) is is_one


def test_no_field_of_a_response_holds_error_codes_under_another_name() -> None:
    names = {
        one.name
        for entry in map(catalog().entry, catalog().names())
        for spec in entry.all_specs()
        for one in spec.walk()
        if "error" in one.name.lower() and str(one.type) == "int16"
    }
    assert names == {
        "ErrorCode",
        "PartitionErrorCode",
        "TopicConfigErrorCode",
        "AcknowledgeErrorCode",
    }
