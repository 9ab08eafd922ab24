"""With TLS, a capture contains no credentials, but everything else in every frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.codec import message
from flexwire.protocol import Conversation, parse_request
from flexwire.protocol.headers import request_name
from flexwire.tap import TapSecurity
from flexwire.tap.recorder import withhold_credentials, withhold_rest
from tests.net.broker import Broker, captured, connected, run, serving, settled, tapped
from tests.net.test_relay import asking
from tests.net.test_tap_tls import Made, made
from tests.protocol.payloads import frame, make, request_payload, response_payload

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from flexwire.protocol import RequestFrame
    from flexwire.tap import TapStatistics
    from tests.net.broker import Client, Handler

__all__ = ["made"]
HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3
SECRET = b"opensesame-\xce\xa9"
TOKEN = b"\0alice\0" + SECRET


def answer(request: RequestFrame, _: bytes) -> bytes:
    key, version = request.api_key, request.api_version
    body = make("SaslHandshakeResponse", mechanisms=["PLAIN"])
    if key == AUTHENTICATE:
        body = make("SaslAuthenticateResponse", auth_bytes=b"v=" + SECRET, error_message=None)
    return response_payload(key, version, body, correlation_id=request.correlation_id)


def sasl(version: int = 1) -> list[bytes]:
    handshake = make("SaslHandshakeRequest", mechanism="PLAIN")
    return [
        request_payload(HANDSHAKE, version, handshake, correlation_id=1),
        request_payload(
            AUTHENTICATE, 2, make("SaslAuthenticateRequest", auth_bytes=TOKEN), correlation_id=2
        ),
    ]


class Talked(NamedTuple):
    """The capture of one connection, and the counts of the tap that wrote it."""

    requests: bytes
    responses: bytes
    stats: TapStatistics


def talked(
    out: Path,
    security: TapSecurity,
    handler: Handler,
    talk: Callable[[Client], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> Talked:
    """Make a client talk to a broker through a tap, until both are done."""

    async def job() -> Talked:
        async with serving(handler) as upstream, tapped(upstream, out, security=security) as tap:
            async with connected(tap.listen_address, tls) as client:
                await talk(client)
            await settled(lambda: tap.stats.open_connections == 0)
            streams = captured(tap.capture_paths)
            ends = client.port, upstream.port
            return Talked(streams.get(ends, b""), streams.get(ends[::-1], b""), tap.stats)

    return run(job())


@pytest.mark.parametrize(
    ("tls", "with_credentials", "is_there"),
    [
        (True, None, False),
        (True, True, True),
        (True, False, False),
        (False, None, True),
        (False, False, False),
    ],
)
def test_under_tls_a_password_passes_and_is_not_captured(
    made: Made,
    tmp_path: Path,
    tls: Any,
    with_credentials: Any,
    is_there: Any,
) -> None:
    broker = Broker(answer)
    answers: list[bytes] = []

    async def talk(client: Client) -> None:
        answers.extend([await client.ask(payload) for payload in sasl()])

    security = TapSecurity(made.listen if tls else None, with_credentials=with_credentials)
    found = talked(tmp_path, security, broker, talk, made.client if tls else None)
    sent, said = b"".join(map(frame, sasl())), b"".join(map(frame, answers))
    assert bytes(broker.received[0]) == sent
    assert SECRET in answers[1]
    assert (len(found.requests), len(found.responses)) == (len(sent), len(said))
    assert (SECRET in found.requests) is (SECRET in found.responses) is is_there
    assert found.stats.withheld == (0 if is_there else 2)
    if is_there:
        assert (found.requests, found.responses) == (sent, said)
    else:
        assert found.requests == sent.replace(TOKEN, b"*" * len(TOKEN))


def test_bare_tokens_are_filled_and_are_still_tokens_for_a_reader(
    made: Made, tmp_path: Path
) -> None:
    handshake = sasl(0)[0]
    reply = frame(answer(parse_request(handshake), b""))

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frame(handshake)))
        writer.write(reply)
        await reader.readexactly(len(frame(TOKEN)))
        writer.write(frame(b"v=" + SECRET))
        await reader.read()

    async def talk(client: Client) -> None:
        await client.ask(handshake)
        assert await client.ask(TOKEN) == b"v=" + SECRET

    found = talked(tmp_path, TapSecurity(made.listen), handler, talk, made.client)
    token = b"*" * len(TOKEN)
    assert found.requests == frame(handshake) + frame(token)
    assert SECRET not in found.responses
    conversation = Conversation()
    conversation.request(handshake)
    assert conversation.request(token).kind == "token"


@pytest.mark.parametrize("cut", [3, 9, 14, 30])
def test_what_breaks_off_is_not_laid_open_either(cut: int, made: Made, tmp_path: Path) -> None:
    whole = frame(sasl()[1])

    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def talk(client: Client) -> None:
        await client.send(whole[:cut])

    found = talked(tmp_path, TapSecurity(made.listen), handler, talk, made.client)
    assert found.requests == whole[: min(cut, 12)] + b"*" * max(0, cut - 12)


def test_what_is_not_frames_is_filled_as_well(made: Made, tmp_path: Path) -> None:
    said = b"\xff\xff\xff\xff" + SECRET

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(said)) == said
        writer.write(said)

    async def talk(client: Client) -> None:
        await client.send(said)
        assert await client.reader.read() == said

    found = talked(tmp_path, TapSecurity(made.listen), handler, talk, made.client)
    assert found.requests == found.responses == b"*" * len(said)
    assert found.stats.not_frames == 2


def turned(payload: bytes) -> bytes:
    """Return what happens to a conversation's first request."""
    return withhold_credentials(payload, Conversation().request(payload))


