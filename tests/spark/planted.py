"""Secrets planted wherever traffic may carry them, with every kind of damage that hides them.

Each case is a separate connection. The secret of a case is one repeated word, so a few bytes are
enough to find it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from flexwire.capture.files.packets import endpoints, tcp_packet
from flexwire.codec import message
from flexwire.errors import EncodeError, UnknownMessageError
from flexwire.protocol.credentials import CREDENTIALS, CredentialField
from flexwire.records import Record
from flexwire.wire.segment_layout import ACK, FIN, SYN
from tests.capture.made_logs import TIME, MadeSegment
from tests.capture.traffic import pcap
from tests.spark.traffic import framed, made, record_batch, request, response

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

MARK = b"QzXw"
_TAG = 4711
_BROKER = ("10.0.0.1", 9092)
_PORTS = 60_000
GARBAGE = b"\x00\x00\x01\x07\xff\xfe\x80 garbage"
SECRET_NAME = "listener.name.a.ssl.key.passphrase"  # noqa: S105 - a name, not a password
_METADATA = "__cluster_metadata"
_OF_RECORDS = ("key", "value", "name of a header", "value of a header")

Step = tuple[str, bytes]


class Planted:
    """The packets of all cases, and the secret word of each case.

    ``whole`` contains, by the kind of case, the words whose complete secret is in the packets.
    """

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._packets: list[bytes] = []
        self.words: dict[bytes, str] = {}

    def word(self, kind: str) -> bytes:
        """Return a new secret."""
        while True:
            rest = bytes(self._source.choices(b"abcdefghijkmnpqrstuvwxyz", k=5))
            if MARK + rest not in self.words:
                self.words[MARK + rest] = kind
                return MARK + rest

    def connection(self, *steps: Step, begins: bool = True) -> None:
        """Add a connection. There is no SYN for a connection that begins before the capture."""
        number = len(self.words)
        client = (f"10.1.{number // 200}.{number % 200 + 1}", number % _PORTS + 1024)
        ends = dict(zip(("request", "response"), endpoints(client, _BROKER), strict=True))
        at = {"request": 1001, "response": 5001}
        if begins:
            self._packet(ends, at, "request", SYN, back=0, sequence=1000)
            self._packet(ends, at, "response", SYN | ACK, sequence=5000)
        for direction, data in steps:
            self._packet(ends, at, direction, ACK, data)
            at[direction] += len(data)
        self._packet(ends, at, "request", FIN | ACK)
        self._packet(ends, at, "response", FIN | ACK, back=at["request"] + 1)

    def _packet(
        self,
        ends: dict[str, Any],
        at: dict[str, int],
        direction: str,
        flags: int,
        data: bytes = b"",
        *,
        back: int | None = None,
        sequence: int | None = None,
    ) -> None:
        other = "response" if direction == "request" else "request"
        self._packets.append(
            tcp_packet(
                ends[direction],
                ends[other],
                sequence=at[direction] if sequence is None else sequence,
                acknowledgment=at[other] if back is None else back,
                flags=flags,
                payload=data,
            )
        )

    def raw(self, data: bytes) -> None:
        """Add a packet that is already in its final form."""
        self._packets.append(data)

    def write(self, path: Path) -> None:
        """Write the capture."""
        path.write_bytes(pcap(self._packets))


def asked(body: Any, version: int, number: int, **options: Any) -> Step:
    return "request", framed(request(body, version, number, **options))


def answered(body: Any, version: int, number: int, **options: Any) -> Step:
    return "response", framed(response(body, version, number, **options))


def exchange(name: str, version: int, number: int, **values: Any) -> tuple[Step, Step]:
    first = asked(made(f"{name}Request", **values), version, number)
    return first, answered(made(f"{name}Response"), version, number)


# The evidence that a connection is Kafka: before the secret, and after it.
HELLO = exchange("ApiVersions", 3, 100)
PING = exchange("Metadata", 12, 101)
BYE = exchange("Heartbeat", 4, 102)
HANDSHAKE_0 = exchange("SaslHandshake", 0, 103, mechanism="PLAIN")
HANDSHAKE_1 = exchange("SaslHandshake", 1, 103, mechanism="PLAIN")
PRELUDES: tuple[tuple[Step, ...], ...] = ((), HELLO, HELLO + HANDSHAKE_1, PING, HANDSHAKE_0)


def plant_logs(planted: Planted, directory: Path, *, sound: bool) -> dict[bytes, str]:
    """Write logs below a directory, with a word in each record field that holds bytes.

    Batches are damaged, so that other fields are read from the words. Batches of internal topics
    are damaged only if ``sound`` is false.
    """
    before = dict(planted.words)
    for topic in ("orders", _METADATA, "__consumer_offsets"):
        segment = MadeSegment(0)
        for offset, damage in enumerate(range(-1, 120, 3)):
            words = [planted.word(f"{kind} of a record in a log") * 3 for kind in _OF_RECORDS]
            key, value, name, header = words
            at = len(segment.data)
            record = Record(offset, TIME + offset, key, value, [(name, header)])
            segment.add([record], compression="gzip" if damage % 2 else "none")
            if damage >= 0 and not (sound and topic.startswith("__")):
                segment.data[min(at + damage, len(segment.data) - 1)] ^= 0xFF
        if not (sound and topic.startswith("__")):
            segment.data += planted.word("the torn end of a log") * 3
        segment.write(directory / "logs" / f"{topic}-0")
    logged = {word: kind for word, kind in planted.words.items() if word not in before}
    planted.words = before
    return logged


def plain(word: bytes) -> bytes:
    return b"\0alice\0" + word * 3


def plant(planted: Planted, fields: Iterable[CredentialField] = CREDENTIALS) -> None:
    """Add every case, with a secret in each of the fields."""
    for case in (_bare_tokens, _authenticate, _replies, _metadata, _packets):
        case(planted)
    _fields(planted, fields)


def _bare_tokens(planted: Planted) -> None:
    size = len(framed(plain(planted.word("unused"))))
    del planted.words[next(iter(planted.words))]
    for begins in (True, False):
        for at in range(1, size + 1):
            # The frame is cut off, either by the end of the capture or because its length is too
            # small.
            token = framed(plain(planted.word("token")))
            planted.connection(*HANDSHAKE_0, ("request", token[:at]), begins=begins)
            token = framed(plain(planted.word("token"))[: max(0, at - 4)])
            planted.connection(*HANDSHAKE_0, ("request", token), *PING, begins=begins)
        for prelude in PRELUDES:
            for user in (b"alice", b"A", b"\x12\0\x03", b"Aa\0\0\0\0"):
                # The handshake was not captured, or this is the broker's side.
                for direction in ("request", "response"):
                    word = planted.word("token without handshake")
                    token = framed(b"\0" + user + b"\0" + word * 3)
                    steps = ((direction, token), *PING)
                    planted.connection(*prelude, *steps, begins=begins)


def _damaged(data: bytes, step: int = 1) -> Iterator[bytes]:
    """Yield a frame's bytes: cut off, without the beginning, and with bytes before or after."""
    for at in range(1, len(data) + 1, step):
        yield data[:at]
        yield framed(data[4:at])
        yield data[at:]
        yield framed(data[at:])
        yield struct.pack(">i", len(data) * 3) + data[at:]
    yield GARBAGE + data
    yield framed(GARBAGE + data)
    yield framed(data[4:] + GARBAGE)
    yield framed(data[4:] + b"\0")
    # A frame whose declared length is too great swallows the next frame.
    yield framed(request(made("HeartbeatRequest"), 4, 7) + data)
    yield framed(response(made("HeartbeatResponse"), 4, 7) + data)


