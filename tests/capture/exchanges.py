"""The messages of a random connection: usual and unusual requests and responses."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.errors import FlexwireError
from flexwire.records import Compression, Record, encode_batch
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from tests.spark.traffic import framed, made, request, response

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from flexwire.capture.files.packets import Direction

Step = tuple["Direction", bytes]
"""Bytes that one end sends together."""

# A request and its response, as bytes of both streams. Either may be missing.
_Exchange = tuple[bytes | None, bytes | None]
_TOPICS = [("orders", uuid.UUID(int=0xABCDEF)), ("größe", uuid.UUID(int=0xFEDCBA))]
_NAMELESS = uuid.UUID(int=0x123456)
_SENT_MS = 1_700_000_000_000
_TOKEN = b"\0alice\0correct horse"
_UNASKED = 1_000_000
_METADATA_TAIL = bytes.fromhex("00000000010000")  # librdkafka 2.16 writes these bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How connections behave: counts, the depth of pipelining, and shares from 0 to 1."""

    exchanges: int = 12
    depth: int = 4
    others: float = 0.0  # connections of other protocols
    sasl: float = 0.0  # connections that authenticate first
    any_api: float = 0.0  # exchanges with any message, in any version, with any values
    strange: float = 0.0  # exchanges that no well-behaved client and broker would have
    records: int = 6  # the maximum number of records in a batch
    large: float = 0.0  # exchanges with a batch that spans many segments
    hidden: float = 0.0  # connections that TLS hides; they are as long as other connections


def conversation(source: random.Random, talk: Talk, number: int) -> list[Step]:
    """Return the bytes of one connection, in order. The client id contains ``number``."""
    if source.random() < talk.others:
        return _other(source)
    if talk.hidden and source.random() < talk.hidden:
        return _hidden(source, talk)
    client_id = f"client-{number % 5}"
    said = _Said(source, talk, client_id)
    steps = _pipelined(source, [said.greeting()], 1)
    if source.random() < talk.sasl:
        steps += said.authentication()
    exchanges = [said.exchange() for _ in range(talk.exchanges)]
    return steps + _pipelined(source, exchanges, talk.depth)


def _pipelined(source: random.Random, exchanges: list[_Exchange], depth: int) -> list[Step]:
    """Return requests, at most ``depth`` of them pending, and their responses in order."""
    steps: list[Step] = []
    waiting: list[bytes] = []
    for asked, answer in exchanges:
        if len(waiting) >= depth or source.random() < 0.1:
            answered = source.randint(min(1, len(waiting)), len(waiting))
            steps += [("response", answer) for answer in waiting[:answered]]
            del waiting[:answered]
        if asked is not None:
            steps.append(("request", asked))
        if answer is not None:
            waiting.append(answer)
    return steps + [("response", answer) for answer in waiting]


def _hidden(source: random.Random, talk: Talk) -> list[Step]:
    def record(kind: int, size: int) -> bytes:
        return struct.pack(">BHH", kind, 0x0303, size) + source.randbytes(size)

    steps: list[Step] = [("request", record(22, 512)), ("response", record(22, 900))]
    for _ in range(talk.exchanges):
        # Short writes put a record's end into a segment of its own.
        steps.append(("request", record(23, source.choice([20, 90, 300, 1460]))))
        sizes = source.choice([[40], [700], [2000, 30], [9000]])
        steps.append(("response", b"".join(record(23, size) for size in sizes)))
    return steps


