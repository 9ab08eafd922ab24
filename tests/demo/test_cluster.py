from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.demo.cluster import MockCluster
from flexwire.errors import FlexwireError
from flexwire.protocol import FrameSplitter, parse_response, request_header_version

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

METADATA, API_VERSIONS = 3, 18
UNSUPPORTED_VERSION = 35
SECONDS = 5.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as started:
        yield started


def ask(address: tuple[str, int], api_key: int, name: str, version: int, body: Any) -> Any:
    """Send one request on a connection of its own; return the response, decoded strictly."""
    with socket.create_connection(address, SECONDS) as connection:
        return ask_on(connection, api_key, name, version, body)


def ask_on(connection: socket.socket, api_key: int, name: str, version: int, body: Any) -> Any:
    head = {
        "requestApiKey": api_key,
        "requestApiVersion": version,
        "correlationId": 7,
        "clientId": "test",
    }
    header_version = request_header_version(api_key, version)
    payload = message("RequestHeader").from_json(head, header_version).encode(header_version)
    payload += message(f"{name}Request").from_json(body, version).encode(version)
    connection.sendall(len(payload).to_bytes(4, "big") + payload)
    splitter = FrameSplitter()
    while not (frames := splitter.feed(connection.recv(65536))):
        pass
    frame = parse_response(frames[0], api_key, version)
    assert frame.correlation_id == 7
    return message(f"{name}Response").decode(frames[0][frame.body_offset :], frame.body_version)


def metadata_body(version: int, topic: str) -> dict[str, Any]:
    body: dict[str, Any] = {"topics": [{"name": topic}]}
    if version >= 4:
        body["allowAutoTopicCreation"] = True
    if version >= 8:
        body["includeTopicAuthorizedOperations"] = False
    if 8 <= version <= 10:
        body["includeClusterAuthorizedOperations"] = False
    if version >= 10:
        body["topics"][0]["topicId"] = "AAAAAAAAAAAAAAAAAAAAAA"
    return body


@pytest.mark.parametrize("version", range(13))
def test_every_version_of_metadata_names_the_three_advertised_brokers(
    cluster: MockCluster, version: int
) -> None:
    topic = f"asked-in-{version}"
    cluster.create_topic(topic, 5)
    answer = ask(cluster.addresses[1], METADATA, "Metadata", version, metadata_body(version, topic))
    brokers = {one.node_id: (one.host, one.port) for one in answer.brokers}
    assert brokers == dict(enumerate(cluster.addresses, start=1))
    assert [len(one.partitions) for one in answer.topics] == [5]


@pytest.mark.parametrize("version", [3, 4])
def test_api_versions_above_2_falls_back_as_kip_511_says(
    cluster: MockCluster, version: int
) -> None:
    body = {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}
    answer = ask(cluster.addresses[0], API_VERSIONS, "ApiVersions", version, body)
    assert answer.error_code == UNSUPPORTED_VERSION
    assert [(one.api_key, one.min_version, one.max_version) for one in answer.api_keys] == [
        (API_VERSIONS, 0, 2)
    ]


def test_the_versions_that_the_mock_misreads_are_not_offered(cluster: MockCluster) -> None:
    answer = ask(cluster.addresses[2], API_VERSIONS, "ApiVersions", 2, {})
    offered = {one.api_key: one.max_version for one in answer.api_keys}
    assert (offered[11], offered[13], offered[14]) == (5, 2, 3)


def test_a_topic_is_created_once(cluster: MockCluster) -> None:
    cluster.create_topic("once", 1)
    with pytest.raises(FlexwireError, match="topic 'once' was not created"):
        cluster.create_topic("once", 1)


def test_bytes_that_are_no_frame_end_their_connection_only(cluster: MockCluster) -> None:
    with socket.create_connection(cluster.addresses[0], SECONDS) as bad:
        bad.sendall(b"\xff" * 64)
        assert bad.recv(1) == b""
    assert ask(cluster.addresses[0], API_VERSIONS, "ApiVersions", 0, {}).error_code == 0


@pytest.mark.long
def test_a_closed_cluster_takes_no_connections() -> None:
    with MockCluster() as cluster:
        address = cluster.addresses[0]
        idle = socket.create_connection(address, SECONDS)
        ask_on(idle, API_VERSIONS, "ApiVersions", 0, {})
    with idle:
        assert idle.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, SECONDS)
    cluster.close()  # a second call does nothing


@pytest.mark.long
def test_a_cluster_starts_inside_a_running_event_loop() -> None:
    async def start() -> int:
        with MockCluster() as cluster:
            return len(cluster.addresses)

    assert asyncio.run(start()) == 3