def _authenticate(planted: Planted) -> None:
    def frame(word: bytes) -> bytes:
        body = made("SaslAuthenticateRequest", auth_bytes=plain(word))
        return asked(body, 2, 1)[1]

    variants = len(list(_damaged(frame(MARK + b"......"[:5]))))
    for begins in (True, False):
        for prelude in (HELLO + HANDSHAKE_1, ()) if begins else (PING, ()):
            for number in range(variants):
                data = list(_damaged(frame(planted.word("authenticate"))))[number]
                planted.connection(*prelude, ("request", data), *PING, begins=begins)


def _replies(planted: Planted) -> None:
    for begins in (True, False):
        for prelude in PRELUDES:
            for tags in (False, True):
                word = planted.word("reply")
                hidden = {_TAG: word * 3} if tags else {}
                reply = made(
                    "SaslAuthenticateResponse",
                    auth_bytes=b"" if tags else word * 3,
                    unknown_tagged_fields=hidden,
                )
                planted.connection(*prelude, answered(reply, 2, 55), *BYE, begins=begins)
        for name, place in (("request", "header"), ("response", "header"), ("request", "body")):
            word = planted.word(f"tagged field of the {name}'s {place}")
            tags_of = {_TAG: word * 3}
            inner = tags_of if place == "body" else {}
            outer = tags_of if place == "header" else {}
            ask = asked(
                made("SaslAuthenticateRequest", unknown_tagged_fields=inner),
                2,
                9,
                tags=outer if name == "request" else {},
            )
            tell = answered(
                made("SaslAuthenticateResponse"), 2, 9, tags=outer if name == "response" else {}
            )
            planted.connection(*HELLO, *HANDSHAKE_1, ask, tell, *BYE, begins=begins)


def _fields(planted: Planted, fields: Iterable[CredentialField]) -> None:
    for one in fields:
        if not one.message_name.endswith(("Request", "Response")):
            continue
        versions = _versions(one)
        for version in {versions[0], versions[-1]}:
            steps = _variants(one, version, MARK)
            for number in range(len(steps)):
                kind = f"{one.message_name} {'.'.join(one.path)}"
                step = _variants(one, version, planted.word(kind))[number]
                name = one.message_name.removesuffix("Request").removesuffix("Response")
                if step[0] == "response":
                    question = asked(made(f"{name}Request"), version, 1)
                    planted.connection(*PING, question, step, *BYE)
                else:
                    planted.connection(*PING, step, *BYE)


