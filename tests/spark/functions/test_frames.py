"""Reading whole frames in a column returns the same results as reading each frame alone."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import ArgumentError, FlexwireError
from flexwire.protocol import parse_request
from flexwire.schema.catalog import use_catalog
from flexwire.spark.functions.messages import FRAME, frame_type, frames
from flexwire.wire.varint import uuid_text
from tests.protocol.payloads import make, request_payload, response_payload
from tests.schema.trunk import OFFSET_DELETE, trunk_catalog
from tests.spark.functions.chosen import FAILFAST, PERMISSIVE, chosen
from tests.spark.traffic import framed

if TYPE_CHECKING:
    from pathlib import Path

BODY = make("MetadataRequest", topics=[])
REQUESTS = [
    request_payload(3, 12, BODY, unknown_tagged_fields={9: b"x"}),
    request_payload(3, 1, BODY, client_id=None),
    request_payload(18, 3, make("ApiVersionsRequest")),
]


def test_a_request_says_what_it_is() -> None:
    rows = [*map(framed, REQUESTS), None]
    found = frames(FAILFAST, pa.array(rows, pa.binary()))
    assert found.type == FRAME
    first, second, third, nothing = found.to_pylist()
    assert first == {
        "api_key": 3,
        "api_version": 12,
        "correlation_id": 7,
        "client_id": "tests",
        "header_version": 2,
        "header_unknown_tagged_fields": [{"tag": 9, "data": b"x"}],
        "message": "MetadataRequest",
        "body_version": 12,
        "body": BODY.encode(12),
        "client_instance_id": None,
    }
    assert (second["client_id"], second["header_version"], second["body_version"]) == (None, 1, 1)
    assert third["message"] == "ApiVersionsRequest"
    assert nothing is None


@pytest.mark.long
@pytest.mark.slow
def test_header_3_says_which_client_instance_it_is(tmp_path: Path) -> None:
    instance = uuid.UUID(int=7)
    use_catalog(trunk_catalog(tmp_path))
    try:
        header = make(
            "RequestHeader",
            request_api_key=OFFSET_DELETE,
            request_api_version=1,
            client_id="a",
            client_instance_id=instance,
        )
        payload = header.encode(3) + make("OffsetDeleteRequest").encode(1)
        [row] = frames(FAILFAST, pa.array([framed(payload)])).to_pylist()
    finally:
        use_catalog(None)
    assert (row["header_version"], row["client_instance_id"]) == (3, uuid_text(instance))
    # This tag is known.
    assert row["header_unknown_tagged_fields"] == []


def test_a_response_is_read_by_its_request() -> None:
    body = make("ApiVersionsResponse", error_code=35)
    rows = [response_payload(18, 3, body, body_version=0), response_payload(3, 12, b"rest")]
    keys, versions = pa.array([18, 3], pa.int16()), pa.array([3, 12], pa.int16())
    first, second = frames(FAILFAST, pa.array(map(framed, rows)), keys, versions).to_pylist()
    # A broker that does not support the version answers in version 0.
    assert (first["message"], first["api_version"], first["body_version"]) == (
        "ApiVersionsResponse",
        3,
        0,
    )
    assert first["body"] == body.encode(0)
    assert (second["message"], second["body"], second["client_id"]) == (
        "MetadataResponse",
        b"rest",
        None,
    )


def test_payloads_come_without_their_length_where_that_is_said() -> None:
    found = frames(chosen(lengthPrefix="false"), pa.array(REQUESTS))
    assert found.equals(frames(FAILFAST, pa.array(map(framed, REQUESTS))))


WRONG = [
    (b"", "expected at least 4 bytes, for the length at the start of the frame, got 0"),
    (b"\0\0\0\2a", "the frame declares 2 bytes but contains 1"),
    (b"\xff\xff\xff\xff", "the frame declares -1 bytes but contains 0"),
    (framed(b"\x7f\xff\0\0\0\0\0\0"), "has api key 32767"),
    (framed(REQUESTS[0][:9]), "bytes"),
]


@pytest.mark.parametrize(("frame", "reason"), WRONG)
def test_what_is_not_a_frame_is_an_error_or_told_about(frame: bytes, reason: str) -> None:
    data = pa.array([framed(REQUESTS[0]), frame])
    with pytest.raises(FlexwireError, match=reason) as error:
        frames(FAILFAST, data)
    assert error.value.__notes__ == ["in row 1"]
    right, wrong = frames(PERMISSIVE, data).to_pylist()
    assert right.pop("_corrupt_record") is None
    assert right["message"] == "MetadataRequest"
    assert reason in wrong.pop("_corrupt_record")["reason"]
    assert set(wrong.values()) == {None}


@pytest.mark.parametrize("request_of", [(None, 3), (18, None), (-1, 3), (18, 40000), (999, 0)])
def test_a_response_without_a_request_that_there_is_is_an_error(request_of: Any) -> None:
    key, version = (pa.array([one], pa.int32()) for one in request_of)
    data = pa.array([framed(response_payload(18, 3, b""))])
    with pytest.raises(FlexwireError):
        frames(FAILFAST, data, key, version)
    (found,) = frames(PERMISSIVE, data, key, version).to_pylist()
    assert found["_corrupt_record"]["reason"]


def test_other_columns_are_refused() -> None:
    frame = pa.array([framed(REQUESTS[0])])
    with pytest.raises(ArgumentError, match="data: expected a binary column, got 'string'"):
        frames(FAILFAST, pa.array(["text"]))
    with pytest.raises(ArgumentError, match="api_version: expected an integer column"):
        frames(FAILFAST, frame, pa.array([3]), pa.array([1.5]))


@settings(max_examples=40)
@given(st.lists(st.none() | st.binary(max_size=40) | st.sampled_from(REQUESTS)))
def test_any_bytes_are_frames_or_told_about(rows: list[bytes | None]) -> None:
    options = chosen(mode="PERMISSIVE", lengthPrefix="false")
    found = frames(options, pa.array(rows, pa.binary()))
    assert found.type == frame_type(options)
    for row, one in zip(rows, found.to_pylist(), strict=True):
        if row is None:
            assert one is None
            continue
        if one["_corrupt_record"] is None:
            expected = parse_request(row)
            assert (one["api_key"], one["body"]) == (expected.api_key, row[expected.body_offset :])
        else:
            with pytest.raises(FlexwireError) as error:
                parse_request(row)
            assert one["_corrupt_record"]["reason"] in str(error.value)
