"""Compute the keys for TLS records from a handshake and its secrets.

The rules are in RFC 5246 (6.3, 6.2.3.3), RFC 7905, and RFC 8446 (5.2, 5.3, 7.1 to 7.3). The package
cryptography provides the ciphers.
"""

from __future__ import annotations

import hmac
import struct
from typing import Any, Final, NamedTuple, Protocol

from flexwire.capture.tls.keylog import RANDOM_BYTES
from flexwire.extras import needed_by

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
    """The random of a Hello message.

    A ServerHello also contains the version, the cipher suite and the session.
    """

    random: bytes
    version: int
    suite: int = 0
    has_early_data: bool = False
    session: bytes = b""


def begins_client_hello(data: bytes) -> bool:
    """Return whether a stream appears to begin with a ClientHello record."""
    kind = data[_KIND_AT : _KIND_AT + 1]
    return data[:2] == b"\x16\x03"[: len(data)] and kind in {b"", bytes([CLIENT_HELLO])}


def read_random(data: bytes) -> bytes | None:
    """Return the random of a ClientHello record, or None if the record is truncated."""
    random = data[_RANDOM_AT : _RANDOM_AT + RANDOM_BYTES]
    return random if len(random) == RANDOM_BYTES else None


def looks_encrypted(data: bytes) -> bool:
    """Return whether the bytes begin with a TLS record."""
    return 20 <= data[0] <= 23 and data[1:2] == b"\x03" if data else False  # noqa: PLR2004 - these are the types of records


def parse_client_hello(body: bytes) -> Hello | None:
    """Return the content of a ClientHello, or None if the bytes are not one."""
    try:
        version, random, at = _begin(body)
        at += 2 + struct.unpack_from(">H", body, at)[0]
        at += 1 + body[at]
    except (struct.error, IndexError):
        return None
    return Hello(random, version, has_early_data=_EARLY_DATA in _extensions(body, at))


def parse_server_hello(body: bytes) -> Hello | None:
    """Return the content of a ServerHello, or None if the bytes are not one."""
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
    """Return the version, the random, and the position after the session id."""
    version, random, session = struct.unpack_from(f">H{RANDOM_BYTES}sB", body)
    return version, random, 2 + RANDOM_BYTES + 1 + session


def _extensions(body: bytes, at: int) -> dict[int, bytes]:
    extensions: dict[int, bytes] = {}
    at += 2
    while at + 4 <= len(body):
        number, size = struct.unpack_from(">HH", body, at)
        at += 4
        if size > len(body) - at:
            break
        extensions[number] = body[at : at + size]
        at += size
    return extensions


TLS_1_2: Final = 0x0303
TLS_1_3: Final = 0x0304
VERSION_NAMES: Final = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1"}


class Suite(NamedTuple):
    """A cipher suite: its cipher, the number of bytes in its key, and the hash for deriving keys.

    In TLS 1.2, ``implicit_bytes`` of the nonce come from the keys, and the rest of the nonce is in
    each record.
    """

    is_gcm: bool
    key_bytes: int
    hash_name: str
    implicit_bytes: int


_GCM_128 = Suite(is_gcm=True, key_bytes=16, hash_name="sha256", implicit_bytes=4)
_GCM_256 = Suite(is_gcm=True, key_bytes=32, hash_name="sha384", implicit_bytes=4)
_CHACHA = Suite(is_gcm=False, key_bytes=32, hash_name="sha256", implicit_bytes=12)

# From IANA's registry. Suites that differ only in the key exchange (RSA, DHE, ECDHE) or the
# signature (RSA, DSS, ECDSA) are listed together, because neither affects how keys are derived.
_OF_TLS_1_2: Final = (
    dict.fromkeys((0x009C, 0x009E, 0x00A2, 0xC02B, 0xC02D, 0xC02F, 0xC031), _GCM_128)
    | dict.fromkeys((0x009D, 0x009F, 0x00A3, 0xC02C, 0xC02E, 0xC030, 0xC032), _GCM_256)
    | dict.fromkeys((0xCCA8, 0xCCA9, 0xCCAA), _CHACHA)
)
_OF_TLS_1_3: Final = {0x1301: _GCM_128, 0x1302: _GCM_256, 0x1303: _CHACHA}
SUITES: Final = {TLS_1_2: _OF_TLS_1_2, TLS_1_3: _OF_TLS_1_3}
"""The cipher suites by TLS version and suite number."""

HEADER_BYTES: Final = 5
TAG_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_EXPLICIT_BYTES: Final = 8
APPLICATION: Final = 23


class _Primitives(NamedTuple):
    gcm: Any
    chacha: Any
    invalid: type[Exception]
    expand: Any
    hashes: dict[str, Any]


def load_primitives() -> _Primitives:
    """Return the functions that decrypt records. Raises `TlsError` if the package is missing."""
    with needed_by("a key log", "tls"):
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - optional
        from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415 - optional
            AESGCM,
            ChaCha20Poly1305,
        )
        from cryptography.hazmat.primitives.hashes import SHA256, SHA384  # noqa: PLC0415 - optional
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand  # noqa: PLC0415 - optional
    hashes = {"sha256": SHA256, "sha384": SHA384}
    return _Primitives(AESGCM, ChaCha20Poly1305, InvalidTag, HKDFExpand, hashes)