def _variants(one: CredentialField, version: int, word: bytes) -> list[Step]:
    body = holding(one, word * 3, tag=_is_flexible(one, version))
    is_request = one.message_name.endswith("Request")
    direction, data = (asked if is_request else answered)(body, version, 1)
    # Only the message and its connection show that the damaged bytes may contain a credential.
    said = [data, framed(data[4:] + b"\0"), framed(data[4:-1]), data[:-3], framed(GARBAGE + data)]
    said += [
        data[4 + 2 :],
        framed(data[9:]),
        framed(request(body, version, 1)) if is_request else data,
    ]
    return [(direction, one) for one in said]


def holding(one: CredentialField, secret: bytes, *, tag: bool) -> Any:
    """Return a message with a secret in a field or, with ``tag``, in an unknown tagged field."""
    kind: Any = message(one.message_name)
    specs = kind.entry.specs()
    names = [""]
    fields, structs = specs[0][0].fields, specs[0][0].structs()
    types = []
    for name in one.path:
        found = next(field for field in fields if field.name == name)
        types.append(found.type)
        names.append(found.type.name)
        fields = structs.get(found.type.name, ())
    value: Any = secret.decode() if types[-1].name == "string" else secret
    for depth in range(len(one.path) - 1, -1, -1):
        attributes = {one.attributes[depth]: value}
        if depth == len(one.path) - 1 and one.if_secret:
            attributes[one.if_secret.lower()] = SECRET_NAME
        if depth == 0:
            hidden = {_TAG: secret} if tag else {}
            return kind(**attributes, unknown_tagged_fields=hidden)
        made_one = getattr(kind, names[depth])(**attributes)
        value = [made_one] if types[depth - 1].is_array else made_one
    raise AssertionError(one)


def _is_flexible(one: CredentialField, version: int) -> bool:
    try:
        holding(one, MARK, tag=True).encode(version)
    except EncodeError:
        return False
    return True


def _versions(one: CredentialField) -> list[int]:
    found = []
    for version in range(40):
        try:
            holding(one, MARK, tag=False).encode(version)
        except (EncodeError, UnknownMessageError):
            continue
        found.append(version)
    return found


def _fetched(version: int, records: bytes) -> tuple[Step, Step]:
    ask: Any = message("FetchRequest")
    tell: Any = message("FetchResponse")
    topic = {"topic": _METADATA} if version < 13 else {"topic_id": _id()}
    wanted = ask.FetchTopic(**topic, partitions=[ask.FetchPartition(partition=0)])
    parts = [tell.PartitionData(partition_index=0, records=records)]
    found = tell.FetchableTopicResponse(**topic, partitions=parts)
    return asked(ask(topics=[wanted]), version, 1), answered(tell(responses=[found]), version, 1)


def _id() -> Any:
    from flexwire.protocol.credentials import METADATA_TOPIC_ID  # noqa: PLC0415 - only this function needs the id

    return METADATA_TOPIC_ID


def _metadata(planted: Planted) -> None:
    cuts: list[Callable[[bytes], bytes]] = [
        lambda data: data,
        lambda data: framed(data[4:] + b"\0"),
        lambda data: framed(data[4:-5]),
        lambda data: framed(data[4:60] + data[64:]),
        lambda data: data[:-3],
        lambda data: data[6:],
        lambda data: framed(GARBAGE + data),
    ]
    for version in (4, 12, 13, 17):
        for begins in (True, False):
            for cut in cuts:
                word = planted.word(f"metadata fetched with v{version}")
                question, (way, data) = _fetched(version, record_batch((None, word * 3, [])))
                planted.connection(*PING, question, (way, cut(data)), *BYE, begins=begins)
                # A response whose request is missing.
                word = planted.word(f"metadata fetched with v{version}")
                _, (way, data) = _fetched(version, record_batch((None, word * 3, [])))
                planted.connection(*PING, (way, cut(data)), *BYE, begins=begins)


def _packets(planted: Planted) -> None:
    near, far = endpoints(("10.9.9.9", 999), _BROKER)

    def token(kind: str) -> bytes:
        data = framed(plain(planted.word(kind)))
        return tcp_packet(near, far, sequence=5, acknowledgment=9, flags=ACK, payload=data)

    fragment = bytearray(token("fragment"))
    fragment[6:8] = b"\x20\x00"
    planted.raw(bytes(fragment))
    for length in (0x10, 0x40, 0xF0):
        damaged = bytearray(token("damaged TCP header"))
        damaged[20 + 12] = length
        planted.raw(bytes(damaged[: 20 + 70]))
    strange = bytearray(token("damaged IP header"))
    strange[0] = 0x41
    planted.raw(bytes(strange))
