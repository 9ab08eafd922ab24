"""The demo's traffic passes through a tap, and the capture agrees with clients and brokers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.links import Segment, read_segments
from flexwire.codec import message
from flexwire.demo.clients import CLIENTS
from flexwire.demo.clients.raw import CUT_CLIENT_ID, UNKNOWN_DATA, UNKNOWN_TAG
from flexwire.demo.content import make_samples
from flexwire.demo.run import DemoTraffic, record_traffic
from flexwire.protocol import Conversation, FrameSplitter, RequestFrame, parse_response
from flexwire.records import Compression, decode_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from flexwire.demo.content import SampleRecord
    from flexwire.records import RecordBatch

pytestmark = pytest.mark.slow


@dataclass
class Seen:
    """All messages in a capture, decoded strictly: a frame that cannot be decoded is an error."""

    traffic: DemoTraffic
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    requests: list[RequestFrame] = field(default_factory=list)
    bodies: list[tuple[str, Any]] = field(default_factory=list)
    cut_off: list[bytes] = field(default_factory=list)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    traffic = record_traffic(tmp_path_factory.mktemp("demo"))
    seen = Seen(traffic)
    connections: dict[frozenset[str], tuple[str, Conversation]] = {}
    splitters: dict[tuple[str, str], FrameSplitter] = defaultdict(FrameSplitter)
    for segment in _segments(traffic.captures):
        way = segment.source, segment.destination
        client, conversation = connections.setdefault(
            frozenset(way), (segment.source, Conversation())
        )
        for payload in splitters[way].feed(bytes(segment.payload)):
            if segment.source == client:
                _take_request(seen, conversation, payload)
            else:
                _take_response(seen, conversation, payload)
    seen.cut_off = [one.pending for one in splitters.values() if one.pending]
    return seen


def _segments(captures: tuple[Path, ...]) -> Iterator[Segment]:
    for path in captures:
        for segment in read_segments(path):
            assert isinstance(segment, Segment)
            if segment.payload:
                yield segment


def _take_request(seen: Seen, conversation: Conversation, payload: bytes) -> None:
    request = conversation.request(payload).request
    assert request is not None
    body = message(request.message_name).decode(payload[request.body_offset :], request.api_version)
    seen.requests.append(request)
    seen.versions[request.api_name].add(request.api_version)
    seen.bodies.append((request.message_name, body))


def _take_response(seen: Seen, conversation: Conversation, payload: bytes) -> None:
    request = conversation.response(payload).request
    assert request is not None
    frame = parse_response(payload, request.api_key, request.api_version)
    body = message(frame.message_name).decode(payload[frame.body_offset :], frame.body_version)
    seen.bodies.append((frame.message_name, body))


def test_every_client_reads_back_through_the_tap_what_it_wrote(seen: Seen) -> None:
    assert seen.traffic.failures == []
    for outcome in seen.traffic.clients[: len(CLIENTS)]:
        assert outcome.produced == outcome.consumed, outcome.client
        assert outcome.did, outcome.client


def test_the_clients_together_write_every_compression_and_have_many_names(seen: Seen) -> None:
    clients = seen.traffic.clients[: len(CLIENTS)]
    steps = " ".join(step for one in clients for step in one.did)
    assert all(codec in steps for codec in ("none", "gzip", "snappy", "lz4", "zstd"))
    names = [name for one in clients for name in one.client_ids]
    assert len(names) == len(set(names)) >= 20
    assert sum(one.produced for one in clients) >= 1000


def test_every_frame_decodes_but_for_the_one_that_is_cut_off(seen: Seen) -> None:
    assert len(seen.bodies) == sum(tap.requests + tap.responses for tap in seen.traffic.taps)
    assert len(seen.cut_off) == sum(tap.broken_off for tap in seen.traffic.taps) == 1
    assert CUT_CLIENT_ID.encode() in seen.cut_off[0]


def test_the_capture_holds_every_record_in_both_directions_and_every_compression(
    seen: Seen,
) -> None:
    written, read = set[_Record](), set[_Record]()
    compressions = set()
    for name, body in seen.bodies:
        if name == "ProduceRequest":
            for batch in _batches(one for topic in body.topic_data for one in topic.partition_data):
                compressions.add(batch.compression)
                written.update(_records(batch))
        elif name == "FetchResponse":
            for batch in _batches(one for topic in body.responses for one in topic.partitions):
                read.update(_records(batch))
    # These are sets, because a client may send or fetch a record again. Records in transactions are
    # not consumed.
    in_transactions = {_record(one) for one in make_samples("ledger", 30)}
    assert in_transactions <= written
    assert written - in_transactions == read
    assert len(read) > 1000
    assert compressions == set(Compression)


_Record = tuple[bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


def _record(one: SampleRecord) -> _Record:
    return one.key, one.value, tuple((name.encode(), content) for name, content in one.headers)


def _records(batch: RecordBatch) -> Iterator[_Record]:
    return ((one.key, one.value, tuple(one.headers)) for one in batch.records)


def _batches(partitions: Iterable[Any]) -> Iterator[RecordBatch]:
    return (batch for one in partitions if one.records for batch in decode_batches(one.records))


def test_old_and_new_versions_of_the_same_apis_are_seen(seen: Seen) -> None:
    assert min(seen.versions["Metadata"]) == 0
    assert max(seen.versions["Metadata"]) >= 12
    for api in ("Produce", "Fetch", "ListOffsets", "JoinGroup", "OffsetCommit", "ApiVersions"):
        assert len(seen.versions[api]) >= 3, api
    assert {"ConsumerGroupHeartbeat", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"} <= set(
        seen.versions
    )


def test_the_unknown_tagged_field_is_in_the_capture(seen: Seen) -> None:
    headers: list[Any] = [one.header for one in seen.requests]
    tagged = [one for one in headers if one.unknown_tagged_fields]
    assert {one.client_id for one in tagged} == {"next-gen-client"}
    assert [one.unknown_tagged_fields for one in tagged] == [{UNKNOWN_TAG: UNKNOWN_DATA}] * 3


def test_known_tagged_fields_are_seen(seen: Seen) -> None:
    told = [body for name, body in seen.bodies if name == "FetchResponse" and body.node_endpoints]
    assert told
    assert told[0].responses[0].partitions[0].current_leader.leader_id > 0


@pytest.mark.long
def test_a_second_demo_replaces_the_capture_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexwire.demo.run.CLIENTS", ("raw",))
    kept = tmp_path / "someone-else.pcapng"
    kept.touch()
    first = record_traffic(tmp_path)
    second = record_traffic(tmp_path)
    assert {path.name for path in first.captures} == {path.name for path in second.captures}
    assert set(tmp_path.iterdir()) == {kept, *second.captures}
