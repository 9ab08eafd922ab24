"""Authentication on a connection: when it may be running, and SASL tokens as bare frames.

Tokens hold credentials and may look like anything. So nothing here tries to recognize one, except
for the first of GSSAPI. Where a token may come, every frame that is not a request is a token. Bytes
that cannot be decoded are guarded as a credential until the connection has shown that it is not
authenticating.
"""

from __future__ import annotations

import re
from typing import Final

from flexwire.protocol.apis import is_released
from flexwire.protocol.credentials import hides_credentials
from flexwire.protocol.headers import RequestFrame, decodes, read_released, read_request

# The requests that may come before authentication, also in versions of no release (KIP-511).
NEGOTIATES: Final = "ApiVersionsRequest"
HANDSHAKES: Final = "SaslHandshakeRequest"
# The mechanism that is bound to a host's name.
TICKETS: Final = b"GSSAPI"
AUTHENTICATES: Final = "SaslAuthenticateRequest"
# The beginning of Kerberos's first token (RFC 2743, section 3.1, and RFC 4121, section 4.1). Read
# as a request, its api key is 0x60 and one more byte, far above any in a release.
_TICKET = re.compile(
    rb"\x60(?:[\x00-\x7f]|\x81.|\x82..)\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02", re.DOTALL
)


class Authentication:
    """Whether bytes of one connection may be those of credentials, by its requests so far.

    A broker that requires authentication accepts nothing else before it. So a first request other
    than ApiVersions that decodes by its spec rules it out. But a client may authenticate again at
    any time (KIP-368): after a request that could not be decoded, or may have carried credentials
    (`hides_credentials`), authentication may be running for the rest of the connection.
    """

    def __init__(self, *, is_open: bool = False, is_guarded: bool = False) -> None:
        # A request has ruled it out, but authentication may still be running.
        self.is_open = is_open
        self.is_guarded = is_guarded

    @property
    def is_ruled_out(self) -> bool:
        """True if unknown bytes on the connection are certainly no credentials."""
        return self.is_open and not self.is_guarded

    def see(self, request: RequestFrame | None, payload: bytes, *, is_whole: bool) -> None:
        """Take in a request in the order of the stream; None if it could not be decoded.

        Unless it ``is_whole``, the payload is the known part of its start.
        """
        if self.is_guarded:
            return
        if request is None or not is_believable(request):
            self.is_guarded = True
        elif request.message_name == NEGOTIATES:
            pass
        elif request.message_name == HANDSHAKES or hides_credentials(request.message_name, payload):
            self.is_guarded = True
        elif not self.is_open:
            body = payload[request.body_offset :]
            self.is_open = is_whole and decodes(request.message_name, body, request.api_version)


def is_believable(request: RequestFrame) -> bool:
    """Return whether a header is a request's, and not other bytes that look like one by chance."""
    return request.message_name == NEGOTIATES or is_released(request.api_key, request.api_version)


def asks_for_tickets(request: RequestFrame | None, payload: bytes) -> bool:
    """Return whether a client begins GSSAPI.

    The ticket names the host that the client connects to.

    The request is None if the frame is a token.
    """
    if request is None:
        return is_ticket(payload)
    return request.message_name == HANDSHAKES and TICKETS in payload[request.body_offset :]


def is_ticket(payload: bytes) -> bool:
    """Return whether a frame is GSSAPI's first token, which needs no handshake before it.

    Clients of Kafka 0.9 send no handshake, and brokers before 4.0 treat other bytes as GSSAPI.
    """
    return _TICKET.match(payload) is not None


class SaslExchange:
    """Tells the SASL tokens of one connection's client from its requests.

    After SaslHandshake v0 the next frames hold the mechanism's own tokens, with no header (KIP-43).
    From v1 on they are inside SaslAuthenticate (KIP-152). Nothing on the wire says when the tokens
    end: they end with the first frame that is a request of a released version. GSSAPI's tokens may
    come with no handshake at all (`is_ticket`). Tokens hold credentials, so only the bytes that are
    needed for that decision are read.
    """

    def __init__(self, *, is_exchanging: bool = False) -> None:
        self.is_exchanging = is_exchanging

    def parse(self, payload: bytes) -> RequestFrame | None:
        """Return the request in a frame of the client, or None if the frame is a token.

        Raises the errors of `read_request`, outside the exchange of tokens.
        """
        # PLAIN begins with NUL or letters, SCRAM and OAUTHBEARER with "n," or "c=", GSSAPI with
        # 0x60 or 0x05: no such token reads as an api key with a released version and a whole
        # header.
        if is_ticket(payload) or (self.is_exchanging and read_released(payload) is None):
            self.is_exchanging = True
            return None
        request = read_request(payload)
        self.is_exchanging = begins_raw_tokens(request)
        return request


def begins_raw_tokens(request: RequestFrame) -> bool:
    """Return whether the next frames of its connection are a mechanism's own tokens (KIP-43)."""
    return request.message_name == HANDSHAKES and request.api_version == 0


def is_sasl(request: RequestFrame) -> bool:
    """Return whether a request is part of SASL authentication."""
    return request.message_name in {HANDSHAKES, AUTHENTICATES}


def is_before_login(request: RequestFrame) -> bool:
    """Return whether a broker that requires a login answers the request without one."""
    return request.message_name == NEGOTIATES or is_sasl(request)
