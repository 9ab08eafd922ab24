"""A stamped request consists of the client's bytes and the tags. Other requests pass unchanged."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from flexwire.capture.files.comments import MOST_HEADER_TAGS, read_stamps, stamp_comment
from flexwire.capture.files.links import read_segments
from flexwire.capture.files.packets import UnreadableBytes
from flexwire.capture.reassembly.segments import SegmentColumns, SegmentReader
from flexwire.cli.app import app
from flexwire.errors import ArgumentError
from flexwire.protocol import Conversation, parse_request, request_header_version
from flexwire.schema.catalog import catalog
from flexwire.storage.file_search import list_captures
from flexwire.survey.request import FileMarks, read_marks
from flexwire.tap import TapStatistics
from flexwire.tap.header_stamps import (
    MOST_VALUE_BYTES,
    HeaderTag,
    StampConfig,
    StampedRequest,
    Stamper,
    parse_header_tag,
)
from tests.each import each
from tests.net.broker import (
    CHUNK_BYTES,
    LOOPBACK,
    Broker,
    captured,
    connected,
    run,
    serving,
    settled,
    tapped,
)
from tests.net.test_relay import answering, asking
from tests.protocol.payloads import frame, make, request_payload

if TYPE_CHECKING:
    from pathlib import Path

METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 3, 17, 18, 36
OURS = {10042: b"forwarded", 20000: b"\x00\xff"}
STAMPING = StampConfig([HeaderTag(20000, b"\x00\xff"), HeaderTag(10042, "forwarded")])
CLIENT = "10.0.0.9:50000"

tags = st.dictionaries(
    st.one_of(st.integers(0, 9_999), st.integers(10_043, 2**31 - 1)), st.binary(max_size=40)
)


def stamped(payload: bytes, stamping: StampConfig = STAMPING) -> StampedRequest:
    stamper = Stamper(stamping, CLIENT, 7, new_trace_id=lambda: "0" * 32)
    return stamper.stamp(payload, Conversation().request(payload))


@given(
    sent=tags,
    body=st.binary(max_size=60),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.one_of(st.none(), st.text(max_size=20)),
)
@example(sent={}, body=b"", correlation_id=0, client_id="")
@example(sent=dict.fromkeys(range(130), b"x" * 200), body=b"", correlation_id=0, client_id=None)
def test_a_stamped_request_has_its_tags_and_ours_and_else_what_it_was(
    sent: dict[int, bytes], body: bytes, correlation_id: int, client_id: str | None
) -> None:
    sent.pop(20000, None)
    payload = request_payload(
        METADATA,
        12,
        body,
        correlation_id=correlation_id,
        client_id=client_id,
        unknown_tagged_fields=sent,
    )
    new, added, reason = stamped(payload)
    assert (added, reason) == (OURS, None)
    # The strict reader accepts only ascending tags.
    old, read = parse_request(payload), parse_request(new)
    fields: Any = read.header
    assert fields.unknown_tagged_fields == sent | OURS
    assert new[read.body_offset :] == body
    fields.unknown_tagged_fields = sent
    assert fields.encode(2) == payload[: old.body_offset]


@each("api_key", catalog().api_keys())
def test_every_flexible_version_is_stamped_and_no_other(api_key: int) -> None:
    name = parse_request(request_payload(api_key, 0)).message_name
    for version in catalog().entry(name).versions:
        payload = request_payload(api_key, version)
        reason = stamped(payload).reason
        if api_key in {SASL_HANDSHAKE, SASL_AUTHENTICATE}:
            assert reason == "unstamped_sasl"
        else:
            is_flexible = request_header_version(api_key, version) == 2
            assert reason == (None if is_flexible else "unstamped_not_flexible"), (name, version)


@given(
    st.one_of(
        st.binary(max_size=80),
        st.binary(max_size=40).map(bytes.fromhex("0003 000c 00000001").__add__),
    )
)
@example(bytes.fromhex("0003 000c 00000001 ffff 8000"))
@example(bytes.fromhex("0003 000c 00000001 fffe 00"))
@example(bytes.fromhex("0003 000c 00000001 0000 01 05 8000"))
def test_any_bytes_are_stamped_or_pass_as_they_are(payload: bytes) -> None:
    new, added, reason = stamped(payload)
    if reason is None:
        assert added == OURS
        read = parse_request(new)
        fields: Any = read.header
        for tag in OURS:
            del fields.unknown_tagged_fields[tag]
        assert fields.encode(read.header_version) + new[read.body_offset :] == payload
    else:
        assert (new, added) == (payload, {})


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (request_payload(METADATA, 12, unknown_tagged_fields={10042: b"x"}), "tag_taken"),
        (request_payload(METADATA, 12, unknown_tagged_fields={20000: b""}), "tag_taken"),
        (request_payload(METADATA, 99), "not_flexible"),
        (request_payload(API_VERSIONS, 99), "not_flexible"),
        # The count 0 takes two bytes: Kafka reads that, but no client writes it.
        (bytes.fromhex("0003 000c 00000001 ffff 8000"), "sasl"),
        # The same tag twice, which only lenient readers accept.
        (bytes.fromhex("0003 000c 00000001 ffff 02 0500 0500"), "sasl"),
        (b"n,,n=alice,r=abc", "sasl"),
    ],
)
def test_what_is_not_stamped_has_its_reason(payload: bytes, reason: str) -> None:
    assert stamped(payload) == (payload, {}, f"unstamped_{reason}")


def test_every_reason_is_a_count_of_the_tap() -> None:
    statistics = TapStatistics()
    names = [one.name for one in dataclasses.fields(TapStatistics) if "stamped" in one.name]
    assert len(names) == 5
    statistics.count_stamped(None if name == "stamped" else name for name in names)
    assert [getattr(statistics, name) for name in names] == [1] * len(names)


@pytest.mark.parametrize("room", [0, 1])
def test_no_request_is_stamped_beyond_what_a_broker_takes(room: int) -> None:
    payload = request_payload(METADATA, 12, bytes(100))
    most = len(stamped(payload).payload)
    found = stamped(payload, StampConfig([*STAMPING.tags], most - room))
    assert found.reason == ("unstamped_too_large" if room else None)


def test_after_raw_tokens_of_sasl_nothing_is_touched() -> None:
    stamper, conversation = Stamper(STAMPING, CLIENT, 7), Conversation()
    payloads = [
        request_payload(API_VERSIONS, 3),
        request_payload(SASL_HANDSHAKE, 0, make("SaslHandshakeRequest", mechanism="PLAIN")),
        b"\0user\0password",
        request_payload(METADATA, 12),
        request_payload(API_VERSIONS, 3),
    ]
    reasons = [stamper.stamp(one, conversation.request(one)).reason for one in payloads]
    assert reasons == [None, *["unstamped_sasl"] * 4]


def test_frames_of_sasl_pass_and_what_follows_is_stamped() -> None:
    stamper, conversation = Stamper(STAMPING, CLIENT, 7), Conversation()
    payloads = [
        request_payload(SASL_HANDSHAKE, 1, make("SaslHandshakeRequest", mechanism="PLAIN")),
        request_payload(SASL_AUTHENTICATE, 2, make("SaslAuthenticateRequest", auth_bytes=b"\0u\0")),
        request_payload(METADATA, 12),
    ]
    reasons = [stamper.stamp(one, conversation.request(one)).reason for one in payloads]
    assert reasons == ["unstamped_sasl", "unstamped_sasl", None]


def test_placeholders_stand_for_the_connection_and_the_request() -> None:
    stamping = StampConfig([parse_header_tag("10042={client} as {connection}: {trace_id} {else}")])
    payload = request_payload(METADATA, 12)
    assert stamped(payload, stamping).added == {
        10042: f"{CLIENT} as 7: {'0' * 32} {{else}}".encode()
    }
    stamper = Stamper(StampConfig([HeaderTag(10042, "{trace_id}")]), CLIENT, 7)
    values = {
        stamper.stamp(payload, Conversation().request(payload)).added[10042] for _ in range(9)
    }
    assert len(values) == 9
    assert {len(bytes.fromhex(value.decode())) for value in values} == {16}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9999=x", "10000"),
        ("2147483648=x", "got 2147483648"),
        ("10042", "NUMBER="),
        ("=x", "NUMBER="),
        ("1e5=x", "NUMBER="),
        ("99999999999999=x", "NUMBER="),
        ("10042=hex:0", "NUMBER="),
        ("10042=hex:zz", "NUMBER="),
        ("10042=\udcff", "NUMBER="),
        ("10042=" + "x" * 257, "at most 256 bytes, got 257"),
        ("10042=" + "é" * 129, "at most 256 bytes, got 258"),
        ("10042=" + "x" * 230 + "{trace_id}", "at most 256 bytes, got 262"),
    ],
)
def test_what_is_not_a_header_tag_is_refused(text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        parse_header_tag(text)


@pytest.mark.parametrize("value", ["\ud800", 7, None])
def test_what_is_not_a_value_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="value"):
        HeaderTag(10042, value)


def test_the_longest_values_and_the_most_tags() -> None:
    most = [HeaderTag(10_000 + tag, bytes(MOST_VALUE_BYTES)) for tag in range(MOST_HEADER_TAGS + 1)]
    assert (
        len(stamped(request_payload(METADATA, 12), StampConfig(most[1:])).added) == MOST_HEADER_TAGS
    )
    with pytest.raises(ArgumentError, match="at most 16"):
        StampConfig(most)
    with pytest.raises(ArgumentError, match="each tag once"):
        StampConfig([HeaderTag(10042, "a"), HeaderTag(10042, "b")])
    assert HeaderTag(2**31 - 1, "").tag == 2**31 - 1


def test_the_broker_gets_the_tags_and_the_capture_has_both(tmp_path: Path) -> None:
    # Three requests together, then byte by byte, and one that is larger than a single read.
    asked = [
        asking(b"a", correlation_id=1),
        asking(b"b", correlation_id=2),
        request_payload(METADATA, 1, correlation_id=3),
        asking(b"c", correlation_id=4),
        asking(bytes(CHUNK_BYTES + 5), correlation_id=5),
    ]
    sent = b"".join(map(frame, asked))

    async def job() -> tuple[bytes, TapStatistics, list[Path], int]:
        broker = Broker(lambda request, _: answering(b"", correlation_id=request.correlation_id))
        async with (
            serving(broker) as upstream,
            tapped(upstream, tmp_path, stamping=STAMPING) as tap,
        ):
            async with connected(tap.listen_address) as client:
                first = len(frame(asked[0])) * 3
                await client.send(sent[:first])
                for at in range(first, first + 40):
                    await client.send(sent[at : at + 1])
                    await asyncio.sleep(0)
                await client.send(sent[first + 40 :])
                for _ in asked:
                    await client.receive()
            await settled(lambda: tap.stats.open_connections == 0)
            assert captured(tap.capture_paths)[client.port, upstream.port] == sent
            return bytes(broker.received[0]), tap.stats, tap.capture_paths, client.port

    received, stats, paths, port = run(job())
    expected = [stamped(one) for one in asked]
    assert received == b"".join(frame(one.payload) for one in expected)
    assert (stats.stamped, stats.unstamped_not_flexible) == (4, 1)
    stamps = [one for path in paths for one in read_stamps(path)]
    assert [(one.correlation_id, one.tags) for one in stamps] == [
        (correlation_id, OURS) for correlation_id in (1, 2, 4, 5)
    ]
    assert {one.client for one in stamps} == {f"{LOOPBACK}:{port}"}
    told = [one for _, one in read_marks(list_captures(paths))]
    assert told == [FileMarks(added_tags=tuple(OURS))] * len(paths)
    # Packets still show where a request begins, and kernels read them as objects do.
    read = [one for path in paths for one in read_segments(path)]
    by_objects = [one for one in read if not isinstance(one, UnreadableBytes)]
    assert [one.begins for one in by_objects if one.begins] == ["request", "response"]
    by_columns = SegmentReader([str(path) for path in paths])
    assert by_objects == [
        one.segment(row)
        for one in by_columns
        if isinstance(one, SegmentColumns)
        for row in range(len(one))
    ]


@pytest.mark.parametrize(
    "rest", [b"\0\0\1\0half of a request", b"\xff\xff\xff\xff and what follows"]
)
@pytest.mark.parametrize("before", [b"", frame(asking(b""))])
def test_what_is_not_a_whole_frame_goes_on_as_it_came(
    rest: bytes, before: bytes, tmp_path: Path
) -> None:
    heard = bytearray()

    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(-1))

    async def job() -> None:
        async with serving(handler) as upstream, tapped(upstream, tmp_path, stamping=STAMPING) as t:
            async with connected(t.listen_address) as client:
                await client.send(before + rest)
                client.writer.write_eof()
                await client.reader.read()
            await settled(lambda: t.stats.open_connections == 0)
            assert captured(t.capture_paths)[client.port, upstream.port] == before + rest

    run(job())
    stamped_before = frame(stamped(before[4:]).payload) if before else b""
    assert bytes(heard) == stamped_before + rest


@pytest.mark.parametrize("first", [1, 2, 9])
def test_tls_goes_on_as_it_came(first: int, tmp_path: Path) -> None:
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(hello)) == hello
        writer.write(frame(b"heard"))
        await writer.drain()

    async def job() -> None:
        async with serving(handler) as upstream, tapped(upstream, tmp_path, stamping=STAMPING) as t:
            async with connected(t.listen_address) as client:
                await client.send(hello[:first])
                await settled(lambda: t.stats.request_bytes == first)
                await client.send(hello[first:])
                assert await client.receive() == b"heard"
            await settled(lambda: t.stats.open_connections == 0)
            assert captured(t.capture_paths)[client.port, upstream.port] == hello

    run(job())


@pytest.mark.parametrize(
    "comment",
    [
        b"flexwire: a request begins here",
        b"flexwire: sent on with header tags: ",
        b"flexwire: sent on with header tags: []",
        b"flexwire: sent on with header tags: " + b"[" * 60_000,
        b'flexwire: sent on with header tags: {"correlation_id": true, "tags": {}}',
        b'flexwire: sent on with header tags: {"correlation_id": 7, "tags": {"-1": ""}}',
        b'flexwire: sent on with header tags: {"correlation_id": 7, "tags": {"1": "0"}}',
        b'flexwire: sent on with header tags: {"correlation_id": 7, "tags": {"1": 0}}',
        b'flexwire: sent on with header tags: {"correlation_id": 7, "tags": 1}',
        stamp_comment(1 << 31, {}),
    ],
)
def test_comments_of_others_say_nothing(comment: bytes, tmp_path: Path) -> None:
    from flexwire.capture.files.pcapng import PcapngWriter  # noqa: PLC0415 - only this test needs the writer

    with PcapngWriter(tmp_path) as writer:
        connection = writer.open_connection(("10.0.0.9", 50000), ("10.0.0.1", 9092))
        told = [comment, stamp_comment(7, OURS)]
        connection.send("request", frame(asking(b"")), comments=told)
    [stamp] = read_stamps(writer.paths[0])
    assert (stamp.client, stamp.correlation_id, stamp.tags) == (CLIENT, 7, OURS)


def test_the_command_refuses_tags_before_it_listens(tmp_path: Path) -> None:
    def told(*options: str) -> str:
        result = CliRunner().invoke(
            app, ["tap", "--upstream", "127.0.0.1:1", "--out", str(tmp_path / "out"), *options]
        )
        assert result.exit_code == 2
        return result.output

    assert "expected 10000 to 2147483647, got 42" in told("--header-tag", "42=x")
    assert "each tag once" in told("--header-tag", "10042=x", "--header-tag", "10042=y")
    assert not (tmp_path / "out").exists()
