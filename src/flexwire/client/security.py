"""The settings for connections to a broker: plaintext or TLS, and the login.

Channel binding is not supported, as in Kafka. A password is used as its UTF-8 bytes, as in Kafka.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from flexwire.codec import message
from flexwire.errors import CallError, ClientConfigError, LoginError
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.protocol.readable_json import describe_error_code

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from flexwire.client.answers import BrokerAnswer


HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST_ITERATIONS: Final = 4096
"""The smallest accepted number of iterations. With fewer iterations, the password would be easy to
guess. Kafka's own clients also refuse fewer iterations.
"""
MOST_ITERATIONS: Final = 1_000_000
"""The largest accepted number of iterations. Kafka's tools set at most 16,384 iterations. A million
iterations take about a second.
"""

# The GS2 header: the client requests neither channel binding nor another identity.
_GS2_HEADER: Final = "n,,"


class ScramClient:
    """One SCRAM exchange: send `first`, then pass the broker's answers to `final` and `verify`.

    `final` and `verify` raise `LoginError` for an answer that violates the RFC.

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
        """Initialize. With ``is_token``, use the id and the HMAC of a delegation token (KIP-48)."""
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = secrets.token_urlsafe(24) if nonce is None else nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if is_token else ""
        self._first_bare = f"n={name},r={self._nonce}{extension}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return (_GS2_HEADER + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client's final message, which contains the proof."""
        server_text = _text(server_first)
        attributes = _attributes(server_text, "r", "s", "i")
        nonce, salt = attributes["r"], _base64(attributes["s"], "salt")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise LoginError("SCRAM: the broker's nonce does not extend the client's nonce")
        if not salt:
            raise LoginError("SCRAM: the broker's salt is empty")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, _iterations(attributes["i"]))
        without_proof = f"c={base64.b64encode(_GS2_HEADER.encode()).decode()},r={nonce}"
        signed = f"{self._first_bare},{server_text},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = self._hmac(stored_key, signed)
        proof = bytes(byte ^ mask for byte, mask in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check the broker's proof that it also knows the password."""
        server_text = _text(server_final)
        if server_text.startswith("e="):
            # With this mechanism, the answer may quote the token.
            raise LoginError("SCRAM: the broker rejected the proof")
        signature = _base64(_attributes(server_text, "v")["v"], "signature")
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise LoginError(
                "SCRAM: the broker's signature is wrong: the broker does not know the secret"
            )

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise LoginError("SCRAM: the broker's message is not UTF-8") from None


def _attributes(message: str, *names: str) -> dict[str, str]:
    """Return the attributes at the start of a message, in this order. Extensions may follow."""
    attributes: dict[str, str] = {}
    parts = message.split(",")
    for name, part in zip(names, parts, strict=False):
        key, equals, value = part.partition("=")
        if not equals or key != name:
            break
        attributes[name] = value
    if len(attributes) < len(names):
        raise LoginError(
            f"SCRAM: expected the attributes {', '.join(names)} at the start of the broker's "
            "message"
        )
    return attributes


def _base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise LoginError(f"SCRAM: the broker's {what} is not base64") from None


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_ITERATIONS))):
        raise LoginError("SCRAM: the broker's iteration count is not a valid number")
    count = int(text)
    if not FEWEST_ITERATIONS <= count <= MOST_ITERATIONS:
        raise LoginError(
            f"SCRAM: expected {FEWEST_ITERATIONS} to {MOST_ITERATIONS} iterations, got {count}"
        )
    return count


PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *HASHES)


