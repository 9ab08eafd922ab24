"""Send requests that no library sends, over plain sockets and with flexwire's own codec.

There are four clients. A future client sends a request header with a tagged field that no release
defines. A client with outdated metadata asks the wrong broker, and tagged fields in the response
identify the right broker. A client from 2013 uses version 0. The last client's process ends while
the client is writing a frame.
"""

from __future__ import annotations

import base64
import socket
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from flexwire.closeable import Closeable
from flexwire.codec import Message, message
from flexwire.demo.outcome import OutcomeRecorder
from flexwire.errors import FlexwireError
from flexwire.protocol import (
    FrameSplitter,
    parse_response,
    request_header_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.demo.outcome import ClientOutcome

_PART = "an unknown tagged field, a stale leader, version 0, a truncated frame"
_SECONDS = 60.0
_CHUNK = 65536
_FETCH, _LIST_OFFSETS, _METADATA, _FIND_COORDINATOR = 1, 2, 3, 10
_NOT_LEADER = 6
_TOPIC = "museum"
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"

UNKNOWN_TAG = 42
UNKNOWN_DATA = "tenant=köln".encode()
CUT_CLIENT_ID = "cut-off-client"


class RawConnection(Closeable):
    """A connection to one broker that sends requests and waits for each response."""

    def __init__(self, address: str, client_id: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), _SECONDS)
        self._splitter = FrameSplitter()
        self._client_id = client_id
        self._correlation_id = 0

    def request(
        self, api_key: int, name: str, api_version: int, body: dict[str, Any], **header: Any
    ) -> dict[str, Any]:
        """Send a request with a body in JSON form, and return the response in JSON form."""
        payload = self.payload(api_key, name, api_version, body, **header)
        self._socket.sendall(len(payload).to_bytes(4, "big") + payload)
        answer = self._receive()
        frame = parse_response(answer, api_key, api_version)
        if frame.correlation_id != self._correlation_id:
            raise FlexwireError(
                f"{name}Response contains correlation id {frame.correlation_id}, "
                f"expected {self._correlation_id}"
            )
        response = message(f"{name}Response").decode(
            answer[frame.body_offset :], frame.body_version
        )
        return response.to_json(frame.body_version)

    def payload(
        self, api_key: int, name: str, api_version: int, body: dict[str, Any], **header: Any
    ) -> bytes:
        """Return the bytes of a request that uses the next correlation id."""
        self._correlation_id += 1
        first: Message = message("RequestHeader").from_json(
            {
                "requestApiKey": api_key,
                "requestApiVersion": api_version,
                "correlationId": self._correlation_id,
                "clientId": self._client_id,
                **header,
            },
            request_header_version(api_key, api_version),
        )
        then = message(f"{name}Request").from_json(body, api_version)
        return first.encode(request_header_version(api_key, api_version)) + then.encode(api_version)

    def send_part(self, payload: bytes, length: int) -> None:
        """Send the length of a complete payload, but only the first bytes of the payload itself."""
        self._socket.sendall(len(payload).to_bytes(4, "big") + payload[:length])

    def _receive(self) -> bytes:
        while True:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise FlexwireError("the broker closed the connection instead of answering")
            if frames := self._splitter.feed(data):
                return frames[0]

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def run(bootstrap: str) -> ClientOutcome:
    """Send an unknown tag, a misdirected Fetch, version 0 requests, and a partial frame."""
    ledger = OutcomeRecorder("raw sockets", version("flexwire"), part=_PART)
    address = bootstrap.partition(",")[0]
    try:
        _send_unknown_tag(ledger, address)
        _ask_the_wrong_broker(ledger, address)
        _ask_as_in_2013(ledger, address)
        _break_off(ledger, address)
    except (FlexwireError, OSError) as error:
        return ledger.outcome(error=f"{type(error).__name__}: {error}")
    return ledger.outcome()


def _send_unknown_tag(ledger: OutcomeRecorder, address: str) -> None:
    tagged = {"tag": UNKNOWN_TAG, "data": base64.b64encode(UNKNOWN_DATA).decode()}
    with RawConnection(address, ledger.client_id("next-gen-client")) as connection:
        for _ in range(3):
            answer = _topic_metadata(connection, _unknownTaggedFields=[tagged])
    ledger.expect(len(answer["brokers"]) > 1, f"Metadata lists {len(answer['brokers'])} brokers")
    ledger.step(f"sent tagged field {UNKNOWN_TAG} in the header of 3 Metadata requests")


