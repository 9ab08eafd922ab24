"""What a ClientHello and a ServerHello say that records are opened by."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from flexwire.capture.tls.keylog import RANDOM_BYTES

CLIENT_HELLO: Final = 1
SERVER_HELLO: Final = 2
HANDSHAKE: Final = 22
MESSAGE_HEAD: Final = 4
_SUPPORTED_VERSIONS: Final = 43
_EARLY_DATA: Final = 42
_VERSION_BYTES: Final = 2
_SESSION_AT: Final = _VERSION_BYTES + RANDOM_BYTES + 1
_KIND_AT: Final = 5
_RANDOM_AT: Final = _KIND_AT + MESSAGE_HEAD + 2


class Hello(NamedTuple):
    """A random and, of a ServerHello, the version, cipher suite and session that were chosen."""

    random: bytes
    version: int
    suite: int = 0
    has_early_data: bool = False
    session: bytes = b""


def begins_client_hello(data: bytes) -> bool:
    """Whether a stream that begins so begins with a record of a ClientHello, as far as it shows."""
    kind = data[_KIND_AT : _KIND_AT + 1]
    return data[:2] == b"\x16\x03"[: len(data)] and kind in {b"", bytes([CLIENT_HELLO])}


def random_of(data: bytes) -> bytes | None:
    """The random of a ClientHello, from the start of its record on; None if it is cut off."""
    random = data[_RANDOM_AT : _RANDOM_AT + RANDOM_BYTES]
    return random if len(random) == RANDOM_BYTES else None


def looks_encrypted(data: bytes) -> bool:
    """Whether a record of TLS stands here."""
    return 20 <= data[0] <= 23 and data[1:2] == b"\x03" if data else False  # noqa: PLR2004 - types


def parse_client_hello(body: bytes) -> Hello | None:
    """What a ClientHello says; None if it is not one."""
    try:
        version, random, at = _begin(body)
        at += 2 + struct.unpack_from(">H", body, at)[0]
        at += 1 + body[at]
    except (struct.error, IndexError):
        return None
    return Hello(random, version, has_early_data=_EARLY_DATA in _extensions(body, at))


def parse_server_hello(body: bytes) -> Hello | None:
    """What a ServerHello says; None if it is not one."""
    try:
        version, random, at = _begin(body)
        (suite,) = struct.unpack_from(">H", body, at)
    except (struct.error, IndexError):
        return None
    chosen = _extensions(body, at + 3).get(_SUPPORTED_VERSIONS, b"")
    if len(chosen) == _VERSION_BYTES:
        version = int.from_bytes(chosen)
    return Hello(random, version, suite, session=body[_SESSION_AT:at])


def _begin(body: bytes) -> tuple[int, bytes, int]:
    """Version, random, and where what follows the session id begins."""
    version, random, session = struct.unpack_from(f">H{RANDOM_BYTES}sB", body)
    return version, random, 2 + RANDOM_BYTES + 1 + session


def _extensions(body: bytes, at: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at += 2
    while at + 4 <= len(body):
        number, size = struct.unpack_from(">HH", body, at)
        at += 4
        if size > len(body) - at:
            break
        found[number] = body[at : at + size]
        at += size
    return found
