"""Draw conversations on parallel connections, with usual and unusual traffic."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame
from flexwire.protocol.credentials import METADATA_TOPIC, METADATA_TOPIC_ID
from tests.protocol.payloads import make, request_payload, response_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexwire.capture.files.packets import Direction

PRODUCE, FETCH, METADATA, CONTROLLED_SHUTDOWN, HEARTBEAT = 0, 1, 3, 7, 12
SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, ALTER_CONFIGS = 17, 18, 36, 33
CHANCES = {
    "request": 30,
    "response": 30,
    "acks 0": 2,
    "acks 1": 4,
    "broken acks": 1,
    "acks cut off": 1,
    "client": 3,
    "null client": 1,
    "not UTF-8": 0.3,
    "tags": 0.6,
    "api versions": 3,
    "unreleased api versions": 1,
    "unreleased": 0.6,
    "unreleased for another": 0.6,
    "no client id": 1,
    "fetch": 3,
    "fetch metadata": 0.3,
    "fetch metadata by id": 0.3,
    "empty": 0.6,
    "short": 0.6,
    "garbage": 0.3,
    "handshake": 0.3,
    "handshake cut off": 0.1,
    "handshake v1": 0.3,
    "authenticate": 0.3,
    "token": 0.3,
    "ticket": 0.1,
    "answer to a token": 0.3,
    "damaged request": 0.6,
    "damaged secret": 0.1,
    "damaged response": 0.6,
    "alter configs": 0.1,
}
CLIENTS = ("tests", "été", "", None, "x" * 300)
GARBAGE = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(40))


def heartbeat(**named: Any) -> bytes:
    version = named.pop("version", 4)
    return request_payload(HEARTBEAT, version, make("HeartbeatRequest", group_id="g"), **named)


def produce(version: int, acks: int, **named: Any) -> bytes:
    return request_payload(PRODUCE, version, make("ProduceRequest", acks=acks), **named)


def sent(kind: str, chance: random.Random, correlation_id: int) -> tuple[Direction, bytes]:
    """Return the direction and the payload of a frame of the given kind."""
    named: dict[str, Any] = {"correlation_id": correlation_id}
    version = chance.choice([3, 7, 9, 12])
    made: dict[str, Callable[[], bytes]] = {
        "request": lambda: heartbeat(version=chance.randrange(5), **named),
        "acks 0": lambda: produce(version, 0, **named),
        "acks 1": lambda: produce(version, chance.choice([1, -1]), **named),
        "broken acks": lambda: produce(version, 0, **named)[:-1],
        "acks cut off": lambda: request_payload(PRODUCE, version, b"\0", **named),
        "client": lambda: heartbeat(client_id=chance.choice(CLIENTS), **named),
        "null client": lambda: heartbeat(client_id=None, **named),
        "not UTF-8": lambda: heartbeat(**named).replace(b"tests", b"te\xffts"),
        "tags": lambda: heartbeat(unknown_tagged_fields={5: b"tag", 2: b""}, **named),
        "api versions": lambda: request_payload(API_VERSIONS, chance.randrange(4), b"", **named),
        "unreleased api versions": lambda: request_payload(API_VERSIONS, 99, b"", **named),
        "unreleased": lambda: request_payload(
            HEARTBEAT, 77, b"?", unknown_tagged_fields={1: b"x"}, **named
        ),
        "unreleased for another": lambda: request_payload(
            METADATA, 1000, b"?", client_id="another", **named
        ),
        "no client id": lambda: request_payload(
            CONTROLLED_SHUTDOWN, 0, make("ControlledShutdownRequest"), **named
        ),
        "fetch": lambda: request_payload(FETCH, 12, b"\0" * 40, **named),
        "fetch metadata": lambda: request_payload(
            FETCH, 12, b"ab" + METADATA_TOPIC.encode() + b"c", **named
        ),
        "fetch metadata by id": lambda: request_payload(
            FETCH, 13, b"\0" * 9 + METADATA_TOPIC_ID.bytes, **named
        ),
        "empty": lambda: b"",
        "short": lambda: heartbeat(**named)[: chance.randrange(1, 20)],
        "garbage": lambda: GARBAGE,
        "handshake": lambda: request_payload(
            SASL_HANDSHAKE, 0, make("SaslHandshakeRequest", mechanism="PLAIN"), **named
        ),
        "handshake cut off": lambda: request_payload(SASL_HANDSHAKE, 0, **named)[:9],
        "handshake v1": lambda: request_payload(
            SASL_HANDSHAKE, 1, make("SaslHandshakeRequest", mechanism="PLAIN"), **named
        ),
        "authenticate": lambda: request_payload(
            SASL_AUTHENTICATE, 2, make("SaslAuthenticateRequest", auth_bytes=b"secret"), **named
        ),
        "token": lambda: b"\0alice\0secret",
        "ticket": lambda: bytes.fromhex("600d06092a864886f712010202") + b"secret",
        "damaged request": lambda: heartbeat(client_id=chance.choice(["tests", "other"]), **named),
        "damaged secret": lambda: request_payload(
            SASL_AUTHENTICATE, 2, b"", unknown_tagged_fields={1: b"secret"}, **named
        ),
        "alter configs": lambda: request_payload(ALTER_CONFIGS, 2, b"", **named),
    }
    if kind in made:
        direction: Direction = "request"
        if kind in {"empty", "short", "garbage"} and chance.random() < 0.5:
            direction = "response"
        return direction, made[kind]()
    if kind == "answer to a token":
        return "response", b"r=fyko3rfcNHYJ"
    return "response", response_payload(HEARTBEAT, 4, b"body", correlation_id=correlation_id)


def conversations(seed: int, frames: int, connections: int) -> list[CapturedFrame]:
    """Draw frames of all kinds on parallel connections."""
    chance = random.Random(seed)
    counts: dict[tuple[str, str], int] = {}
    now, found = 1_700_000_000_000_000, []
    # The number of authentication tokens that may still follow on each connection.
    exchanging: dict[int, int] = {}
    # Some connections carry only usual traffic, and others lack one direction.
    odd = {name for name, weight in CHANCES.items() if weight < 2}
    plain = {number: chance.random() < 0.3 for number in range(connections)}
    for _ in range(frames):
        number = chance.randrange(connections)
        (kind,) = chance.choices(list(CHANCES), list(CHANCES.values()))
        if plain[number] and kind in odd:
            continue
        if exchanging.get(number) and chance.random() < 0.7:
            kind = chance.choice(["token", "answer to a token", "answer to a token", "garbage"])
            exchanging[number] -= 1
        elif kind in {"handshake", "ticket"}:
            exchanging[number] = 6
        direction, payload = sent(kind, chance, chance.randrange(1, 6))
        now += chance.choice([0, 1, 5, -20])
        name = f"10.0.0.9:{50000 + number}>10.0.0.1:9092"
        index = counts[name, direction] = counts.get((name, direction), -1) + 1
        found.append(
            CapturedFrame(
                connection=name,
                direction=direction,
                timestamp_us=now,
                first_us=now - 1,
                index=index,
                size=len(payload) + 4,
                payload=payload,
                error="cut off" if kind.startswith("damaged") else None,
                is_placed=not kind.startswith("damaged") or chance.random() < 0.7,
            )
        )
    return found


def judged(frames: Iterable[CapturedFrame], seed: int) -> list[CapturedConnection]:
    """Return the kind of each connection, except for a tenth whose kind is unknown."""
    chance = random.Random(seed)
    names = sorted({one.connection for one in frames})
    ends = {name: name.split(">") for name in names if chance.random() < 0.9}
    return [
        CapturedConnection(
            connection=name,
            client=client,
            broker=broker,
            first_us=0,
            last_us=0,
            seen_from_start=chance.random() < 0.8,
            closed_by=None,
            reset=False,
            request_frames=0,
            response_frames=0,
            request_bytes=0,
            response_bytes=0,
            lost_bytes=0,
            captured_bytes=0,
            repeated_bytes=0,
            late_bytes=0,
            early_bytes=0,
            unreadable_bytes=0,
            is_kafka=chance.random() < 0.9,
            reads_as_kafka=chance.random() < 0.9,
            evidence="tests",
            looks_like=None,
        )
        for name, (client, broker) in ends.items()
    ]
