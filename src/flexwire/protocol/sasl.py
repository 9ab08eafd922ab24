"""Authentication on a connection: when it may be under way, and SASL tokens as bare frames."""

from __future__ import annotations

from typing import Final

from flexwire.codec import message
from flexwire.errors import CodecError, FrameError
from flexwire.protocol.apis import request_entries
from flexwire.protocol.credentials import hides_credentials
from flexwire.protocol.requests import RequestFrame, parse_request

# What a client may ask before it authenticates, in versions that nobody has released too (KIP-511).
_NEGOTIATES: Final = "ApiVersionsRequest"
_HANDSHAKES: Final = "SaslHandshakeRequest"


class Authentication:
    """Whether bytes of one connection may be those of credentials, by its requests until now.

    A broker that wants authentication takes nothing else before it, and a client may authenticate
    anew at any time (KIP-368). So it is ruled out by a first request other than ApiVersions that
    decodes by its spec. But it may be under way, and for good, once a request was not understood
    or may have carried credentials (`hides_credentials`): what comes after may be their rest.
    """

    def __init__(self) -> None:
        self._is_open = False
        self._is_guarded = False

    @property
    def is_ruled_out(self) -> bool:
        """Whether what is not understood on the connection is known for no credential."""
        return self._is_open and not self._is_guarded

    def see(self, request: RequestFrame | None, payload: bytes, *, is_whole: bool) -> None:
        """Take in a request in the order of the stream; None: it was not understood.

        Not ``is_whole``: the payload is what is known of its start.
        """
        if request is None or not is_believable(request):
            self._is_guarded = True
        elif request.message_name == _NEGOTIATES:
            pass
        elif request.message_name == _HANDSHAKES or hides_credentials(
            request.message_name, payload
        ):
            self._is_guarded = True
        elif not self._is_open:
            self._is_open = is_whole and _decodes(request, payload)


def is_believable(request: RequestFrame) -> bool:
    """Whether a header is a request's, and not what other bytes read as by chance."""
    return request.message_name == _NEGOTIATES or _has_version(request)


def _decodes(request: RequestFrame, payload: bytes) -> bool:
    try:
        message(request.message_name).decode(payload[request.body_offset :], request.api_version)
    except CodecError:
        return False
    return True


class SaslExchange:
    """Tells the SASL tokens of one connection's client from its requests.

    SaslHandshake v0 says that the next frames hold the mechanism's own tokens, with no header
    (KIP-43); from v1 on they travel inside SaslAuthenticate (KIP-152). Nothing on the wire says
    when the tokens end: they end with the first frame that is a request of a released version.
    Tokens hold credentials, so nothing of them is read beyond what that question needs.
    """

    def __init__(self) -> None:
        self._exchanging = False

    def parse(self, payload: bytes) -> RequestFrame | None:
        """The request in a frame of the client, or None when the frame is a token.

        Raises what `parse_request` raises, outside the exchange of tokens.
        """
        if self._exchanging and not _is_released(payload):
            return None
        request = parse_request(payload)
        self._exchanging = request.message_name == _HANDSHAKES and request.api_version == 0
        return request


def _is_released(payload: bytes) -> bool:
    # PLAIN begins with NUL or letters, SCRAM and OAUTHBEARER with "n," or "c=", GSSAPI with 0x60
    # or 0x05: none reads as an api key with a released version, and a header that decodes.
    try:
        request = parse_request(payload)
    except (FrameError, CodecError):
        return False
    return _has_version(request)


def _has_version(request: RequestFrame) -> bool:
    return any(request.api_version in entry.versions for entry in request_entries(request.api_key))
