"""SASL tokens that travel as bare frames, after a SaslHandshake of version 0."""

from __future__ import annotations

from flexwire.errors import CodecError, FrameError
from flexwire.protocol.apis import request_entries
from flexwire.protocol.requests import RequestFrame, parse_request


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
        self._exchanging = (
            request.message_name == "SaslHandshakeRequest" and request.api_version == 0
        )
        return request


def _is_released(payload: bytes) -> bool:
    # PLAIN begins with NUL or letters, SCRAM and OAUTHBEARER with "n," or "c=", GSSAPI with 0x60
    # or 0x05: none reads as an api key with a released version, and a header that decodes.
    try:
        request = parse_request(payload)
    except (FrameError, CodecError):
        return False
    return any(entry.has(request.api_version) for entry in request_entries(request.api_key))