def answered(api_key: int, version: int, payload: bytes) -> bytes:
    conversation = Conversation()
    conversation.request(request_payload(api_key, version, empty(api_key, version)))
    return withhold_credentials(payload, conversation.response(payload))


def empty(api_key: int, version: int) -> bytes:
    encoded: bytes = make(request_name(api_key, version)).encode(version)
    return encoded


def scram() -> tuple[int, int, Any]:
    kind: Any = message("AlterUserScramCredentialsRequest")
    one = kind.ScramCredentialUpsertion(
        name="alice", mechanism=2, iterations=4096, salt=SECRET, salted_password=SECRET
    )
    return 51, 0, kind(upsertions=[one], unknown_tagged_fields={77: SECRET})


def configured(name: str) -> tuple[int, int, Any]:
    kind: Any = message("IncrementalAlterConfigsRequest")
    config = kind.AlterableConfig(name=name, value=SECRET.decode())
    return 44, 1, kind(resources=[kind.AlterConfigsResource(configs=[config])])


@pytest.mark.parametrize("case", [scram(), configured("ssl.key.password")])
def test_all_else_of_a_request_stays_in_its_place(case: tuple[int, int, Any]) -> None:
    payload = request_payload(*case)
    assert SECRET in payload
    assert turned(payload) == payload.replace(SECRET, b"*" * len(SECRET))
    # Bytes after the body belong to no field.
    assert turned(payload + SECRET).endswith(b"*" * len(SECRET))


def test_what_has_no_credential_is_itself() -> None:
    for payload in (
        request_payload(*configured("retention.ms")),
        asking(SECRET),
        request_payload(METADATA, 1, SECRET),
    ):
        assert turned(payload) is payload


def test_a_token_of_delegation_is_withheld_from_its_response() -> None:
    kind: Any = message("DescribeDelegationTokenResponse")
    body = kind(tokens=[kind.DescribedDelegationToken(token_id="t", hmac=SECRET)])  # noqa: S106 - of a test
    payload = response_payload(41, 3, body)
    assert answered(41, 3, payload) == payload.replace(SECRET, b"*" * len(SECRET))


def test_the_log_of_the_clusters_metadata_is_withheld() -> None:
    kind: Any = message("FetchResponse")
    partition = kind.PartitionData(records=SECRET)
    topics = [
        kind.FetchableTopicResponse(topic=topic, partitions=[partition])
        for topic in ("__cluster_metadata", "orders")
    ]
    payload = response_payload(1, 11, kind(responses=topics))
    found = answered(1, 11, payload)
    assert (len(found), found.count(SECRET), found.count(b"*" * len(SECRET))) == (
        len(payload),
        1,
        1,
    )


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_what_does_not_decode_is_filled(keep: int) -> None:
    whole = sasl()[1]
    start = whole.index(TOKEN)
    payload = whole[: start + keep]
    head = parse_request(payload).body_offset
    assert turned(payload) == payload[:head] + b"*" * (len(payload) - head)
    # A length that exceeds the remaining bytes.
    reply = response_payload(AUTHENTICATE, 0, b"\0\0\xff\xff\0\0\x10\0" + SECRET)
    assert SECRET not in answered(AUTHENTICATE, 0, reply)
    assert answered(AUTHENTICATE, 0, reply).startswith(reply[:4])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0",
        TOKEN,
        b"\x7f\0\0\0" + TOKEN,
        b"\0\x12" + TOKEN,
        b"\0\x03\x03\xe7\0\0\0\1\0\0" + TOKEN,
    ],
)
def test_what_is_no_request_may_be_a_token(payload: bytes) -> None:
    found = turned(payload)
    assert len(found) == len(payload)
    assert SECRET not in found


def test_a_cut_frame_of_any_length_keeps_it() -> None:
    for length in range(20):
        data = bytes(range(length))
        for is_request in (True, False):
            assert len(withhold_rest(data, is_request=is_request)) == length


@given(st.binary(max_size=60), st.sampled_from([b"", *(one[:8] for one in sasl())]))
def test_any_bytes_keep_their_length(data: bytes, head: bytes) -> None:
    assert len(turned(head + data)) == len(head + data)
    for version in (0, 1, 2):
        assert len(answered(AUTHENTICATE, version, data)) == len(data)


@given(st.binary(min_size=1, max_size=40), st.integers(0, 2))
def test_no_token_is_left_in_a_frame_that_has_it(token: bytes, version: int) -> None:
    body = make("SaslAuthenticateRequest", auth_bytes=token + SECRET)
    assert SECRET not in turned(request_payload(AUTHENTICATE, version, body))
    reply = make("SaslAuthenticateResponse", auth_bytes=token + SECRET, error_message="no")
    assert SECRET not in answered(
        AUTHENTICATE, version, response_payload(AUTHENTICATE, version, reply)
    )


def test_after_requests_are_not_seen_any_more_nothing_is_laid_open(
    made: Made, tmp_path: Path
) -> None:
    # A request without authentication, and then a length beyond the limit.
    said = frame(asking(b"")) + b"\x7f\0\0\0" + frame(request_payload(*scram()))

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(said))
        writer.write(b"\xff\xff\xff\xff" + SECRET)

    async def talk(client: Client) -> None:
        await client.send(said)
        assert SECRET in await client.reader.read()

    found = talked(tmp_path, TapSecurity(made.listen), handler, talk, made.client)
    assert len(found.requests) == len(said)
    assert SECRET not in found.requests + found.responses
