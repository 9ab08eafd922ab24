"""Requests joined with their responses, on one connection."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from flexwire.codec import message
from flexwire.errors import CodecError, UnknownMessageError
from flexwire.protocol.requests import RequestFrame
from flexwire.protocol.responses import parse_correlation_id
from flexwire.protocol.sasl import SaslExchange

# A broker reads the next request of a connection once it has answered the last, and clients
# keep a handful in flight; the bound is for those that never get an answer.
DEFAULT_IN_FLIGHT: Final = 10_000


@dataclass(frozen=True, slots=True)
class SaslToken:
    """A frame of a SASL exchange: a token of the client's or the broker's, never decoded."""


_Pending = RequestFrame | SaslToken


class Pairing:
    """Joins the responses of one connection with their requests, by correlation id.

    Feed both directions in the order in which the bytes were seen. Of several requests with the
    same correlation id the oldest is answered first. Requests without a response are not waited
    for (Produce with acks 0). At most ``in_flight`` requests wait; the oldest then gives up its
    place and is counted in ``forgotten``, as ``unmatched`` counts responses to no request.
    """

    def __init__(self, in_flight: int = DEFAULT_IN_FLIGHT) -> None:
        self.in_flight = in_flight
        self.unmatched = 0
        self.forgotten = 0
        self._exchange = SaslExchange()
        self._serial = 0
        # Serial numbers keep the order of arrival over all correlation ids.
        self._pending: dict[int, _Pending] = {}
        self._serials: dict[int, deque[int]] = {}

    def request(self, payload: bytes) -> RequestFrame | SaslToken:
        """Take in a request's frame (its payload) and wait for the response, if it has one.

        Raises `FrameError` or `DecodeError` when it is not a request; then nothing is awaited.
        """
        request = self._exchange.parse(payload)
        if request is None:
            self._await(SaslToken())
            return SaslToken()
        if expects_response(request, payload):
            self._await(request)
        return request

    def expected(self, head: bytes) -> RequestFrame | SaslToken | None:
        """What the response that begins with these bytes answers; None when nothing waits for it.

        The first 4 bytes of the payload are enough. Raises `FrameError` when there are fewer.
        """
        serial = self._find(head)
        return None if serial is None else self._pending[serial]

    def response(self, payload: bytes) -> RequestFrame | SaslToken | None:
        """Take in a response's frame (its payload): as `expected`, and its request waits no more.

        A response that answers nothing is counted in ``unmatched``. Raises `FrameError` when the
        payload is too short to be a response.
        """
        serial = self._find(payload)
        if serial is None:
            self.unmatched += 1
            return None
        return self._forget(serial)

    def unanswered(self) -> list[RequestFrame]:
        """The requests that wait for their response, oldest first."""
        return [one for one in self._pending.values() if isinstance(one, RequestFrame)]

    def _await(self, one: _Pending) -> None:
        if len(self._pending) >= self.in_flight:
            self.forgotten += 1
            self._forget(next(iter(self._pending)))
        self._serial += 1
        self._pending[self._serial] = one
        if isinstance(one, RequestFrame):
            self._serials.setdefault(one.correlation_id, deque()).append(self._serial)

    def _find(self, payload: bytes) -> int | None:
        # A client sends no token before the answer to the last one, so a token waits alone; the
        # broker's token has no correlation id.
        oldest = next(iter(self._pending), None)
        if oldest is not None and isinstance(self._pending[oldest], SaslToken):
            return oldest
        serials = self._serials.get(parse_correlation_id(payload))
        return serials[0] if serials else None

    def _forget(self, serial: int) -> _Pending:
        one = self._pending.pop(serial)
        if isinstance(one, RequestFrame):
            serials = self._serials[one.correlation_id]
            # The oldest of its correlation id, whoever asks: arrival order holds within one id.
            serials.popleft()
            if not serials:
                del self._serials[one.correlation_id]
        return one


def expects_response(request: RequestFrame, payload: bytes) -> bool:
    """Whether a broker answers the request: always, but for a Produce with acks 0.

    A Produce request that does not decode counts as one that is answered.
    """
    if request.message_name != "ProduceRequest":
        return True
    kind = message(request.message_name)
    try:
        produce: Any
        produce, _ = kind.decode_prefix(payload, request.api_version, request.body_offset)
    except (CodecError, UnknownMessageError):
        return True
    return bool(produce.acks != 0)
