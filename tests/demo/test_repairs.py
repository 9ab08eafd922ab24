from __future__ import annotations

import pytest

from flexwire.codec import message
from flexwire.demo.repair_proxy import may_need_repair, repair
from flexwire.protocol import parse_response
from tests.each import each

METADATA, API_VERSIONS = 3, 18

# The bytes that the mock broker of librdkafka 2.16.0 sent.
FALLBACK = bytes.fromhex("00000001002301001200000002 00000000")
METADATA_V12 = bytes.fromhex(
    "00000001000000000004000000010a3132372e302e302e31000086910000000000020a3132372e302e302e31"
    "000091a50000000000030a3132372e302e302e3100008d0d0000186d6f636b436c7573746572313537356364"
    "6435636262380000000001"
    "00"
    "00"
)


def test_the_mocks_fallback_decodes_in_no_version_and_the_repaired_one_in_version_0() -> None:
    right = repair(FALLBACK, API_VERSIONS, 4)
    frame = parse_response(right, API_VERSIONS, 4)
    assert (frame.correlation_id, frame.body_version) == (1, 0)
    answer = message("ApiVersionsResponse").decode(right[frame.body_offset :], 0)
    assert answer.to_json(0) == {
        "errorCode": 35,
        "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 2}],
    }
    assert repair(right, API_VERSIONS, 4) == right


def test_one_empty_tag_section_after_metadata_is_taken_off() -> None:
    assert repair(METADATA_V12, METADATA, 12) == METADATA_V12[:-1]
    assert repair(METADATA_V12[:-1], METADATA, 12) == METADATA_V12[:-1]


@pytest.mark.parametrize("tail", [b"\0\0", b"\1", b"more"])
def test_metadata_that_is_wrong_in_another_way_is_left_alone(tail: bytes) -> None:
    wrong = METADATA_V12[:-1] + tail
    assert repair(wrong, METADATA, 12) == wrong


@each("length", range(len(METADATA_V12) - 1))
def test_metadata_that_is_cut_off_is_left_alone(length: int) -> None:
    assert repair(METADATA_V12[:length], METADATA, 12) == METADATA_V12[:length]


@pytest.mark.parametrize("length", range(len(FALLBACK)))
def test_a_fallback_that_is_cut_off_is_left_alone(length: int) -> None:
    assert repair(FALLBACK[:length], API_VERSIONS, 4) == FALLBACK[:length]


def test_only_flexible_metadata_and_api_versions_are_looked_at() -> None:
    looked_at = [
        (api_key, version)
        for api_key in range(100)
        for version in range(20)
        if may_need_repair(api_key, version)
    ]
    assert looked_at == [(3, version) for version in range(9, 20)] + [
        (18, version) for version in range(3, 20)
    ]
    assert repair(FALLBACK, 0, 3) == FALLBACK
