"""Whatever a broker sends or does, the caller gets flexwire's own error in bounded
memory and time.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client import Broker, Cluster, Login, Security
from flexwire.client.broker import read_body
from flexwire.codec import message
from flexwire.errors import CallError, CodecError, FlexwireError, LoginError
from tests.net.answering import Answers, answering, served
from tests.protocol.payloads import frame, response_payload
from tests.traced import traced

if TYPE_CHECKING:
    from tests.net.broker import Handler

METADATA = response_payload(
    3, 12, read_body(message("MetadataResponse"), {"clusterId": "a"}, 12), correlation_id=1
)


def sends(raw: bytes, *, stays: bool = False) -> Handler:
    """Send these bytes after a request, and then close the connection or remain silent."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(raw)
        await writer.drain()
        if stays:
            await reader.read(1 << 16)
            await reader.read(1)

    return handle


def ask(handler: Handler, *, timeout: float = 30.0) -> Any:
    with served(handler) as address, Broker.connect(address) as broker:
        # A busy machine may take longer to connect. The timeout starts again for each answer.
        broker._connection._timeout = timeout
        try:
            return broker.call("Metadata", {"topics": []}, 12)
        except CallError:
            assert not broker.is_open
            raise


def test_the_right_answer_is_taken() -> None:
    assert ask(sends(frame(METADATA))).response.cluster_id == "a"


@pytest.mark.parametrize("end", range(0, len(frame(METADATA)), 3))
def test_an_answer_that_breaks_off_is_an_error(end: int) -> None:
    with pytest.raises(CallError, match="closed the connection"):
        ask(sends(frame(METADATA)[:end]))


def test_what_does_not_decode_is_the_codec_s_error_and_the_connection_goes_on() -> None:
    says = frame(METADATA + b"\0")
    with served(sends(says)) as address, Broker.connect(address) as broker:
        with pytest.raises(CodecError, match="MetadataResponse v12"):
            broker.call("Metadata", {"topics": []}, 12)
        assert broker.is_open


def test_any_bytes_give_only_our_errors() -> None:
    chance = random.Random(16)
    for _ in range(40):
        raw = bytearray(frame(METADATA))
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        given = chance.choice([bytes(raw), chance.randbytes(40), frame(chance.randbytes(40))])
        try:
            ask(sends(given))
        except FlexwireError:
            continue


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        ("7fffffff", "a frame of 2147483647 bytes is longer than the limit"),
        ("ffffffff", "a frame cannot have -1 bytes"),
        ("80000000", "a frame cannot have -2147483648 bytes"),
        ("06400001", "a frame of 104857601 bytes is longer than the limit"),
    ],
)
def test_a_length_that_no_frame_has_is_refused_at_once(prefix: str, reason: str) -> None:
    with pytest.raises(CallError, match=reason):
        ask(sends(bytes.fromhex(prefix) + b"abc", stays=True))


def test_a_length_alone_takes_no_memory() -> None:
    closed = "closed the connection after 14 bytes of an answer"
    with traced() as memory, pytest.raises(CallError, match=closed):
        ask(sends((100 << 20).to_bytes(4, "big") + bytes(10)))
    assert memory.most < 8 << 20


def test_a_broker_that_speaks_tls_is_known_by_its_alert() -> None:
    with pytest.raises(CallError, match="a TLS alert"):
        ask(sends(bytes.fromhex("15030300020250"), stays=True))


def test_the_answer_to_another_request_is_refused() -> None:
    other = b"\0\0\0\x63" + METADATA[4:]
    with pytest.raises(CallError, match="expected correlation id 1, got 99"):
        ask(sends(frame(other)))


@pytest.mark.parametrize("raw", [b"", frame(METADATA)[:9]], ids=["nothing", "a part"])
def test_a_broker_that_says_no_more_is_given_up(raw: bytes) -> None:
    with pytest.raises(CallError, match=r"no answer after 0.2 s"):
        ask(sends(raw, stays=True), timeout=0.2)


def test_a_broker_that_drips_is_given_up_as_well() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        for one in frame(METADATA) * 1000:
            writer.write(bytes([one]))
            await writer.drain()
            await asyncio.sleep(0.05)

    with pytest.raises(CallError, match=r"no answer after 0.2 s"):
        ask(drip, timeout=0.2)


@pytest.mark.parametrize(
    ("host", "port"), [("", 9), ("a", -1), ("a", 0), ("a", 70_000), ("a\0b", 9), ("x" * 999, 9)]
)
def test_what_is_not_an_address_is_refused(host: str, port: int) -> None:
    said = {"brokers": [{"nodeId": 1, "host": host, "port": port}]}
    with (
        answering(Answers(Metadata=said)) as (address, _),
        Cluster(address) as cluster,
        pytest.raises(CallError, match=r"reports no address for node 1|cannot be reached"),
    ):
        cluster.call("ListGroups", to="1")


def test_ranges_that_cannot_be_are_passed_over() -> None:
    said = {
        "apiKeys": [
            {"apiKey": 3, "minVersion": 9, "maxVersion": 2},
            {"apiKey": 3, "minVersion": -5, "maxVersion": 2},
            {"apiKey": -7, "minVersion": 0, "maxVersion": 2},
            {"apiKey": 16, "minVersion": 0, "maxVersion": 2},
        ]
    }
    with answering(Answers(ApiVersions=said)) as (address, _), Broker.connect(address) as broker:
        assert sorted(broker.offered) == [-7, 16]
        assert broker.call("ListGroups").version == 2
        with pytest.raises(CallError, match="does not offer Metadata"):
            broker.call("Metadata")


@pytest.fixture(
    params=[
        b"",
        b"\xff",
        b"r=",
        b"r=other,s=c2FsdA==,i=4096",
        b"m=x,r={nonce}1,s=c2FsdA==,i=4096",
        b"r={nonce},s=c2FsdA==,i=4096",
        b"r={nonce}1,s=,i=4096",
        b"r={nonce}1,s=!,i=4096",
        b"r={nonce}1,s=c2FsdA==,i=4095",
        b"r={nonce}1,s=c2FsdA==,i=1000001",
        b"r={nonce}1,s=c2FsdA==,i=999999999999999999999",
        b"r={nonce}1,s=c2FsdA==,i=-1",
    ],
    ids=str,
)
def first(request: pytest.FixtureRequest) -> bytes:
    raw: bytes = request.param
    return raw


def test_a_broker_that_breaks_scram_is_not_told_the_proof(first: bytes) -> None:
    import base64  # noqa: PLC0415

    def says(form: dict[str, Any]) -> dict[str, Any]:
        nonce = base64.b64decode(form["authBytes"]).partition(b",r=")[2]
        return {"authBytes": base64.b64encode(first.replace(b"{nonce}", nonce)).decode()}

    login = Security(login=Login("SCRAM-SHA-256", "alice", "secret"))
    answers = Answers(SaslAuthenticate=says)
    with (
        answering(answers) as (address, _),
        pytest.raises(LoginError, match="SCRAM: ") as caught,
    ):
        Broker.connect(address, login)
    assert answers.names() == ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]
    assert "secret" not in str(caught.value)
