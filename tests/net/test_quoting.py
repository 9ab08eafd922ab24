"""A value that was withheld in a request is also withheld in the response."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from flexwire.client.answers import BrokerAnswer, FramePayload, explain_response
from flexwire.codec import message
from flexwire.errors import EncodeError
from flexwire.protocol import Conversation, parse_request, parse_response, withhold
from flexwire.protocol.credentials import CREDENTIALS, CredentialField
from flexwire.protocol.frame_explanation import WholeFrame, explain_frame
from flexwire.schema.catalog import catalog
from flexwire.tables.request_log_bodies import read_body
from flexwire.tap import HostPort
from flexwire.tap.recorder import CredentialMask
from tests.each import each
from tests.protocol.payloads import request_payload, response_payload
from tests.spark.planted import SECRET_NAME, holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import FieldSpec, MessageSpec

SECRET: Final = b"opensesame"
# In Kafka's words, and in words that a plug-in may use.
QUOTES: Final = (
    f"Invalid value {SECRET.decode()} for configuration {SECRET_NAME}: Not a number of type INT",
    f"the policy of this cluster does not like '{SECRET.decode()}'",
    SECRET.decode(),
)
TEXTS: Final = {"string", "bytes", "records"}
# The user whose SCRAM keys a request sets. The request calls the field "Name".
ECHOES: Final = {("AlterUserScramCredentialsResponse", ("Results", "User"))}

ASKED: Final = [one for one in CREDENTIALS if one.message_name.endswith("Request")]


def texts(spec: MessageSpec) -> Iterator[tuple[tuple[str, ...], FieldSpec]]:
    structs = spec.structs()

    def below(
        fields: tuple[FieldSpec, ...], path: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], FieldSpec]]:
        for field in fields:
            if field.type.name in TEXTS:
                yield (*path, field.name), field
            yield from below(structs.get(field.type.name, ()), (*path, field.name))

    return below(spec.fields, ())


def free_texts(request_name: str) -> Iterator[CredentialField]:
    """In all versions of a response, find strings that are neither names nor from the request."""
    name = re.sub("Request$", "Response", request_name)
    asked = {
        field.name for spec, _ in catalog().entry(request_name).specs() for field in spec.walk()
    }
    found = {
        path
        for spec, _ in catalog().entry(name).specs()
        for path, field in texts(spec)
        if not (field.entity_type or field.name in asked or (name, path) in ECHOES)
    }
    return (CredentialField(name, path, "it may quote the request") for path in sorted(found))


QUOTING: Final = {
    f"{asked.message_name} {'.'.join(said.path)}": (asked, said)
    for asked in ASKED
    for said in free_texts(asked.message_name)
}


def versions(asked: CredentialField, said: CredentialField) -> Iterator[int]:
    """Yield the versions in which both fields are on the wire."""
    entry = catalog().entry(asked.message_name)
    for version in entry.versions:
        with suppress(EncodeError):
            encoded = [holding(one, SECRET, tag=False).encode(version) for one in (asked, said)]
            if all(SECRET in one for one in encoded):
                yield version


@each("pair", QUOTING)
def test_a_quoted_secret_is_in_nothing_that_is_kept_of_the_response(
    pair: tuple[CredentialField, CredentialField],
) -> None:
    asked, said = pair
    found = list(versions(asked, said))
    assert found
    for version in {found[0], found[-1]}:
        question = holding(asked, SECRET, tag=False)
        request = request_payload(question.entry.api_key, version, question)
        assert SECRET in request
        for quote in QUOTES:
            answer = holding(said, quote.encode(), tag=False)
            response = response_payload(question.entry.api_key, version, answer)
            assert SECRET in response
            for kept in kept_of(request, response):
                assert SECRET not in kept


def kept_of(request: bytes, response: bytes) -> Iterator[bytes]:
    """Yield everything that the tap, ``decode``, ``explain`` and request logs show about a pair."""
    yield from tapped(request, response)
    # The response is also cut off, or longer than its spec.
    for damaged in (response[:-1], response + SECRET):
        yield from tapped(request, damaged)
    asked = parse_request(request)
    header = parse_response(response, asked.api_key, asked.api_version)
    frame = WholeFrame(response, False, header, header.body_version)
    for part in explain_frame(frame, withheld=True):
        yield part.data
        yield repr(part.explanation).encode()
    made, version = message(header.message_name), header.body_version
    body = made.decode(frame.body, version)
    line = json.dumps(body.to_json(version)).encode()
    yield repr(read_body(line, made, version, show_credentials=False)).encode()
    assert withhold(body) > 0
    yield repr(body).encode()


def tapped(request: bytes, response: bytes) -> list[bytes]:
    conversation, withholding = Conversation(), CredentialMask()
    shown = [withholding.shown(request, conversation.request(request))]
    shown.append(withholding.shown(response, conversation.response(response)))
    assert [len(one) for one in shown] == [len(request), len(response)]
    return shown


def configured(name: str, value: str) -> Any:
    kind: Any = message("IncrementalAlterConfigsRequest")
    config = kind.AlterableConfig(name=name, value=value)
    return kind(resources=[kind.AlterConfigsResource(configs=[config])])


def told(text: str) -> Any:
    kind: Any = message("IncrementalAlterConfigsResponse")
    return kind(responses=[kind.AlterConfigsResourceResponse(error_code=40, error_message=text)])


ALTER: Final = 44


def test_the_tap_keeps_what_a_broker_says_of_a_request_that_holds_no_credential() -> None:
    request = request_payload(ALTER, 1, configured("retention.ms", "soon"))
    response = response_payload(ALTER, 1, told("Invalid value soon for configuration retention.ms"))
    assert tapped(request, response) == [request, response]


def test_what_holds_for_one_request_holds_for_no_other() -> None:
    conversation, withholding = Conversation(), CredentialMask()
    secret = configured(SECRET_NAME, SECRET.decode())
    plain = configured("retention.ms", "soon")
    requests = [
        request_payload(ALTER, 1, body, correlation_id=number)
        for number, body in enumerate([plain, secret, plain])
    ]
    for one in requests:
        withholding.shown(one, conversation.request(one))
    # The last response has no request, because an earlier response had the same id.
    for number, is_kept in ((1, False), (0, True), (2, True), (0, False)):
        response = response_payload(ALTER, 1, told("no: opensesame"), correlation_id=number)
        shown = withholding.shown(response, conversation.response(response))
        assert (shown == response) is is_kept


def test_a_request_that_never_is_answered_makes_no_memory_grow() -> None:
    conversation, withholding = Conversation(in_flight=10_000), CredentialMask()
    requests = [
        request_payload(ALTER, 1, configured("a", "b"), correlation_id=number)
        for number in range(1002)
    ]
    for one in requests:
        withholding.shown(one, conversation.request(one))
    # The two oldest requests are forgotten, so their responses are withheld.
    for number, is_kept in ((0, False), (1, False), (2, True), (1001, True)):
        response = response_payload(ALTER, 1, told("no"), correlation_id=number)
        shown = withholding.shown(response, conversation.response(response))
        assert (shown == response) is is_kept


@pytest.mark.parametrize("is_secret", [True, False])
def test_call_explains_a_text_unless_the_request_holds_a_credential(*, is_secret: bool) -> None:
    asked = configured(SECRET_NAME if is_secret else "retention.ms", SECRET.decode())
    request, response = (
        request_payload(ALTER, 1, asked),
        response_payload(ALTER, 1, told(QUOTES[0])),
    )
    sent, came = parse_request(request), parse_response(response, ALTER, 1)
    answer = BrokerAnswer(
        HostPort("b", 1), 1, asked, FramePayload(request, sent.body_offset), sent,
        response_version=1, response_header=came,
        response_frame=FramePayload(response, came.body_offset),
    )  # fmt: skip
    parts = [*explain_response(answer)]
    assert (QUOTES[0].encode() in parts[1].data) is not is_secret
    assert parts[1].withheld == is_secret
    # The caller's message is unchanged.
    assert SECRET.decode() in repr(asked)
