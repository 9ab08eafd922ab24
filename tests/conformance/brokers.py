"""A small broker that answers as Apache Kafka does, and the deviations planted in it.

It answers from the catalog, with the error responses of `flexwire.protocol`. The broker does not
know what a conformance run sends or expects.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flexwire.codec import Message, message
from flexwire.errors import ArgumentError, CodecError, FrameError
from flexwire.protocol import parse_response, read_request
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.audit.evidence import offered_versions
from flexwire.protocol.error_responses import error_response
from flexwire.protocol.frames import SENT_FRAME_LIMIT
from flexwire.protocol.headers import parse_correlation_id
from tests.net.answering import served
from tests.net.releases import versions_answer
from tests.protocol.payloads import frame, response_payload

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping

    from flexwire.protocol import RequestFrame

    Plant = Callable[[RequestFrame, bytes, bytes], bytes | None]

RELEASE = "4.4.0"
API_VERSIONS, METADATA = api_key_of("ApiVersions"), api_key_of("Metadata")
UNKNOWN_TOPIC = 3
SHORTEST = 8
SILENCE = b""


def soundly(_: RequestFrame, __: bytes, answer: bytes) -> bytes | None:
    """Plant nothing."""
    return frame(answer)


def offering(ranges: Mapping[int, tuple[int, int] | None], plant: Plant = soundly) -> Plant:
    """Return a planted deviation that offers other versions of some APIs, or no APIs."""

    def planted(request: RequestFrame, payload: bytes, answer: bytes) -> bytes | None:
        if request.api_key != API_VERSIONS:
            return plant(request, payload, answer)
        header = parse_response(answer, request.api_key, request.api_version)
        kind: Any = message("ApiVersionsResponse")
        body = kind.decode(answer[header.body_offset :], header.body_version)
        body.api_keys = [one for one in body.api_keys if ranges.get(one.api_key, ()) is not None]
        for one in body.api_keys:
            if lowest_and_highest := ranges.get(one.api_key):
                one.min_version, one.max_version = lowest_and_highest
        return frame(answer[: header.body_offset] + body.encode(header.body_version))

    return planted


def a_byte_too_many(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
    """Return a planted deviation in one version of Metadata."""
    is_it = (request.api_name, request.api_version) == ("Metadata", 8)
    return frame(answer + b"\0" if is_it else answer)


def response(request: RequestFrame, body: Message) -> Any:
    """Return the body of a valid response: the requested names, with errors in error fields."""
    name = f"{request.api_name}Response"
    if request.api_name == "DescribeQuorum":
        kind: Any = message(name)
        return kind.of(topics=[{"topic_name": "__cluster_metadata", "partitions": []}])
    try:
        return error_response(body, request.api_version, UNKNOWN_TOPIC)
    except ArgumentError:
        return message(name)()


class KafkaLike:
    """Read, answer and refuse requests as a release does; ``plant`` changes the sent bytes.

    A plant returns the bytes to send, `SILENCE` for none, or None to close. The plant receives the
    request and the request's payload. For a frame that cannot be read, it receives None, and
    ``of_damaged`` is the response.
    """

    def __init__(self, plant: Plant = soundly, of_damaged: bytes | None = None) -> None:
        self.plant = plant
        self.of_damaged = of_damaged
        self.asked: list[tuple[str, int, bytes]] = []
        self.closes = False
        """True if every request is refused from now on."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while prefix := await reader.readexactly(4):
            length = int.from_bytes(prefix, "big", signed=True)
            if not SHORTEST <= length <= SENT_FRAME_LIMIT:
                writer.write(self.of_damaged or b"")
                return
            sent = self.answer(await reader.readexactly(length))
            if sent is None or self.closes:
                return
            writer.write(sent)
            await writer.drain()

    def answer(self, payload: bytes) -> bytes | None:
        """Return the bytes to send; None closes the connection."""
        try:
            request = read_request(payload)
        except (FrameError, CodecError):
            return self.of_damaged
        self.asked.append((request.api_name, request.api_version, payload))
        version = request.api_version
        if request.api_key == API_VERSIONS and version not in offered_versions(18, RELEASE):
            return self.plant(request, payload, versions_answer(RELEASE, request))
        if version not in offered_versions(request.api_key, RELEASE):
            return None
        try:
            kind = message(request.message_name)
            body = kind.decode(payload[request.body_offset :], version, lenient=True)
        except CodecError:
            return self.of_damaged
        if request.api_key == API_VERSIONS:
            answer = versions_answer(RELEASE, request)
        else:
            answer = response_payload(
                request.api_key,
                version,
                response(request, body),
                correlation_id=request.correlation_id,
            )
        return self.plant(request, payload, answer)


@contextmanager
def kafka_like(
    plant: Plant = soundly, of_damaged: bytes | None = None
) -> Iterator[tuple[str, KafkaLike]]:
    """Serve a broker; yield its address and the broker."""
    broker = KafkaLike(plant, of_damaged)
    with served(broker) as address:
        yield str(address), broker


def with_correlation_id(payload: bytes, add: int) -> bytes:
    """Return the payload of a response with another correlation id."""
    told = parse_correlation_id(payload) + add
    return told.to_bytes(4, "big", signed=True) + payload[4:]
