"""Compute TLS conversations from the key schedule: suites and KeyUpdates no library here makes.

The keys come from Python's HMAC, not from the tested code.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from tests.tls_streams import Conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.tls_streams import Flight

_Aead = type[AESGCM] | type[ChaCha20Poly1305]
_SUITES_13: dict[int, tuple[_Aead, int, str]] = {
    0x1301: (AESGCM, 16, "sha256"),
    0x1302: (AESGCM, 32, "sha384"),
    0x1303: (ChaCha20Poly1305, 32, "sha256"),
}
_GCM_128_OF_1_2 = 0xC02B
# The values differ from each other, and a failure can be repeated.
_RANDOM = random.Random(5246)


@dataclass
class Made(Conversation):
    """A conversation and its key log."""

    keylog: bytes = b""


def expand(name: str, secret: bytes, label: str, size: int) -> bytes:
    full = b"tls13 " + label.encode()
    info = struct.pack(">H", size) + bytes([len(full)]) + full + b"\x00"
    made, last = b"", b""
    for count in range(1, 5):
        last = hmac.new(secret, last + info + bytes([count]), name).digest()
        made += last
    return made[:size]


class _Sealer:
    def __init__(self, suite: int, secret: bytes) -> None:
        self.suite, self.secret, self.sequence = suite, secret, 0
        cipher, size, name = _SUITES_13[suite]
        self.cipher: AESGCM | ChaCha20Poly1305 = cipher(expand(name, secret, "key", size))
        self.iv = int.from_bytes(expand(name, secret, "iv", 12))

    def seal(self, kind: int, content: bytes, padding: int = 0) -> bytes:
        inner = content + bytes([kind]) + bytes(padding)
        header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2)
        nonce = (self.iv ^ self.sequence).to_bytes(12)
        self.sequence += 1
        return header + self.cipher.encrypt(nonce, inner, header)

    def next(self) -> _Sealer:
        name = _SUITES_13[self.suite][2]
        return _Sealer(self.suite, expand(name, self.secret, "traffic upd", len(self.secret)))


def _record(kind: int, data: bytes) -> bytes:
    return bytes([kind, 3, 3]) + len(data).to_bytes(2) + data


def _message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3) + body


def client_hello(random: bytes, extensions: bytes = b"") -> bytes:
    body = b"\x03\x03" + random + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    return _record(22, _message(1, body + len(extensions).to_bytes(2) + extensions))


def server_hello(random: bytes, suite: int, extensions: bytes = b"", session: bytes = b"") -> bytes:
    body = b"\x03\x03" + random + bytes([len(session)]) + session + suite.to_bytes(2) + b"\x00"
    return _record(22, _message(2, body + len(extensions).to_bytes(2) + extensions))


def made_1_3(
    suite: int, exchanges: list[Flight], *, updates: int, alerts: Sequence[Flight] = ()
) -> Made:
    """Return a TLS 1.3 conversation with a HelloRetryRequest, padded records and key updates.

    ``updates`` determines how often both ends update their keys. The conversation ends with their
    ``alerts``.
    """
    name = _SUITES_13[suite][2]
    size = hashlib.new(name).digest_size
    random, near, far, other = (
        _RANDOM.randbytes(32),
        _RANDOM.randbytes(size),
        _RANDOM.randbytes(size),
        _RANDOM.randbytes(size),
    )
    chosen = bytes.fromhex("002b00020304")
    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    change = _record(20, b"\x01")
    handshake = _Sealer(suite, other)
    made = Made()
    made.keylog = (
        f"CLIENT_TRAFFIC_SECRET_0 {random.hex()} {near.hex()}\n"
        f"SERVER_TRAFFIC_SECRET_0 {random.hex()} {far.hex()}\n"
    ).encode()
    made.flights = [
        ("request", client_hello(random)),
        ("response", server_hello(retry, suite, chosen) + change),
        ("request", change + client_hello(random)),
        ("response", server_hello(_RANDOM.randbytes(32), suite, chosen)),
        (
            "response",
            handshake.seal(22, _RANDOM.randbytes(900)) + handshake.seal(22, _RANDOM.randbytes(90)),
        ),
        ("request", handshake.seal(22, _RANDOM.randbytes(52))),
    ]
    sealers = {"request": _Sealer(suite, near), "response": _Sealer(suite, far)}
    every = max(1, len(exchanges) // (updates + 1))
    for number, (end, data) in enumerate(exchanges):
        sealed = b""
        if number % every == every - 1:
            for which, sealer in sealers.items():
                update = sealer.seal(22, _message(24, b"\x00"))
                made.flights.append((which, update))
                sealers[which] = sealer.next()
        for at in range(0, len(data), 16000):
            sealed += sealers[end].seal(23, data[at : at + 16000], padding=number % 7)
        made.flights.append((end, sealed))
        made.sent[end] += data
    made.flights += [(end, sealers[end].seal(21, alert)) for end, alert in alerts]
    return made


def renegotiated_1_2(exchanges: list[Flight], *, by_session: bool) -> Made:
    """Return a TLS 1.2 conversation with AES-128-GCM, which the client renegotiates at the end.

    The key log identifies the secret by the session id (``by_session``), as Java's agent does, or
    by the client random.
    """
    random, other, master = _RANDOM.randbytes(32), _RANDOM.randbytes(32), _RANDOM.randbytes(48)
    seed, block, last = b"key expansion" + other + random, b"", b"key expansion" + other + random
    while len(block) < 40:
        last = hmac.new(master, last, "sha256").digest()
        block += hmac.new(master, last + seed, "sha256").digest()
    keys = {"request": (block[:16], block[32:36]), "response": (block[16:32], block[36:40])}
    counts = {"request": 0, "response": 0}

    def seal(end: str, kind: int, data: bytes) -> bytes:
        key, salt = keys[end]
        explicit = _RANDOM.randbytes(8)
        around = counts[end].to_bytes(8) + bytes([kind, 3, 3]) + len(data).to_bytes(2)
        counts[end] += 1
        return _record(kind, explicit + AESGCM(key).encrypt(salt + explicit, data, around))

    made = Made()
    made.keylog = f"CLIENT_RANDOM {random.hex()} {master.hex()}\n".encode()
    session = _RANDOM.randbytes(32)
    if by_session:
        made.keylog = f"RSA Session-ID:{session.hex()} Master-Key:{master.hex()}\n".encode()
    hello = server_hello(other, _GCM_128_OF_1_2, session=session)
    made.flights = [("request", client_hello(random)), ("response", hello)]
    for end in ("request", "response"):
        finished = seal(end, 22, _message(20, bytes(12)))
        made.flights.append((end, _record(20, b"\x01") + finished))
    for end, data in exchanges:
        for at in range(0, len(data), 16000):
            made.flights.append((end, seal(end, 23, data[at : at + 16000])))
        made.sent[end] += data
    made.flights.append(("request", seal("request", 22, client_hello(random)[5:])))
    made.flights.append(("request", seal("request", 23, b"not to be read")))
    return made
