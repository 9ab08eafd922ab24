"""Header versions are numbered as in KIP-482."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.errors import DecodeError, UnknownMessageError
from flexwire.protocol.headers import (
    Numbering,
    request_header,
    request_header_version,
    response_header,
    response_header_version,
)
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType

KIP = Numbering.KIP_482


def test_the_kip_numbers_flexible_headers_1_and_all_others_0() -> None:
    for api_key in catalog().api_keys():
        for kind, header_version in (
            (MessageType.REQUEST, request_header_version),
            (MessageType.RESPONSE, response_header_version),
        ):
            entry = catalog().by_api_key(api_key, kind)
            for version in entry.versions:
                if (entry.api_key, kind, version) != (7, MessageType.REQUEST, 0):
                    flexible = version in entry.flexible_versions
                    assert header_version(api_key, version, KIP) == int(flexible)


def test_the_kip_knows_no_exceptions() -> None:
    assert (response_header_version(18, 3), response_header_version(18, 3, KIP)) == (0, 1)
    with pytest.raises(UnknownMessageError, match="api key 7 v0 has a header without a client id"):
        request_header_version(7, 0, KIP)
    for header_version in (request_header_version, response_header_version):
        with pytest.raises(UnknownMessageError, match="999"):
            header_version(999, 0, KIP)


def test_released_kafka_is_the_default() -> None:
    assert request_header_version(3, 9) == request_header_version(3, 9, Numbering.KAFKA) == 2
    assert request_header() is request_header(Numbering.KAFKA)
    assert response_header().entry is catalog().entry("ResponseHeader")


CLIENT_IDS = [("a", "00 01 61", "02 61"), ("", "00 00", "01"), (None, "ff ff", "00")]


@pytest.mark.parametrize(("client_id", "fixed", "compact"), CLIENT_IDS)
def test_the_client_id_of_the_kip_s_request_header_1_is_compact(
    client_id: str | None, fixed: str, compact: str
) -> None:
    header: Any = request_header(KIP)
    value = header(request_api_key=3, request_api_version=9, correlation_id=7, client_id=client_id)
    start = bytes.fromhex("0003 0009 00000007")
    assert value.encode(0) == start + bytes.fromhex(fixed)
    assert value.encode(1) == start + bytes.fromhex(compact) + b"\x00"
    for version in (0, 1):
        assert header.decode(value.encode(version), version) == value
    # Version 0 in the KIP was released as version 1 in Kafka.
    released: Any = request_header()
    assert released.decode(value.encode(0), 1).client_id == client_id


def test_both_headers_of_version_1_have_room_for_tagged_fields() -> None:
    request: Any = request_header(KIP)
    response: Any = response_header(KIP)
    for header in (request, response):
        value = header(correlation_id=7, unknown_tagged_fields={1: b"trace"})
        assert header.decode(value.encode(1), 1) == value
        with pytest.raises(DecodeError):
            header.decode(value.encode(1), 0)
        with pytest.raises(UnknownMessageError, match="no version 2"):
            header.decode(b"", 2)
    assert response(correlation_id=7).encode(0) == bytes.fromhex("00000007")
    assert response(correlation_id=7).encode(1) == bytes.fromhex("00000007 00")
