"""A connection counts as Kafka because of its content, and never by chance."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import MOST_READ, BrokerEnds, parse_end
from flexwire.capture.reassembly.framing import looks_like
from flexwire.codec import message
from flexwire.errors import CaptureError
from flexwire.protocol import request_header_version, response_header_version
from flexwire.wire.segment_layout import ACK, FIN, RST
from tests.capture.traffic import CLIENT, SERVER, framed, handshake, tcp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.files.packets import Segment
    from flexwire.capture.reassembly.connections import CapturedConnection

NONE = BrokerEnds()
NAMED = BrokerEnds.parse([], [SERVER])


def asked(
    name: str, version: int, correlation_id: int = 1, client_id: str | None = "c", **values: Any
) -> bytes:
    """Return the bytes of a request."""
    body: Any = message(name)(**values)
    api_key = body.entry.api_key
    header = message("RequestHeader")(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    head = header.encode(request_header_version(api_key, version))
    return framed(head + body.encode(version))


def answered(name: str, version: int, correlation_id: int = 1) -> bytes:
    """Return the bytes of a response."""
    body: Any = message(name)()
    header = message("ResponseHeader")(correlation_id=correlation_id)
    head = header.encode(response_header_version(body.entry.api_key, version))
    return framed(head + body.encode(version))


def connection(segments: Iterable[Segment], brokers: BrokerEnds = NONE) -> CapturedConnection:
    """Return the only connection of these segments."""
    assembler = FrameAssembler(brokers=brokers)
    for segment in segments:
        assembler.push(segment)
    assembler.finish()
    (one,) = assembler.ended()
    assert assembler.ended() == []
    return one


def sent(
    request: bytes, response: bytes = b"", *, brokers: BrokerEnds = NONE, opened: bool = True
) -> CapturedConnection:
    """Return a connection with these streams, each in one segment."""
    segments = handshake() if opened else []
    if request:
        segments.append(tcp(CLIENT, 1000, request))
    if response:
        segments.append(tcp(SERVER, 5000, response))
    return connection(segments, brokers)


@pytest.mark.parametrize(
    ("request_", "response", "evidence"),
    [
        (asked("MetadataRequest", 12), b"", "MetadataRequest v12 decodes"),
        (asked("MetadataRequest", 12, client_id=None), b"", "MetadataRequest v12 decodes"),
        (
            asked("MetadataRequest", 12, client_id=""),
            answered("MetadataResponse", 12),
            "the response to MetadataRequest v12 decodes",
        ),
        (
            asked("MetadataRequest", 12, 1, "") + asked("MetadataRequest", 12, 2, ""),
            b"",
            "MetadataRequest v12 and an earlier MetadataRequest v12 decode",
        ),
        # A body that cannot be decoded, and the broker's response to it.
        (
            asked("MetadataRequest", 12)[:-1] + b"\xff",
            answered("MetadataResponse", 12),
            "the response to MetadataRequest v12 decodes",
        ),
    ],
)
def test_one_message_that_decodes_is_enough(
    request_: bytes, response: bytes, evidence: str
) -> None:
    for opened in (True, False):
        found = sent(request_, response, opened=opened)
        assert (found.is_kafka, found.reads_as_kafka, found.looks_like) == (True, True, None)
        assert found.evidence == evidence
        assert (found.client, found.broker, found.seen_from_start) == (CLIENT, SERVER, opened)


def test_a_negotiation_in_a_version_nobody_knows_yet_is_kafka() -> None:
    def newer(client_id: str | None) -> bytes:
        data = asked("ApiVersionsRequest", 3, client_id=client_id)
        return data[:6] + struct.pack(">h", 99) + data[8:] + b""

    assert sent(newer("c")).evidence == "ApiVersionsRequest v99, newer than any released version"
    assert not sent(newer("")).is_kafka
    # A client sends nothing else until it knows that the broker supports the version.
    metadata = asked("MetadataRequest", 12)
    assert not sent(metadata[:6] + struct.pack(">h", 999) + metadata[8:]).is_kafka


def test_of_frames_that_the_capture_cut_off_two_headers_are_enough() -> None:
    whole = [asked("MetadataRequest", 12, n, "billing") for n in (1, 2)]
    at = [1000, 1000 + len(whole[0])]
    cut = [tcp(CLIENT, start, data[:-1], missing=1) for start, data in zip(at, whole, strict=True)]
    assert not connection([*handshake(), cut[0]]).is_kafka
    two = connection([*handshake(), *cut])
    assert (
        two.evidence
        == "headers of MetadataRequest v12 and MetadataRequest v12 contain the same client id"
    )
    assert two.lost_bytes == 2
    came_back = tcp(SERVER, 5000, answered("HeartbeatResponse", 4)[:-1], missing=1)
    one = connection([*handshake(), cut[0], came_back])
    assert one.evidence.endswith("and a response have the same correlation id")
    # If one end is known to be a broker, one header is enough.
    assert connection([*handshake(), cut[0]], NAMED).reads_as_kafka


def test_of_very_long_frames_the_headers_are_enough() -> None:
    records = bytes(MOST_READ)
    data = [asked("ProduceRequest", 9, n, "billing") + records for n in (1, 2)]
    frames = [framed(one[4:]) for one in data]
    assert sent(frames[0], brokers=NAMED).reads_as_kafka
    assert not sent(frames[0]).is_kafka
    found = sent(b"".join(frames))
    assert (
        found.evidence
        == "headers of ProduceRequest v9 and ProduceRequest v9 contain the same client id"
    )


def test_one_damaged_frame_takes_nothing_from_a_connection() -> None:
    good, bad = asked("MetadataRequest", 12), framed(b"\xff" * 30)
    assert all(sent(stream).is_kafka for stream in (good + bad, bad + good, good + b"\xff" * 40))


NOT_KAFKA = {
    "TLS": bytes.fromhex("16030100b5010000b10303") + bytes(170),
    "HTTP": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "AMQP": b"AMQP\0\0\x09\x01",
    "SMTP or FTP": b"220 mail ready\r\n",
    "Redis": b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
    "PostgreSQL": b"\0\0\0\x21\0\3\0\0user\0postgres\0database\0a\0\0",
    "MySQL": b"\x4a\0\0\0\x0a8.0.36\0" + bytes(60),
    "MongoDB": struct.pack("<iiii", 40, 1, 0, 2013) + bytes(24),
    "ZooKeeper": framed(struct.pack(">iqiqi", 0, 0, 18000, 0, 16) + bytes(17)),
    "zeros": bytes(500),
    "text": b"hello there, this is a line\r\n",
}


@pytest.mark.parametrize("name", NOT_KAFKA)
def test_other_protocols_are_named_and_their_bytes_counted(name: str) -> None:
    data = NOT_KAFKA[name]
    for streams in ((data, b""), (b"", data), (data, data)):
        found = sent(*streams)
        assert (found.is_kafka, found.reads_as_kafka, found.looks_like) == (False, False, name)
        assert (found.request_bytes, found.response_bytes) == tuple(map(len, streams))
        # Another protocol is not Kafka, even if the user specifies that this end is a broker.
        assert not sent(*streams, brokers=NAMED).is_kafka


def test_what_begins_as_kafka_looks_like_nothing_else() -> None:
    for name in ("ApiVersionsRequest", "MetadataRequest", "ProduceRequest", "FetchRequest"):
        entry: Any = message(name).entry
        assert looks_like(asked(name, entry.versions.highest)) is None
    # These bytes have the same length as ZooKeeper's first request, and begin like it.
    assert looks_like(asked("ProduceRequest", 0, 1 << 16, "a" * 24)) is None


def _zookeeper(count: int) -> tuple[bytes, bytes]:
    """Return a ZooKeeper session whose transaction ids look like Produce requests of
    any version.
    """
    requests, responses = NOT_KAFKA["ZooKeeper"], b""
    for xid in range(1, count):
        path = b"/brokers/ids/%d" % xid
        requests += framed(struct.pack(">iii", xid, xid % 12, len(path)) + path + b"\1")
        responses += framed(struct.pack(">iqi", xid, xid, 0) + bytes(xid))
    return requests, responses


@pytest.mark.parametrize("brokers", [NONE, NAMED])
def test_headers_alone_prove_nothing(brokers: BrokerEnds) -> None:
    zeros = framed(bytes(20)) * 3, framed(bytes(8)) * 3
    keep_alive = b"".join(framed(struct.pack(">iiqi", 0, n, 0, 0)) for n in range(1, 9)), b""
    # The same session, at a time whose bytes look like acks and a timeout.
    repeated = framed(struct.pack(">iiqi", 0, 7, 1_700_000, 0)) * 3, b""
    for streams in (_zookeeper(40), zeros, keep_alive, repeated):
        assert not sent(*streams, brokers=brokers).reads_as_kafka


def test_of_whole_frames_the_bodies_must_be_kafkas_too() -> None:
    # A protocol whose headers equal Kafka's, and which repeats the correlation ids as Kafka does.
    def call(number: int) -> bytes:
        return framed(struct.pack(">hhih", 3, 12, number, 4) + b"name" + b"\0\xff\xff body")

    answers = b"".join(framed(struct.pack(">i", n) + b"\0\xff\xff result") for n in (1, 2))
    assert not sent(call(1) + call(2), answers).is_kafka
    # A frame that was sent again is not a second frame.
    cut = [tcp(CLIENT, 1000 + n * len(call(1)), call(1)[:-1], missing=1) for n in range(2)]
    assert not connection([*handshake(), *cut]).is_kafka


def test_bytes_between_frames_are_not_read_as_frames() -> None:
    # The capture begins within the connection: the length of a short frame looks like an api key.
    short = framed(b"\xd8\x89\0\0\0\1\x5f") + framed(b"\xbc") * 8
    assert short[:4] == struct.pack(">hh", 0, 7)
    for opened in (True, False):
        assert not sent(short, brokers=NAMED, opened=opened).reads_as_kafka


def _numbers(noise: random.Random, size: int) -> bytes:
    kind = noise.choice([">i", "<i", ">q", ">h", ">d"])
    first = noise.randrange(1000)
    return b"".join(struct.pack(kind, n) for n in range(first, first + size))


def _length_prefixed(noise: random.Random, size: int) -> bytes:
    return b"".join(framed(noise.randbytes(noise.randrange(size))) for _ in range(8))


def _small_fields(noise: random.Random, size: int) -> bytes:
    """Return frames of small int16 values and text that most resemble request headers by chance."""

    def one() -> bytes:
        kind, version = noise.randrange(100), noise.randrange(20)
        text = bytes(noise.randrange(97, 123) for _ in range(noise.randrange(9)))
        head = struct.pack(">hhih", kind, version, noise.randrange(99), len(text)) + text
        return framed(head + noise.randbytes(noise.randrange(1, 2 + size)))

    return b"".join(one() for _ in range(8))


KINDS = {
    "random": lambda noise, size: noise.randbytes(size),
    "zeros": lambda _, size: bytes(size),
    "ones": lambda _, size: b"\xff" * size,
    "numbers": _numbers,
    "text": lambda noise, size: bytes(noise.randrange(32, 127) for _ in range(size)),
    "length-prefixed": _length_prefixed,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("brokers", [NONE, NAMED])
def test_no_client_appears_in_bytes_of_other_kinds(kind: str, brokers: BrokerEnds) -> None:
    noise = random.Random(f"{kind}{brokers}")
    for _ in range(150):
        streams = [KINDS[kind](noise, noise.randrange(1, 300)) for _ in range(2)]
        found = sent(*streams, brokers=brokers, opened=noise.random() < 0.5)
        assert not found.reads_as_kafka, streams
        assert found.is_kafka <= bool(brokers)
        assert found.request_bytes + found.response_bytes == sum(map(len, streams))


@given(st.binary(max_size=400), st.binary(max_size=400), st.booleans())
def test_any_bytes_are_judged(request_: bytes, response: bytes, opened: bool) -> None:  # noqa: FBT001
    if request_ or response:
        found = sent(request_, response, opened=opened)
        assert found.evidence
        assert found.reads_as_kafka == found.is_kafka


def test_a_header_like_kafkas_needs_a_body_like_kafkas() -> None:
    noise = random.Random(3)
    decoded = sum(sent(_small_fields(noise, 200)).is_kafka for _ in range(200))
    # Every frame has a header like Kafka's, and every third frame has a released version.
    assert decoded == 0


def _from(source: str, destination: str) -> Segment:
    return msgspec.structs.replace(tcp(CLIENT, 1), source=source, destination=destination)


def test_given_ends_decide_who_the_client_is() -> None:
    # The broker has the higher port, and the captured bytes do not show which end is which.
    low, high = "10.0.0.9:1024", "10.0.0.1:60000"
    assert BrokerEnds.parse([60000], []).client(_from(low, high)) == low
    assert BrokerEnds.parse([60000], []).client(_from(high, low)) == low
    assert BrokerEnds.parse([], [high]).client(_from(high, low)) == low
    # Neither end is known, or both are brokers: the connection itself shows that it is Kafka.
    assert BrokerEnds.parse([60000], [low]).client(_from(high, low)) is None
    assert BrokerEnds.parse([9092], []).client(_from(high, low)) is None
    quiet = connection([tcp(SERVER, 5000, b"\xff" * 20)], BrokerEnds.parse([], [CLIENT]))
    assert (quiet.client, quiet.broker, quiet.is_kafka) == (SERVER, CLIENT, True)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("10.0.0.1:9092", "10.0.0.1:9092"),
        ("[::1]:9092", "[::1]:9092"),
        ("[2001:DB8:0:0::1]:09092", "[2001:db8::1]:9092"),
        ("[::ffff:10.0.0.1]:9092", "[::ffff:10.0.0.1]:9092"),
    ],
)
def test_an_end_is_written_as_captures_have_it(text: str, end: str) -> None:
    assert parse_end(text) == end


@pytest.mark.parametrize(
    "text",
    ["", "9092", ":9092", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:+1",
     "kafka:9092", "::1:9092", "[::1]", "[10.0.0.1]:9092", "[::1%eth0]:9092", "10.0.0.1:²",
     "10.0.0.1:" + "9" * 5000],
)  # fmt: skip
def test_what_is_not_an_end_is_refused(text: str) -> None:
    with pytest.raises(CaptureError, match=r"expected the address and port of a broker"):
        parse_end(text)


@pytest.mark.parametrize(
    ("source", "flags", "told"),
    [
        (CLIENT, FIN, ("client", False)),
        (SERVER, FIN, ("broker", False)),
        (SERVER, RST, ("broker", True)),
        (CLIENT, ACK, (None, False)),
    ],
)
def test_who_closed_first_and_how(source: str, flags: int, told: tuple[str | None, bool]) -> None:
    ends = [tcp(source, 1000 if source == CLIENT else 5000, flags=flags | ACK)]
    other = SERVER if source == CLIENT else CLIENT
    if flags != ACK:
        ends.append(tcp(other, 1000 if other == CLIENT else 5000, flags=RST | ACK))
    found = connection([*handshake(), *ends])
    assert (found.closed_by, found.reset) == told
    assert (found.is_kafka, found.evidence) == (False, "nothing was sent")


def test_ports_used_again_are_another_connection_with_its_own_evidence() -> None:
    assembler = FrameAssembler()
    first = [*handshake(), tcp(CLIENT, 1000, asked("MetadataRequest", 12), at=7)]
    second = [*handshake(9999, 8888), tcp(CLIENT, 10000, NOT_KAFKA["HTTP"], at=9)]
    for segment in first + second:
        assembler.push(segment)
    assembler.finish()
    kafka, other = assembler.ended()
    assert (kafka.is_kafka, other.is_kafka, other.looks_like) == (True, False, "HTTP")
    assert (kafka.connection, other.connection) == (f"{CLIENT}>{SERVER}", f"{CLIENT}>{SERVER}#2")
    assert (kafka.last_us, other.last_us) == (7, 9)


def test_responses_alone_are_kafka_only_where_the_tap_says_so() -> None:
    data = answered("MetadataResponse", 12)
    assert not connection([tcp(SERVER, 5000, data)]).is_kafka
    marked = connection([tcp(SERVER, 5000, data, begins="response")])
    assert (marked.is_kafka, marked.reads_as_kafka) == (True, False)