def _topic_metadata(connection: RawConnection, **header: Any) -> dict[str, Any]:
    body = {
        "topics": [{"topicId": _NO_TOPIC_ID, "name": _TOPIC}],
        "allowAutoTopicCreation": True,
        "includeTopicAuthorizedOperations": False,
    }
    return connection.request(_METADATA, "Metadata", 12, body, **header)


def _ask_the_wrong_broker(ledger: OutcomeRecorder, address: str) -> None:
    """Fetch from a broker that is not the leader. The response must identify the leader.

    The leader's address must be the same as in Metadata. Through a tap, this is the tap's own
    address; otherwise, the next request would bypass the tap.
    """
    client_id = ledger.client_id("stale-cache")
    with RawConnection(address, client_id) as connection:
        metadata = _topic_metadata(connection)
    addresses = _addresses(metadata["brokers"])
    topic = metadata["topics"][0]
    leader = topic["partitions"][0]["leaderId"]
    wrong = next(node for node in addresses if node != leader)
    with RawConnection(addresses[wrong], client_id) as connection:
        answer = connection.request(_FETCH, "Fetch", 16, _fetch(topic))
    partition = answer["responses"][0]["partitions"][0]
    advertised = _addresses(answer.get("nodeEndpoints", ())).get(leader)
    ledger.expect(
        partition["errorCode"] == _NOT_LEADER and advertised == addresses[leader],
        f"Fetch from the wrong broker: got error code {partition['errorCode']} and leader "
        f"{advertised}, expected error code {_NOT_LEADER} and leader {addresses[leader]}",
    )
    ledger.step("fetched from the wrong broker and learned which one is right")


def _addresses(brokers: Iterable[dict[str, Any]]) -> dict[int, str]:
    return {broker["nodeId"]: f"{broker['host']}:{broker['port']}" for broker in brokers}


def _fetch(topic: dict[str, Any]) -> dict[str, Any]:
    partition = {
        "partition": topic["partitions"][0]["partitionIndex"],
        "currentLeaderEpoch": -1,
        "fetchOffset": 0,
        "lastFetchedEpoch": -1,
        "logStartOffset": -1,
        "partitionMaxBytes": 1 << 20,
    }
    return {
        "maxWaitMs": 100,
        "minBytes": 1,
        "maxBytes": 1 << 20,
        "isolationLevel": 1,
        "sessionId": 0,
        "sessionEpoch": -1,
        "topics": [{"topicId": topic["topicId"], "partitions": [partition]}],
        "forgottenTopicsData": [],
        "rackId": "rack-b",
    }


def _ask_as_in_2013(ledger: OutcomeRecorder, address: str) -> None:
    client_id = ledger.client_id("museum-piece")
    with RawConnection(address, client_id) as connection:
        answer = connection.request(_METADATA, "Metadata", 0, {"topics": [{"name": _TOPIC}]})
        connection.request(_FIND_COORDINATOR, "FindCoordinator", 0, {"key": "visitors"})
    brokers = _addresses(answer["brokers"])
    partition = answer["topics"][0]["partitions"][0]
    wanted = {
        "partitionIndex": partition["partitionIndex"],
        "timestamp": -1,
        "maxNumOffsets": 1,
    }
    body = {"replicaId": -1, "topics": [{"name": _TOPIC, "partitions": [wanted]}]}
    with RawConnection(brokers[partition["leaderId"]], client_id) as connection:
        offsets = connection.request(_LIST_OFFSETS, "ListOffsets", 0, body)
    code = offsets["topics"][0]["partitions"][0]["errorCode"]
    ledger.expect(code == 0, f"ListOffsets v0 returned error code {code}")
    ledger.step("sent Metadata, FindCoordinator and ListOffsets requests in version 0")


def _break_off(ledger: OutcomeRecorder, address: str) -> None:
    body = {"topics": [{"name": f"topic-{number}"} for number in range(50)]}
    with RawConnection(address, ledger.client_id(CUT_CLIENT_ID)) as connection:
        payload = connection.payload(_METADATA, "Metadata", 1, body)
        connection.send_part(payload, len(payload) // 2)
    ledger.step(f"sent {len(payload) // 2} of the {len(payload)} bytes of a frame")
