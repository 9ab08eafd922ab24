"""Make TLS conversations in memory, with their key logs, and captures of the conversations."""

from __future__ import annotations

import random
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexwire.capture.files.packets import SocketAddress, tcp_packet
from flexwire.capture.files.pcapng import block
from flexwire.wire.segment_layout import ACK, FIN, SYN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.tls import Authority

NEAR, FAR = SocketAddress(bytes([10, 0, 0, 9]), 50000), SocketAddress(bytes([10, 0, 0, 1]), 9093)
NAME = "10.0.0.9:50000>10.0.0.1:9093"
Flight = tuple[str, bytes]
FAREWELL = (("request", FIN | ACK), ("response", FIN | ACK), ("request", ACK))


@dataclass
class Conversation:
    """The bytes that both ends of a TLS connection sent, in order, both encrypted and plain."""

    flights: list[Flight] = field(default_factory=list)
    sent: dict[str, bytes] = field(default_factory=lambda: {"request": b"", "response": b""})

    def stream(self, end: str) -> bytes:
        return b"".join(data for one, data in self.flights if one == end)


def contexts(
    authority: Authority, keylog: Path | None, version: ssl.TLSVersion, ciphers: str | None = None
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a context for a client and one for a server; the client's secrets are logged."""
    near = ssl.create_default_context(cafile=str(authority.path))
    far = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    far.load_cert_chain(*map(str, authority.certificate()))
    for one in (near, far):
        one.minimum_version = one.maximum_version = version
        if ciphers is not None:
            one.set_ciphers(ciphers)
    if keylog is not None:
        near.keylog_filename = str(keylog)
    return near, far


def converse(
    near: ssl.SSLContext,
    far: ssl.SSLContext,
    exchanges: list[Flight],
    *,
    session: ssl.SSLSession | None = None,
    ends: Sequence[str] = ("request", "response"),
) -> tuple[Conversation, ssl.SSLSession | None]:
    """Shake hands, send the ``exchanges``, and close; the ``ends`` close in the given order."""
    made = Conversation()
    ins = {"request": ssl.MemoryBIO(), "response": ssl.MemoryBIO()}
    outs = {"request": ssl.MemoryBIO(), "response": ssl.MemoryBIO()}
    client = near.wrap_bio(
        ins["request"], outs["request"], server_hostname="localhost", session=session
    )
    server = far.wrap_bio(ins["response"], outs["response"], server_side=True)

    def carry(end: str) -> None:
        if data := outs[end].read():
            made.flights.append((end, data))
            ins["response" if end == "request" else "request"].write(data)

    waiting = {"request": client, "response": server}
    while waiting:
        for end, one in list(waiting.items()):
            with suppress(ssl.SSLWantReadError):
                one.do_handshake()
                del waiting[end]
            carry(end)
    for end, data in exchanges:
        sender, receiver = (client, server) if end == "request" else (server, client)
        sender.write(data)
        carry(end)
        made.sent[end] += data
        received = b""
        while len(received) < len(data):
            received += receiver.read(1 << 20)
    for end in ends:
        with suppress(ssl.SSLWantReadError):
            (client if end == "request" else server).unwrap()
        carry(end)
    return made, client.session


def packets(  # noqa: PLR0913 - what can happen to a capture
    flights: list[Flight],
    *,
    seed: int = 0,
    most: int = 1400,
    lost: set[int] = frozenset(),  # type: ignore[assignment]  # nothing is added to it
    syn: bool = True,
    ending: Sequence[tuple[str, int]] = FAREWELL,
    start: int = 1000,
    swaps: bool = False,
    near: SocketAddress = NEAR,
) -> list[bytes]:
    """Return the packets of a connection, cut at random, without the data packets in ``lost``."""
    shuffled = random.Random(seed)
    ends = {"request": (near, FAR), "response": (FAR, near)}
    places = {"request": start, "response": (1 << 32) - 700}
    found: list[bytes] = []

    def add(end: str, flags: int, payload: bytes = b"") -> bytes:
        other = "response" if end == "request" else "request"
        packet = tcp_packet(
            *ends[end],
            sequence=places[end],
            acknowledgment=places[other] if flags & ACK else 0,
            flags=flags,
            payload=payload,
        )
        places[end] += len(payload) + (1 if flags & (SYN | FIN) else 0)
        return packet

    opening = [add("request", SYN), add("response", SYN | ACK), add("request", ACK)]
    found += opening if syn else []
    count = 0
    for end, data in flights:
        at, group = 0, []
        while at < len(data):
            size = shuffled.randint(1, most)
            packet = add(end, ACK, data[at : at + size])
            if count not in lost:
                group.append(packet)
            count += 1
            at += size
        if swaps:
            shuffled.shuffle(group)
        found += group
    return found + [add(end, flags) for end, flags in ending]


def capture(
    path: Path, found: list[bytes], *, secrets: bytes | None = None, start: int = 0
) -> Path:
    """Write and return a pcapng file that contains ``secrets``, and packets a millisecond apart.

    ``start`` is the number of packets that precede the first one.
    """
    data = block(0x0A0D0D0A, struct.pack("<IHHQ", 0x1A2B3C4D, 1, 0, (1 << 64) - 1))
    data += block(1, struct.pack("<HHI", 101, 0, 0))
    if secrets is not None:
        body = struct.pack("<II", 0x544C534B, len(secrets)) + secrets
        data += block(10, body + bytes(-len(body) % 4))
    for number, packet in enumerate(found, start):
        time = 1_700_000_000_000_000 + number * 1000
        head = struct.pack("<5I", 0, time >> 32, time & 0xFFFFFFFF, len(packet), len(packet))
        data += block(6, head + packet + bytes(-len(packet) % 4))
    path.write_bytes(data)
    return path
