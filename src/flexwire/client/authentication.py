"""SASL from the client's side: a handshake names the mechanism, then tokens go to and fro."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from flexwire.client.scram import ScramClient
from flexwire.client.security import PLAIN
from flexwire.codec import message
from flexwire.errors import CallError, LoginError
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.protocol.shown import called

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.client.answers import Answer
    from flexwire.client.security import Login

HANDSHAKE: Final = "SaslHandshake"
AUTHENTICATE: Final = "SaslAuthenticate"
# The first version after which tokens travel inside messages (KIP-152).
_FRAMED: Final = 1


class Caller(Protocol):
    """What logs in needs of a broker: a request and its answer."""

    def call(self, message_name: str, body: Any = None, version: int | str = ...) -> Answer:
        """Send a request and give the answer."""

    def newest(self, api_name: str) -> int:
        """The newest version of an API that both know."""

    def exchange_token(self, token: bytes) -> bytes:
        """Send a token as a bare frame and give the frame that comes."""


def log_in(broker: Caller, login: Login) -> None:
    """Authenticate a connection; raises `LoginError` where the broker does not take the login."""
    version = broker.newest(HANDSHAKE)
    answer: Any = broker.call(HANDSHAKE, {"mechanism": login.mechanism}, version).response
    if answer.error_code != NO_ERROR:
        enabled = ", ".join(answer.mechanisms) or "none"
        raise LoginError(
            f"{called(answer.error_code)}: the broker does not take {login.mechanism}; "
            f"its listener has {enabled}"
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
            # Before KIP-152 a broker refuses by closing, and says no more.
            raise LoginError(
                f"after SaslHandshake v0 a broker that does not take {login.mechanism} of "
                f"{login.username!r} ends the connection without a word: {error}"
            ) from None

    return send


def _in_messages(broker: Caller, login: Login) -> Callable[[bytes], bytes]:
    version = broker.newest(AUTHENTICATE)

    def send(token: bytes) -> bytes:
        body = message(f"{AUTHENTICATE}Request")(auth_bytes=token)
        answer: Any = broker.call(AUTHENTICATE, body, version).response
        if answer.error_code != NO_ERROR:
            # What a mechanism answers may quote the token, so its own words are not shown.
            raise LoginError(
                f"{called(answer.error_code)}: the broker does not take {login.mechanism} "
                f"of {login.username!r}"
            )
        given: bytes = answer.auth_bytes
        return given

    return send
