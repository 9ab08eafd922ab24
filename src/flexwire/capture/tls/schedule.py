"""From secrets to what opens records: the keys of one direction, and those after a KeyUpdate.

RFC 5246 (6.3, 6.2.3.3), RFC 7905, RFC 8446 (5.2, 5.3, 7.1 to 7.3). The ciphers are the package
cryptography's.
"""

from __future__ import annotations

import hmac
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from flexwire.extras import needed_by

if TYPE_CHECKING:
    from flexwire.capture.tls.suites import Suite

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


def primitives() -> _Primitives:
    """What opens records; `TlsError` where the package is missing."""
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


class Opener(Protocol):
    """The keys of one direction.

    ``overhead`` is how many bytes a record has besides its content. So many records, the
    ``finished``, end the handshake with these keys.
    """

    overhead: int
    finished: int

    def open(self, sequence: int, header: bytes, fragment: bytes) -> tuple[int, bytes] | None:
        """The content's type and the content, None if these are not its key and number."""

    def next(self) -> Opener | None:
        """The keys after a KeyUpdate, None where there is no such thing."""


class _Cipher:
    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        made = primitives()
        self._invalid = made.invalid
        self._cipher = (made.gcm if suite.is_gcm else made.chacha)(key)
        self._iv = int.from_bytes(iv)

    def nonce(self, sequence: int) -> bytes:
        return (self._iv ^ sequence).to_bytes(_NONCE_BYTES)

    def open(self, nonce: bytes, fragment: bytes, around: bytes) -> bytes | None:
        try:
            content: bytes = self._cipher.decrypt(nonce, fragment, around)
        except self._invalid:
            return None
        return content


class Opener13:
    """The keys of one direction of TLS 1.3, from its traffic secret."""

    overhead = HEADER_BYTES + 1 + TAG_BYTES
    finished = 0

    def __init__(self, suite: Suite, secret: bytes) -> None:
        self._suite, self._secret = suite, secret
        key = expand_label(suite.hash_name, secret, b"key", suite.key_bytes)
        iv = expand_label(suite.hash_name, secret, b"iv", _NONCE_BYTES)
        self._cipher = _Cipher(suite, key, iv)

    def open(self, sequence: int, header: bytes, fragment: bytes) -> tuple[int, bytes] | None:
        """See `Opener`."""
        if header[0] != APPLICATION or len(fragment) <= TAG_BYTES:
            return None
        inner = self._cipher.open(self._cipher.nonce(sequence), fragment, header)
        if inner is None:
            return None
        # Zeros pad it, and before them stands the type.
        inner = inner.rstrip(b"\x00")
        return (inner[-1], inner[:-1]) if inner else (0, b"")

    def next(self) -> Opener13:
        """See `Opener`."""
        name, size = self._suite.hash_name, len(self._secret)
        return Opener13(self._suite, expand_label(name, self._secret, b"traffic upd", size))


class Opener12:
    """The keys of one direction of TLS 1.2."""

    finished = 1

    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        self._is_gcm = suite.is_gcm
        self._salt = iv
        self._explicit = _EXPLICIT_BYTES if suite.is_gcm else 0
        self.overhead = HEADER_BYTES + self._explicit + TAG_BYTES
        self._cipher = _Cipher(suite, key, iv)

    def open(self, sequence: int, header: bytes, fragment: bytes) -> tuple[int, bytes] | None:
        """See `Opener`."""
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
        """See `Opener`: keys change by a new handshake only."""


def openers_12(suite: Suite, master: bytes, client: bytes, server: bytes) -> tuple[Opener, Opener]:
    """The client's and the server's, from the master secret and both randoms."""
    sizes = (suite.key_bytes, suite.key_bytes, suite.implicit_bytes, suite.implicit_bytes)
    block = _prf(suite.hash_name, master, b"key expansion" + server + client, sum(sizes))
    parts, start = [], 0
    for size in sizes:
        parts.append(block[start : start + size])
        start += size
    near_key, far_key, near_iv, far_iv = parts
    return Opener12(suite, near_key, near_iv), Opener12(suite, far_key, far_iv)


def expand_label(hash_name: str, secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446, 7.1)."""
    full = b"tls13 " + label
    info = struct.pack(">HB", size, len(full)) + full + b"\x00"
    made = primitives()
    expanded: bytes = made.expand(made.hashes[hash_name](), size, info).derive(secret)
    return expanded


def _prf(hash_name: str, secret: bytes, seed: bytes, size: int) -> bytes:
    """TLS 1.2's P_hash (RFC 5246, 5); ``seed`` begins with the label."""
    made, last = b"", seed
    while len(made) < size:
        last = hmac.digest(secret, last, hash_name)
        made += hmac.digest(secret, last + seed, hash_name)
    return made[:size]