def _other(source: random.Random) -> list[Step]:
    kind = source.choice(["tls", "http", "noise", "silence", "responses"])
    if kind == "tls":
        hello = bytes.fromhex("16030100b5010000b10303") + source.randbytes(170)
        data = [b"\x17\x03\x03" + struct.pack(">H", 90) + source.randbytes(90) for _ in range(4)]
        return [("request", hello), ("response", data[0]), ("request", data[1] + data[2])]
    if kind == "http":
        return [
            ("request", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            ("response", b"HTTP/1.1 200\r\n"),
        ]
    if kind == "noise":
        return [
            (source.choice(["request", "response"]), source.randbytes(source.randrange(1, 3000)))
            for _ in range(source.randrange(1, 6))
        ]
    if kind == "responses":
        return [("response", framed(struct.pack(">i", number) + b"\0\0")) for number in range(3)]
    return []


@cache
def _apis() -> list[tuple[str, str, int]]:
    """Return every request with its response, and the versions that exist for both messages."""
    found = []
    for key in catalog().api_keys():
        pair = [
            catalog().by_api_key(key, kind) for kind in (MessageType.REQUEST, MessageType.RESPONSE)
        ]
        asked, answer = ({v for _, served in one.specs() for v in served} for one in pair)
        names = [one.name for one in pair]
        found += [(names[0], names[1], version) for version in sorted(asked & answer)]
    return found


def _nested(name: str, struct_name: str, /, **values: Any) -> Any:
    return getattr(message(name), struct_name)(**values)


def batch(source: random.Random, records: int, size: int = 40) -> bytes:
    """Return a record batch or message set of any magic and compression type."""
    magic = source.choice([2, 2, 2, 2, 1, 0])
    kinds = [one for one in Compression if magic == 2 or one is not Compression.ZSTD]
    said = [
        Record(
            offset,
            _SENT_MS + offset if magic else -1,
            source.choice([None, b"", b"key-%d" % offset]),
            source.choice(
                [None, b"value " * source.randrange(1 + size // 6), source.randbytes(size)]
            ),
            [(b"trace", source.randbytes(8)), (b"trace", None)]
            if magic == 2 and offset % 2
            else [],
        )
        for offset in range(source.randrange(1, records + 1))
    ]
    return encode_batch(said, magic=magic, compression=source.choice(kinds))


class _Said:
    """Make the messages that one client and its broker exchange."""

    def __init__(self, source: random.Random, talk: Talk, client_id: str) -> None:
        self._source = source
        self._talk = talk
        self._client_id = client_id
        self._correlation_id = source.choice([0, 0, 1, 2**31 - 5])

    def greeting(self) -> _Exchange:
        software = {"client_software_name": "made-up", "client_software_version": "1.2"}
        asked = made("ApiVersionsRequest", **self._source.choice([software, {}]))
        return self._pair(asked, self._api_versions(), 3)

    def authentication(self) -> list[Step]:
        """Return a SASL exchange, which is never pipelined."""
        version = self._source.choice([0, 1])
        handshake = made("SaslHandshakeRequest", mechanism="PLAIN")
        exchanges: list[_Exchange] = [self._pair(handshake, made("SaslHandshakeResponse"), version)]
        if version == 0:
            exchanges += [(framed(_TOKEN), framed(b""))] * self._source.randrange(1, 3)
        else:
            asked = made("SaslAuthenticateRequest", auth_bytes=_TOKEN)
            answer = made("SaslAuthenticateResponse", auth_bytes=b"ok")
            exchanges.append(self._pair(asked, answer, 2))
        return _pipelined(self._source, exchanges, 1)

    def exchange(self) -> _Exchange:
        chance = self._source.random()
        if chance < self._talk.strange:
            return self._source.choice(_STRANGE)(self)
        if chance < self._talk.strange + self._talk.any_api:
            return self._any_api()
        return self._source.choice(_USUAL)(self)

    def _next_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) % 2**31
        return self._correlation_id

    def _pair(self, asked: Any, answer: Any, version: int, **options: Any) -> tuple[bytes, bytes]:
        number = self._next_id()
        return (
            framed(request(asked, version, number, client_id=self._client_id, **options)),
            framed(response(answer, version, number, **options)),
        )

    def _any_api(self) -> _Exchange:
        asked_name, answer_name, version = self._source.choice(_apis())
        seed = self._source.getrandbits(32)
        try:
            asked = random_message(message(asked_name), version, seed)
            answer = random_message(message(answer_name), version, seed + 1)
            return self._pair(asked, answer, version)
        except FlexwireError:
            # These random values cannot be written together.
            return self.heartbeat()

    # The everyday traffic of a cluster.

    def heartbeat(self) -> _Exchange:
        answer = made("HeartbeatResponse", error_code=self._source.choice([0, 0, 27]))
        return self._pair(made("HeartbeatRequest", group_id="g"), answer, 4)

    def api_versions(self) -> _Exchange:
        return self._pair(made("ApiVersionsRequest"), self._api_versions(), 3)

    def metadata(self) -> _Exchange:
        topics = [
            _nested("MetadataResponse", "MetadataResponseTopic", name=name, topic_id=topic_id)
            for name, topic_id in _TOPICS[: self._source.randrange(3)]
        ]
        return self._pair(made("MetadataRequest"), made("MetadataResponse", topics=topics), 12)

    def produce(self, *, acks: int = 1, records: bytes | None = None) -> _Exchange:
        version = self._source.choice([3, 9, 9, 13])
        name, topic_id = self._source.choice(_TOPICS)
        parts = [
            _nested(
                "ProduceRequest", "PartitionProduceData", index=index,
                records=self._batches() if records is None else records,
            )
            for index in range(self._source.randrange(1, 3))
        ]  # fmt: skip
        topic = {"name": name} if version < 13 else {"topic_id": topic_id}
        data = [_nested("ProduceRequest", "TopicProduceData", **topic, partition_data=parts)]
        asked = made("ProduceRequest", acks=acks, timeout_ms=100, topic_data=data)
        pair = self._pair(asked, made("ProduceResponse"), version)
        return pair if acks else (pair[0], None)

    def fetch(self, *, cut: int = 0) -> _Exchange:
        version = self._source.choice([4, 11, 12, 13, 13])
        name, topic_id = self._source.choice(_TOPICS)
        if self._source.random() < 0.2:
            topic_id = _NAMELESS
        topic = {"topic": name} if version < 13 else {"topic_id": topic_id}
        records = self._batches()
        if cut:
            # A full response ends within a batch.
            records += self._batches()[:cut]
        parts = [_nested("FetchResponse", "PartitionData", partition_index=1, records=records)]
        found = _nested("FetchResponse", "FetchableTopicResponse", **topic, partitions=parts)
        return self._pair(made("FetchRequest"), made("FetchResponse", responses=[found]), version)

    def _batches(self) -> bytes:
        source = self._source
        if source.random() < self._talk.large:
            return batch(source, 40, source.choice([500, 3000]))
        return b"".join(
            batch(source, self._talk.records) for _ in range(source.choice([0, 1, 1, 3]))
        )

    def _api_versions(self) -> Any:
        keys = [
            _nested("ApiVersionsResponse", "ApiVersion", api_key=key, max_version=9)
            for key in range(self._source.randrange(20))
        ]
        return made("ApiVersionsResponse", api_keys=keys)

    # Traffic that is rare, invalid or newer than the catalog.

    def not_acknowledged(self) -> _Exchange:
        return self.produce(acks=0)

    def not_answered(self) -> _Exchange:
        return self.heartbeat()[0], None

    def not_asked(self) -> _Exchange:
        answer = response(made("HeartbeatResponse"), 4, (_UNASKED + self._next_id()) % 2**31)
        return None, framed(answer)

    def header_tags(self) -> _Exchange:
        asked, answer = made("HeartbeatRequest"), made("HeartbeatResponse")
        return self._pair(asked, answer, 4, tags={42: b"of the header", 20_000: b""})

    def body_tags(self) -> _Exchange:
        tags = {"unknown_tagged_fields": {4711: b"from the future"}}
        return self._pair(made("HeartbeatRequest", **tags), made("HeartbeatResponse", **tags), 4)

    def damaged(self) -> _Exchange:
        """Return a frame from each end, with a valid length but some invalid bytes in its body."""
        pair = self._source.choice(_USUAL)(self)
        return self._damaged(pair[0]), self._damaged(pair[1])

    def _damaged(self, data: bytes | None) -> bytes | None:
        if data is None or self._source.random() < 0.5:
            return data
        body = bytearray(data[4:])
        if self._source.random() < 0.5:
            return framed(bytes(body[: self._source.randrange(1, len(body) + 1)]))
        for _ in range(self._source.randrange(1, 4)):
            body[self._source.randrange(min(8, len(body) - 1), len(body))] = self._source.randrange(
                256
            )
        return framed(bytes(body))

    def lenient(self) -> _Exchange:
        """The spec defines no bytes after the body, but Kafka's Java ignores such bytes."""
        asked, answer = self.heartbeat()
        tail = bytes(self._source.randrange(1, 4))
        return framed((asked or b"")[4:] + tail), framed((answer or b"")[4:] + tail)

    def null_flags(self) -> _Exchange:
        version, number = 13, self._next_id()
        empty = request(made("MetadataRequest"), version, number, client_id=self._client_id)
        head = empty[: -len(made("MetadataRequest").encode(version))]
        answer = response(made("MetadataResponse"), version, number)
        return framed(head + _METADATA_TAIL), framed(answer)

    def not_released(self) -> _Exchange:
        key, version = self._source.choice([(900, 0), (0, 99), (3, 40), (-5, 1), (18, 77)])
        number = self._next_id()
        head = struct.pack(">hhihxx", key, version, number, 0)
        return framed(head), framed(struct.pack(">ixx", number))

    def fallback(self) -> _Exchange:
        """A broker that does not know the version answers in version 0 (KIP-511)."""
        number = self._next_id()
        answer = made("ApiVersionsResponse", error_code=35)
        asked = request(made("ApiVersionsRequest"), 3, number, client_id=self._client_id)
        return framed(asked), framed(response(answer, 0, number))

    def same_id_again(self) -> _Exchange:
        asked = request(made("HeartbeatRequest"), 4, 7, client_id=self._client_id)
        return framed(asked), framed(response(made("HeartbeatResponse"), 4, 7))

    def nobody(self) -> _Exchange:
        """Return a request whose client id is null."""
        number = self._next_id()
        asked = struct.pack(">hhih", 3, 1, number, -1) + made("MetadataRequest").encode(1)
        return framed(asked), framed(response(made("MetadataResponse"), 1, number))

    def empty_frame(self) -> _Exchange:
        return framed(b""), None

    def garbage(self) -> _Exchange:
        """Return bytes between two frames. The reader must find the next frame after them."""
        return self._source.choice([(b"\xff" * 50, None), (None, self._source.randbytes(60))])

    def not_records(self) -> _Exchange:
        damaged = bytearray(batch(self._source, 5) + b"\0")
        damaged[self._source.randrange(len(damaged))] ^= 1 + self._source.randrange(255)
        return self.produce(records=bytes(damaged))

    def cut_batch(self) -> _Exchange:
        return self.fetch(cut=self._source.choice([5, 11, 30, 61, 70]))


_USUAL: list[Callable[[_Said], _Exchange]] = [
    _Said.heartbeat,
    _Said.api_versions,
    _Said.metadata,
    _Said.produce,
    _Said.fetch,
]
_STRANGE: list[Callable[[_Said], _Exchange]] = [
    _Said.not_acknowledged,
    _Said.not_answered,
    _Said.not_asked,
    _Said.header_tags,
    _Said.body_tags,
    _Said.damaged,
    _Said.lenient,
    _Said.null_flags,
    _Said.not_released,
    _Said.fallback,
    _Said.same_id_again,
    _Said.nobody,
    _Said.empty_frame,
    _Said.garbage,
    _Said.not_records,
    _Said.cut_batch,
]
