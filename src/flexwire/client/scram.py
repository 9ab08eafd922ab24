"""SCRAM, the client's side: proves that it knows a password, and that the broker does (RFC 5802).

No channel binding, as in Kafka. A password is taken as its UTF-8 bytes, which Kafka does too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final

from flexwire.errors import LoginError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST_ITERATIONS: Final = 4096
"""Fewer would be a broker that wants the password guessed; Kafka's own clients refuse them too."""
MOST_ITERATIONS: Final = 1_000_000
"""Kafka's tools set 16,384 at the most; a million takes about a second."""

# No channel binding, and no other name to act for.
_GS2_HEADER: Final = "n,,"


class ScramClient:
    """One exchange: `first` is sent, then `final` and `verify` take what the broker answers.

    Each raises `LoginError` for an answer that breaks the RFC.

    >>> client = ScramClient("SCRAM-SHA-256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    >>> client.first()
    b'n,,n=user,r=rOprNGfwEbeRWgbNEkqO'
    """

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        is_token: bool = False,
        nonce: str | None = None,
    ) -> None:
        """``is_token``: name and password are the id and HMAC of a delegation token (KIP-48)."""
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = secrets.token_urlsafe(24) if nonce is None else nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if is_token else ""
        self._first_bare = f"n={name},r={self._nonce}{extension}"
        self._server_signature = b""

    def first(self) -> bytes:
        """The client's first message."""
        return (_GS2_HEADER + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """The client's last message, which has the proof."""
        said = _text(server_first)
        attributes = _attributes(said, "r", "s", "i")
        nonce, salt = attributes["r"], _base64(attributes["s"], "salt")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise LoginError("SCRAM: the broker's nonce does not continue the client's")
        if not salt:
            raise LoginError("SCRAM: the broker's salt is empty")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, _iterations(attributes["i"]))
        without_proof = f"c={base64.b64encode(_GS2_HEADER.encode()).decode()},r={nonce}"
        signed = f"{self._first_bare},{said},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = self._hmac(stored_key, signed)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the broker knows the password as well."""
        said = _text(server_final)
        if said.startswith("e="):
            # What a mechanism answers may quote the token.
            raise LoginError("SCRAM: the broker refuses the proof")
        signature = _base64(_attributes(said, "v")["v"], "signature")
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise LoginError("SCRAM: the broker's signature is wrong: it does not know the secret")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise LoginError("SCRAM: the broker's message is not UTF-8") from None


def _attributes(message: str, *wanted: str) -> dict[str, str]:
    """The attributes with which a message begins, in order; extensions may follow them."""
    found: dict[str, str] = {}
    parts = message.split(",")
    for name, part in zip(wanted, parts, strict=False):
        key, equals, value = part.partition("=")
        if not equals or key != name:
            break
        found[name] = value
    if len(found) < len(wanted):
        raise LoginError(f"SCRAM: expected {', '.join(wanted)} in the broker's message")
    return found


def _base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise LoginError(f"SCRAM: the broker's {what} is not base64") from None


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_ITERATIONS))):
        raise LoginError("SCRAM: the broker's count of iterations is not one")
    count = int(text)
    if not FEWEST_ITERATIONS <= count <= MOST_ITERATIONS:
        raise LoginError(
            f"SCRAM: expected {FEWEST_ITERATIONS} to {MOST_ITERATIONS} iterations, got {count}"
        )
    return count
