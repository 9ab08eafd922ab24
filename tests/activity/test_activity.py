"""The list of connections equals an independent count, contains no secrets, and is bounded."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.activity.connections import (
    MOST_COUNTED_TOPICS,
    MOST_TOPICS,
    MOST_WAITING,
    ActivityTable,
    ConnectionActivity,
)
from flexwire.activity.growing import GrowingCaptures
from flexwire.activity.listing import COLUMNS, find_rows, to_cells, to_form
from flexwire.activity.reading import ActivityReader
from flexwire.capture.files.links import read_segments
from flexwire.capture.files.packets import Segment
from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.errors import FlexwireError
from flexwire.schema.spec import MessageType
from flexwire.wire.segment_layout import RST
from flexwire.wire.varint import uuid_text
from tests.activity.made import CAPTURES, capture_files, frame_of, listed
from tests.capture.traffic import CLIENT, CONNECTION, SERVER, farewell, framed, handshake, tcp
from tests.each import each
from tests.protocol.payloads import make, request_payload, response_payload
from tests.schema.trunk import GET_TELEMETRY, PUSH_TELEMETRY
from tests.searching import times

if TYPE_CHECKING:
    from flexwire.capture.files.packets import Direction

METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE = 3, 36, 17


@each("name", CAPTURES)
def test_bytes_and_messages_are_those_that_other_readers_count(name: str) -> None:
    files = capture_files(name)
    reader = listed(files)
    counted: Counter[str] = Counter()
    assemblers: dict[str, FrameAssembler] = {}
    for file in files:
        for segment in read_segments(file):
            if isinstance(segment, Segment):
                key = "|".join(sorted((segment.source, segment.destination)))
                assemblers.setdefault(key, FrameAssembler(endless=True)).push(segment)
    ended = []
    for assembler in assemblers.values():
        assembler.finish()
        ended += [one for one in assembler.ended() if one.is_kafka]
    for one in ended:
        counted["sent"] += one.request_bytes
        counted["received"] += one.response_bytes
    rows = list(reader)
    assert rows
    assert {row.connection for row in rows} <= {one.connection for one in ended}
    assert sum(row.request_bytes or 0 for row in rows) == counted["sent"]
    assert sum(row.response_bytes or 0 for row in rows) == counted["received"]
    messages = [one for one in read_messages(files) if isinstance(one, CapturedMessage)]
    kinds = Counter(one.type for one in messages)
    damaged = sum(row.damaged_frames for row in rows)
    requests = sum(row.requests for row in rows)
    assert kinds[MessageType.REQUEST] <= requests <= kinds[MessageType.REQUEST] + damaged


def test_a_conversation_is_listed_with_its_client_topics_error_and_waiting() -> None:
    table = ActivityTable()
    software = make(
        "ApiVersionsRequest", client_software_name="billing-app", client_software_version="1.2"
    )
    topics = [make("MetadataRequest").__class__.MetadataRequestTopic(name="orders")]
    asked = request_payload(METADATA, 4, make("MetadataRequest", topics=topics))
    refused = make("MetadataResponse")
    refused.topics = [refused.__class__.MetadataResponseTopic(error_code=3, name="orders")]
    said: list[tuple[Direction, bytes]] = [
        ("request", request_payload(18, 3, software, correlation_id=1)),
        ("response", response_payload(18, 3, make("ApiVersionsResponse"), correlation_id=1)),
        ("request", asked),
        ("response", response_payload(METADATA, 4, refused)),
        ("request", request_payload(METADATA, 4, make("MetadataRequest"), client_id="later")),
    ]
    for at, (direction, payload) in enumerate(said):
        row = table.see(frame_of(direction, payload, at * 1_000_000))
    assert (row.client, row.broker, row.client_id) == (CLIENT, SERVER, "later")
    assert (row.software_name, row.software_version) == ("billing-app", "1.2")
    assert (row.requests, row.responses, row.damaged_frames) == (3, 2, 0)
    assert list(row.topics) == ["orders"]
    assert row.last_error == ("UNKNOWN_TOPIC_OR_PARTITION", "Metadata", 3_000_000)
    assert (row.waiting, row.oldest) == (1, ("Metadata", 4_000_000))
    sent = sum(len(framed(payload)) for direction, payload in said if direction == "request")
    assert row.request_bytes == sent
    # A connection is listed only after some of its traffic is recognized as Kafka.
    assert list(table) == []
    row.is_kafka = True
    assert list(table) == [row]
    cells = to_cells(row, 6_000_000)
    assert cells["waiting"] == "1: Metadata, 2.0 s"
    assert cells["last-error"] == "UNKNOWN_TOPIC_OR_PARTITION (Metadata, 3.0 s)"


def test_a_client_instance_is_known_whoever_names_it() -> None:
    asked = make("GetTelemetrySubscriptionsRequest")
    given, assigned = uuid.UUID(int=7), uuid.UUID(int=8)
    told = make("GetTelemetrySubscriptionsResponse", client_instance_id=assigned)
    pushed = make("PushTelemetryRequest", client_instance_id=given)
    table = ActivityTable()
    sent: list[tuple[Direction, bytes]] = [
        ("request", request_payload(GET_TELEMETRY, 0, asked, correlation_id=1)),
        ("response", response_payload(GET_TELEMETRY, 0, told, correlation_id=1)),
        ("request", request_payload(PUSH_TELEMETRY, 0, pushed, correlation_id=2)),
        ("request", request_payload(METADATA, 4, make("MetadataRequest"))),
    ]
    seen = [table.see(frame_of(*one)).instance_id for one in sent]
    assert seen == [None] + [uuid_text(assigned)] * 3
    cells = to_cells(next(iter(listed_rows(table))), 0)
    assert cells["instance-id"] == uuid_text(assigned)


def listed_rows(table: ActivityTable) -> list[ConnectionActivity]:
    """Mark the connection `CONNECTION` as Kafka, and return all connections of the table."""
    row = table.find(CONNECTION)
    assert row is not None
    row.is_kafka = True
    return list(table)


def test_credentials_and_other_protocols_are_not_listed() -> None:
    secret = b"\x00alice\x00open-sesame"
    login = make("SaslAuthenticateRequest", auth_bytes=secret)
    mechanism = make("SaslHandshakeRequest", mechanism="PLAIN")
    sent = framed(request_payload(SASL_HANDSHAKE, 1, mechanism)) + framed(
        request_payload(SASL_AUTHENTICATE, 2, login)
    )
    old = framed(request_payload(SASL_HANDSHAKE, 0, mechanism)) + framed(secret)
    for stream in (sent, old, b"POST /login password=open-sesame " * 40):
        reader = ActivityReader()
        for segment in [*handshake(), tcp(CLIENT, 1000, stream)]:
            reader.push(segment)
        reader.finish()
        shown = [to_form(row) for row in reader] + [to_cells(row, 0) for row in reader]
        assert bool(shown) == (b"POST" not in stream)
        assert b"sesame" not in json.dumps(shown).encode()


def test_a_connection_s_end_is_listed_and_then_forgotten() -> None:
    ping = framed(request_payload(METADATA, 4, make("MetadataRequest")))
    for end, expected in (
        (farewell(1000 + len(ping), 5000), ("client", False)),
        ([tcp(SERVER, 5000, flags=RST)], ("broker", True)),
    ):
        reader = ActivityReader()
        for segment in [*handshake(), tcp(CLIENT, 1000, ping)]:
            reader.push(segment)
        assert [(row.is_open, row.closed_by) for row in reader] == [(True, None)]
        for segment in end:
            reader.push(segment)
        [row] = reader
        assert (row.is_open, row.closed_by, row.is_reset) == (False, *expected)
        reader.table.forget_closed()
        assert list(reader) == []
        # A connection's last acknowledgement does not start another connection.
        reader.push(tcp(CLIENT, 1001 + len(ping)))
        assert len(reader.table) == 0


def test_connections_topics_and_waiting_requests_are_bounded() -> None:
    ping = framed(request_payload(METADATA, 4, make("MetadataRequest")))
    reader = ActivityReader(most=10)
    for port in range(100):
        for segment in [*handshake(), tcp(CLIENT, 1000, ping)]:
            ends = {CLIENT: f"10.0.0.9:{port + 1}", SERVER: SERVER}
            reader.push(
                Segment(
                    segment.timestamp_us,
                    ends[segment.source],
                    ends[segment.destination],
                    segment.sequence,
                    segment.acknowledgment,
                    segment.flags,
                    segment.payload,
                )
            )
    assert len(list(reader)) == 10
    assert reader.table.left_out == 90
    table = ActivityTable(most=3)
    struct = make("MetadataRequest").__class__.MetadataRequestTopic
    for number in range(MOST_COUNTED_TOPICS + 50):
        topics = [struct(name=f"topic-{number}")]
        payload = request_payload(
            METADATA, 4, make("MetadataRequest", topics=topics), correlation_id=number
        )
        row = table.see(frame_of("request", payload))
    assert (len(row.topics), row.more_topics) == (MOST_TOPICS, MOST_COUNTED_TOPICS - MOST_TOPICS)
    assert row.waiting == MOST_WAITING
    for number in range(10):
        table.see(frame_of("request", payload, connection=f"10.0.0.9:{number + 1}>{SERVER}"))
    assert len(table) == 3


def test_rows_are_ordered_and_filtered() -> None:
    rows = list(listed(capture_files("everything")))
    for name, column in COLUMNS.items():
        keys = [column.key(row) for row in find_rows(rows, (), name)]
        assert keys == sorted(keys, reverse=column.is_number), name
    assert [row.client_id for row in find_rows(rows, ("client-0",), "bytes")] == ["client-0"] * 2
    for text, found in {
        "client-*": 8,
        "10.2.0.7:*": 8,
        "*7:40004": 2,
        "orders": 1,
        "no": 0,
    }.items():
        assert len(find_rows(rows, (text,), "client")) == found, text
    assert {row.software_name for row in find_rows(rows, ("made-up 1.2",), "client")} == {"made-up"}
    both = find_rows(rows, ("client-3", "Heartbeat"), "client")
    assert [row.connection for row in both] == ["10.2.0.7:40001>10.0.0.9:9093#2"]


@settings(max_examples=times(60))
@given(st.data())
def test_a_damaged_capture_gives_rows_or_our_errors(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(capture_files("strange") + capture_files("hosts")))
    raw = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as place:
        damaged = Path(place) / file.name
        damaged.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
        try:
            reader = ActivityReader()
            captures = GrowingCaptures([damaged])
            reader.read(captures.poll(must_exist=True))
            captures.unfinished()
            reader.finish()
        except FlexwireError:
            return
        for row in reader:
            json.dumps(to_form(row))
            assert all("\x1b" not in cell for cell in to_cells(row, 0).values())
