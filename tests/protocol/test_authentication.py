"""If a connection rules out authentication, its damaged bytes cannot contain credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.protocol import Authentication, is_believable, parse_request
from tests.protocol.payloads import make, request_payload

if TYPE_CHECKING:
    from collections.abc import Iterable

PING = request_payload(3, 12, make("MetadataRequest"))
ASKS = request_payload(18, 3, make("ApiVersionsRequest"))
ASKS_NEWER = request_payload(18, 99, b"unknown")
SHAKES = request_payload(17, 0, make("SaslHandshakeRequest", mechanism="PLAIN"))
LOGS_IN = request_payload(36, 2, make("SaslAuthenticateRequest", auth_bytes=b"\0a\0b"))
CREATES = request_payload(38, 2, make("CreateDelegationTokenRequest"))
FETCHES = request_payload(1, 12, make("FetchRequest"))


def metadata_fetch(**topic: Any) -> bytes:
    kind: Any = type(make("FetchRequest"))
    return request_payload(
        1, 12 if "topic" in topic else 13, kind(topics=[kind.FetchTopic(**topic)])
    )


def told(payloads: Iterable[bytes | None]) -> bool:
    authentication = Authentication()
    for payload in payloads:
        request = None if payload is None else parse_request(payload)
        authentication.see(request, payload or b"", is_whole=True)
    return authentication.is_ruled_out


@pytest.mark.parametrize(
    "payloads",
    [
        [PING],
        [ASKS, PING],
        [ASKS_NEWER, ASKS, PING],
        [PING, FETCHES],
        [PING[:-1], PING],
        [PING, ASKS],
    ],
)
def test_a_request_that_decodes_before_any_of_sasl_rules_it_out(payloads: list[bytes]) -> None:
    assert told(payloads)


@pytest.mark.parametrize(
    "payloads",
    [[], [ASKS], [ASKS_NEWER], [PING[:-1]], [PING + b"\0"], [ASKS, SHAKES, PING], [LOGS_IN, PING]],
)
def test_until_then_and_with_sasl_it_may_be_under_way(payloads: list[bytes]) -> None:
    assert not told(payloads)


@pytest.mark.parametrize("secret", [None, SHAKES, LOGS_IN, CREATES], ids=str)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_may_have_been_a_credential_guards_all_that_comes_after(
    secret: bytes | None, place: int
) -> None:
    payloads: list[bytes | None] = [PING, PING]
    payloads.insert(place, secret)
    assert not told([*payloads, PING])


def test_a_cut_off_request_rules_nothing_out() -> None:
    authentication = Authentication()
    authentication.see(parse_request(PING), PING, is_whole=False)
    assert not authentication.is_ruled_out


def test_a_version_that_nobody_released_is_believed_of_apiversions_alone() -> None:
    unreleased = request_payload(3, 99, b"unknown")
    assert is_believable(parse_request(ASKS_NEWER))
    assert not is_believable(parse_request(unreleased))
    assert not told([PING, unreleased])


def test_fetching_the_metadata_of_the_cluster_is_told_from_other_fetches() -> None:
    assert told([PING, metadata_fetch(topic="orders")])
    assert told([PING, metadata_fetch(topic_id=UUID(int=0xABCDEF))])
    assert not told([PING, metadata_fetch(topic="__cluster_metadata")])
    assert not told([PING, metadata_fetch(topic_id=UUID(int=1))])
