"""The client instance id is found in each source: the header, a body, or the broker's response.

Sources: KIP-714 for the bodies, KIP-1313 for request header 3.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.protocol import (
    assigned_client_instance_id,
    client_instance_id,
    parse_request,
    parse_response,
)
from flexwire.protocol.client_instances import client_instance_field
from flexwire.schema.catalog import catalog, use_catalog
from tests.protocol.payloads import make, request_payload, response_payload
from tests.schema.trunk import GET_TELEMETRY, OFFSET_DELETE, PUSH_TELEMETRY, trunk_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTANCE, OTHER = uuid.UUID(int=7), uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
NONE = uuid.UUID(int=0)
METADATA = 3


@pytest.fixture(scope="module", autouse=True)
def _trunk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    use_catalog(trunk_catalog(tmp_path_factory.mktemp("trunk")))
    yield
    use_catalog(None)


def given(payload: bytes) -> uuid.UUID | None:
    return client_instance_id(parse_request(payload), payload)


def assigned(payload: bytes, version: int = 0) -> uuid.UUID | None:
    response = parse_response(payload, GET_TELEMETRY, version)
    return assigned_client_instance_id(response, payload)


def with_header_3(instance: uuid.UUID, body: Any, api_key: int = OFFSET_DELETE) -> bytes:
    header = make(
        "RequestHeader",
        request_api_key=api_key,
        request_api_version=1,
        client_id="a",
        client_instance_id=instance,
    )
    encoded: bytes = header.encode(3) + body.encode(1)
    return encoded


@pytest.mark.parametrize("instance", [INSTANCE, OTHER])
def test_the_header_gives_it(instance: uuid.UUID) -> None:
    assert given(with_header_3(instance, make("OffsetDeleteRequest"))) == instance
    for api_key, name in [(GET_TELEMETRY, "GetTelemetrySubscriptions"), (PUSH_TELEMETRY, "Push")]:
        full = "PushTelemetry" if name == "Push" else name
        assert given(with_header_3(instance, make(f"{full}Request"), api_key)) == instance


@pytest.mark.parametrize(
    ("api_key", "name"),
    [(GET_TELEMETRY, "GetTelemetrySubscriptionsRequest"), (PUSH_TELEMETRY, "PushTelemetryRequest")],
)
def test_a_body_gives_it(api_key: int, name: str) -> None:
    body = make(name, client_instance_id=INSTANCE)
    assert given(request_payload(api_key, 0, body)) == INSTANCE


def test_a_response_assigns_it() -> None:
    body = make("GetTelemetrySubscriptionsResponse", client_instance_id=INSTANCE)
    for version in (0, 1):
        assert assigned(response_payload(GET_TELEMETRY, version, body), version) == INSTANCE


def test_the_zero_uuid_is_no_id() -> None:
    assert given(with_header_3(NONE, make("OffsetDeleteRequest"))) is None
    for api_key, name in [(71, "GetTelemetrySubscriptionsRequest"), (72, "PushTelemetryRequest")]:
        assert given(request_payload(api_key, 0, make(name))) is None
    assert assigned(response_payload(71, 0, make("GetTelemetrySubscriptionsResponse"))) is None


def test_other_messages_give_none() -> None:
    payload = request_payload(METADATA, 12, make("MetadataRequest"))
    assert given(payload) is None
    answer = response_payload(METADATA, 12, make("MetadataResponse"))
    assert assigned_client_instance_id(parse_response(answer, METADATA, 12), answer) is None


def test_a_version_that_the_catalog_lacks_gives_none() -> None:
    header = request_payload(METADATA, 12)[:-1]
    payload = PUSH_TELEMETRY.to_bytes(2, "big") + b"\0\x63" + header[4:] + b"\1\0\x10" + OTHER.bytes
    assert given(payload) is None


@pytest.mark.parametrize("size", range(16))
def test_a_body_that_breaks_off_before_it_gives_none(size: int) -> None:
    whole = request_payload(PUSH_TELEMETRY, 0, OTHER.bytes)
    assert given(whole) == OTHER
    assert given(whole[: len(whole) - 16 + size]) is None
    answer = response_payload(GET_TELEMETRY, 0, bytes(6) + OTHER.bytes)
    assert assigned(answer) == OTHER
    assert assigned(answer[: len(answer) - 16 + size]) is None


def test_only_these_messages_hold_it() -> None:
    assert [name for name in catalog().names() if client_instance_field(name)] == [
        "GetTelemetrySubscriptionsRequest",
        "GetTelemetrySubscriptionsResponse",
        "PushTelemetryRequest",
        "RequestHeader",
    ]


def test_no_released_header_holds_it() -> None:
    trunk = catalog().root
    use_catalog(None)
    try:
        assert client_instance_field("RequestHeader") is None
        body = make("PushTelemetryRequest", client_instance_id=INSTANCE)
        assert given(request_payload(PUSH_TELEMETRY, 0, body)) == INSTANCE
    finally:
        use_catalog(trunk)


def test_an_envelope_and_the_request_inside_each_have_their_own() -> None:
    # Source: KAFKA-20926, forwarded requests keep their header.
    inside = with_header_3(INSTANCE, make("OffsetDeleteRequest"))
    envelope = make(
        "EnvelopeRequest", request_data=inside, request_principal=b"", client_host_address=b"four"
    )
    payload = request_payload(catalog().entry("EnvelopeRequest").api_key or 0, 0, envelope)
    assert given(payload) is None
    request = parse_request(payload)
    read: Any = make("EnvelopeRequest").decode(payload[request.body_offset :], 0)
    assert given(read.request_data) == INSTANCE