@dataclass(frozen=True, slots=True)
class Login:
    """The user name and password for SASL. The password is never shown.

    With ``is_token``, they are the id and the HMAC of a delegation token.

    >>> Login("PLAIN", "alice", "secret")
    Login(mechanism='PLAIN', username='alice', is_token=False)
    """

    mechanism: str
    username: str
    password: str = field(repr=False)
    is_token: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ClientConfigError(
                f"expected one of the SASL mechanisms {', '.join(MECHANISMS)}, "
                f"got {self.mechanism!r}"
            )
        try:
            f"{self.username}{self.password}".encode()
        except UnicodeEncodeError:
            # The error message quotes the input.
            raise ClientConfigError(
                "user name and password: expected text that UTF-8 can encode"
            ) from None
        if self.is_token and self.mechanism == PLAIN:
            raise ClientConfigError("expected a SCRAM mechanism for a delegation token, got PLAIN")


@dataclass(frozen=True, slots=True)
class Security:
    """TLS with a ``context``, if given (see `client_context`), and SASL with a ``login``.

    ``server_name`` is the name in the broker's certificate, if it differs from the address.
    """

    context: ssl.SSLContext | None = None
    login: Login | None = None
    server_name: str | None = None

    @property
    def lays_password_open(self) -> bool:
        """True if anyone on the network can read the password, as with PLAIN without TLS."""
        is_plain = self.login is not None and self.login.mechanism == PLAIN
        return is_plain and self.context is None


PLAINTEXT: Final = Security()

HANDSHAKE: Final = "SaslHandshake"
AUTHENTICATE: Final = "SaslAuthenticate"
# The first version in which tokens are sent inside messages (KIP-152).
_FRAMED: Final = 1


class Caller(Protocol):
    """The methods that a login needs from a broker: they send a request and return the answer."""

    def call(self, message_name: str, body: Any = None, version: int | str = ...) -> BrokerAnswer:
        """Send a request and return the answer."""

    def newest(self, api_name: str) -> int:
        """Return the newest version of an API that both the client and the broker support."""

    def exchange_token(self, token: bytes) -> bytes:
        """Send a token as a bare frame, and return the next frame."""


def log_in(broker: Caller, login: Login) -> None:
    """Authenticate a connection. Raises `LoginError` if the broker refuses the login."""
    version = broker.newest(HANDSHAKE)
    answer: Any = broker.call(HANDSHAKE, {"mechanism": login.mechanism}, version).response
    if answer.error_code != NO_ERROR:
        enabled = ", ".join(answer.mechanisms) or "none"
        name = describe_error_code(answer.error_code)
        raise LoginError(
            f"{name}: the broker does not accept {login.mechanism}; enabled mechanisms: {enabled}"
        )
    send = _in_messages(broker, login) if version >= _FRAMED else _bare(broker, login)
    if login.mechanism == PLAIN:
        send(f"\0{login.username}\0{login.password}".encode())
        return
    scram = ScramClient(login.mechanism, login.username, login.password, is_token=login.is_token)
    scram.verify(send(scram.final(send(scram.first()))))


def _bare(broker: Caller, login: Login) -> Callable[[bytes], bytes]:
    def send(token: bytes) -> bytes:
        try:
            return broker.exchange_token(token)
        except CallError as error:
            # Before KIP-152, a broker refuses a login by closing the connection without giving a
            # reason.
            raise LoginError(
                f"after SaslHandshake v0, a broker that refuses {login.mechanism} for "
                f"{login.username!r} closes the connection and gives no reason: {error}"
            ) from None

    return send


def _in_messages(broker: Caller, login: Login) -> Callable[[bytes], bytes]:
    version = broker.newest(AUTHENTICATE)

    def send(token: bytes) -> bytes:
        body = message(f"{AUTHENTICATE}Request")(auth_bytes=token)
        answer: Any = broker.call(AUTHENTICATE, body, version).response
        if answer.error_code != NO_ERROR:
            # With this mechanism, the answer may quote the token, so its text is not shown.
            name = describe_error_code(answer.error_code)
            raise LoginError(
                f"{name}: the broker refuses the {login.mechanism} login of {login.username!r}"
            )
        token_back: bytes = answer.auth_bytes
        return token_back

    return send