class RecordKeys(Protocol):
    """The keys of one direction.

    ``overhead`` is the number of bytes that a record contains in addition to its content.
    ``finished`` is the number of records at the end of the handshake that use these keys.
    """

    overhead: int
    finished: int

    def open(self, sequence: int, header: bytes, fragment: bytes) -> tuple[int, bytes] | None:
        """Return a record's type and content, or None if the key or number is incorrect."""

    def next(self) -> RecordKeys | None:
        """Return the keys after a KeyUpdate, or None if the version has no KeyUpdate."""


class _Cipher:
    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        primitives = load_primitives()
        self._invalid = primitives.invalid
        self._cipher = (primitives.gcm if suite.is_gcm else primitives.chacha)(key)
        self._iv = int.from_bytes(iv)

    def nonce(self, sequence: int) -> bytes:
        return (self._iv ^ sequence).to_bytes(_NONCE_BYTES)

    def open(self, nonce: bytes, fragment: bytes, around: bytes) -> bytes | None:
        try:
            content: bytes = self._cipher.decrypt(nonce, fragment, around)
        except self._invalid:
            return None
        return content


class RecordKeys13:
    """The keys of one direction in TLS 1.3, derived from its traffic secret."""

    overhead = HEADER_BYTES + 1 + TAG_BYTES
    finished = 0

    def __init__(self, suite: Suite, secret: bytes) -> None:
        self._suite, self._secret = suite, secret
        key = expand_label(suite.hash_name, secret, b"key", suite.key_bytes)
        iv = expand_label(suite.hash_name, secret, b"iv", _NONCE_BYTES)
        self._cipher = _Cipher(suite, key, iv)

    def open(self, sequence: int, header: bytes, fragment: bytes) -> tuple[int, bytes] | None:
        """Decrypt a record, as `RecordKeys` describes."""
        if header[0] != APPLICATION or len(fragment) <= TAG_BYTES:
            return None
        inner = self._cipher.open(self._cipher.nonce(sequence), fragment, header)
        if inner is None:
            return None
        # The content is padded with zeros, and the content's type precedes the zeros.
        inner = inner.rstrip(b"\x00")
        return (inner[-1], inner[:-1]) if inner else (0, b"")

    def next(self) -> RecordKeys13:
        """Return the keys after a KeyUpdate, as `RecordKeys` describes."""
        name, size = self._suite.hash_name, len(self._secret)
        return RecordKeys13(self._suite, expand_label(name, self._secret, b"traffic upd", size))


class RecordKeys12:
    """The keys of one direction in TLS 1.2."""

    finished = 1

    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        self._is_gcm = suite.is_gcm
        self._salt = iv
        self._explicit = _EXPLICIT_BYTES if suite.is_gcm else 0
        self.overhead = HEADER_BYTES + self._explicit + TAG_BYTES
        self._cipher = _Cipher(suite, key, iv)

    def open(self, sequence: int, header: bytes, fragment: bytes) -> tuple[int, bytes] | None:
        """Decrypt a record, as `RecordKeys` describes."""
        size = len(fragment) - self._explicit - TAG_BYTES
        if size < 0:
            return None
        around = struct.pack(">Q3sH", sequence, header[:3], size)
        nonce = self._salt + fragment[:_EXPLICIT_BYTES]
        if not self._is_gcm:
            nonce = self._cipher.nonce(sequence)
        content = self._cipher.open(nonce, fragment[self._explicit :], around)
        return None if content is None else (header[0], content)

    def next(self) -> None:
        """Return None, because in TLS 1.2, keys change only with a new handshake."""


def derive_keys_12(
    suite: Suite, master: bytes, client: bytes, server: bytes
) -> tuple[RecordKeys, RecordKeys]:
    """Return the keys of client and server, derived from the master secret and both randoms."""
    sizes = (suite.key_bytes, suite.key_bytes, suite.implicit_bytes, suite.implicit_bytes)
    block = _prf(suite.hash_name, master, b"key expansion" + server + client, sum(sizes))
    parts, start = [], 0
    for size in sizes:
        parts.append(block[start : start + size])
        start += size
    near_key, far_key, near_iv, far_iv = parts
    return RecordKeys12(suite, near_key, near_iv), RecordKeys12(suite, far_key, far_iv)


def expand_label(hash_name: str, secret: bytes, label: bytes, size: int) -> bytes:
    """Compute HKDF-Expand-Label with an empty context (RFC 8446, 7.1)."""
    full = b"tls13 " + label
    info = struct.pack(">HB", size, len(full)) + full + b"\x00"
    primitives = load_primitives()
    expanded: bytes = primitives.expand(primitives.hashes[hash_name](), size, info).derive(secret)
    return expanded


def _prf(hash_name: str, secret: bytes, seed: bytes, size: int) -> bytes:
    """Compute P_hash as defined by TLS 1.2 (RFC 5246, 5). ``seed`` begins with the label."""
    output, last = b"", seed
    while len(output) < size:
        last = hmac.digest(secret, last, hash_name)
        output += hmac.digest(secret, last + seed, hash_name)
    return output[:size]
