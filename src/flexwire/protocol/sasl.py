"""Authentication on a connection: when it may be in progress, and SASL tokens as bare frames.

Tokens contain credentials and may consist of any bytes. This module therefore does not recognize
tokens by their bytes, except for the first token of GSSAPI. Where a token is possible, every frame
that is not a request is a token. Bytes that cannot be decoded are treated as a credential until the
connection has shown that no authentication is in progress.
"""

from __future__ import annotations

import re
from typing import Final

from flexwire.protocol.apis import is_released
from flexwire.protocol.credentials import hides_credentials
from flexwire.protocol.headers import RequestFrame, decodes, read_released, read_request

# The requests that may precede authentication, even in versions that are in no release (KIP-511).
NEGOTIATES: Final = "ApiVersionsRequest"
HANDSHAKES: Final = "SaslHandshakeRequest"
# The mechanism that depends on a host's name.
TICKETS: Final = b"GSSAPI"
AUTHENTICATES: Final = "SaslAuthenticateRequest"
# The beginning of Kerberos's first token (RFC 2743, section 3.1, and RFC 4121, section 4.1). If
# these bytes were a request, its API key would consist of 0x60 and one more byte, far above the API
# keys of all releases.
_TICKET = re.compile(
    rb"\x60(?:[\x00-\x7f]|\x81.|\x82..)\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02", re.DOTALL
)


class Authentication:
    """Decide from a connection's requests so far whether its bytes may be credentials.

    A broker that requires authentication accepts no other request before authentication. If the
    first request is not ApiVersions and conforms to its spec, the connection therefore does not
    require authentication. A client may authenticate again at any time, though (KIP-368). After a
    request that could not be decoded, or may have carried credentials (`hides_credentials`),
    authentication may be in progress for the rest of the connection.
    """

    def __init__(self, *, is_open: bool = False, is_guarded: bool = False) -> None:
        # Open: a request has shown that no login is required. Guarded: a login may still follow.
        self.is_open = is_open
        self.is_guarded = is_guarded

    @property
    def is_ruled_out(self) -> bool:
        """True if unknown bytes on the connection are certainly not credentials."""
        return self.is_open and not self.is_guarded

    def see(self, request: RequestFrame | None, payload: bytes, *, is_whole: bool) -> None:
        """Process a request, in stream order. None is a request that could not be decoded.

        Unless ``is_whole`` is true, the payload is only the known beginning of the request.
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
    """Return whether a header belongs to a request, rather than resembling one by chance."""
    return request.message_name == NEGOTIATES or is_released(request.api_key, request.api_version)


def asks_for_tickets(request: RequestFrame | None, payload: bytes) -> bool:
    """Return whether a client begins a GSSAPI authentication.

    The ticket contains the name of the host to which the client connects.

    The request is None if the frame is a token.
    """
    if request is None:
        return is_ticket(payload)
    return request.message_name == HANDSHAKES and TICKETS in payload[request.body_offset :]


def is_ticket(payload: bytes) -> bool:
    """Return whether a frame is the first token of GSSAPI, which needs no preceding handshake.

    Clients of Kafka 0.9 send no handshake, and brokers before 4.0 treat other bytes as GSSAPI.
    """
    return _TICKET.match(payload) is not None


class SaslExchange:
    """Distinguish a client's SASL tokens on a connection from its requests.

    After SaslHandshake v0, the next frames contain the mechanism's tokens without a header
    (KIP-43). From SaslHandshake v1 on, tokens are inside SaslAuthenticate (KIP-152). No byte marks
    the end of the tokens: they end at the first frame that is a request in a released version.
    GSSAPI tokens can arrive without a handshake (`is_ticket`). Tokens contain credentials, so this
    class reads only the bytes that it needs for the decision.
    """

    def __init__(self, *, is_exchanging: bool = False) -> None:
        self.is_exchanging = is_exchanging

    def parse(self, payload: bytes) -> RequestFrame | None:
        """Return the request in a frame from the client, or None if the frame is a token.

        Raises the errors of `read_request` if no tokens are being exchanged.
        """
        # PLAIN begins with NUL or letters, SCRAM and OAUTHBEARER with "n," or "c=", and GSSAPI with
        # 0x60 or 0x05. None of these bytes can be an API key with a released version and a
        # complete header.
        if is_ticket(payload) or (self.is_exchanging and read_released(payload) is None):
            self.is_exchanging = True
            return None
        request = read_request(payload)
        self.is_exchanging = begins_raw_tokens(request)
        return request


def begins_raw_tokens(request: RequestFrame) -> bool:
    """Return whether the next frames of the connection are bare tokens of a mechanism (KIP-43)."""
    return request.message_name == HANDSHAKES and request.api_version == 0


def is_sasl(request: RequestFrame) -> bool:
    """Return whether a request is part of SASL authentication."""
    return request.message_name in {HANDSHAKES, AUTHENTICATES}


def is_before_login(request: RequestFrame) -> bool:
    """Return whether a broker that requires a login answers the request before the login."""
    return request.message_name == NEGOTIATES or is_sasl(request)
