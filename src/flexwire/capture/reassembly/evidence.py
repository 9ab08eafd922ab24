"""Whether the frames of a connection are Kafka's, by what is in them.

Every stream that begins with a small number has "frames", and a header of zeros is that of a
Produce request: so one header proves nothing. Each of these does, being so rare in other bytes that
one is enough:

- a request of a released version whose body decodes by its spec;
- a response that decodes by its spec as the answer to a request of a released version;
- an ApiVersions request of a version above all released ones, with a client id: a client of a newer
  Kafka begins so (KIP-511);
- of frames that the capture lacks parts of: two request headers of one client id, or one whose
  correlation id came back.

An empty client id is two zero bytes, which other protocols send as well. A request with one counts
if its body has many bytes that are not zero; if it has few, only together with a second request or
with its response. What is lost in the capture, or damaged, speaks neither for nor against.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.protocol import RequestFrame, parse_response, read_request
from flexwire.protocol.apis import is_released
from flexwire.protocol.headers import decodes, parse_correlation_id

if TYPE_CHECKING:
    from flexwire.capture.files.model import Direction

MOST_AWAITED = 1000
"""So many requests wait for a response that may prove what they are; the oldest is forgotten."""

MOST_READ = 8 * 1024 * 1024
"""Of a longer frame only the header is looked at, as if the capture lacked the rest."""

_UNREADABLE = (CodecError, FrameError, UnknownMessageError)
# The one request that is sent in versions that are not released yet (KIP-511).
_NEGOTIATED = "ApiVersionsRequest"
# No request or response begins with so many zeros.
_LEADING = 64
# Bytes other than zero in a body: a few numbers or a timestamp have fewer, and decode by chance.
_MUCH, _SOME = 8, 4


class _Asked(NamedTuple):
    """A request that is not evidence by itself."""

    request: RequestFrame
    is_whole: bool


class Evidence:
    """Takes the frames of one connection until one of them shows that it is Kafka.

    ``found`` then says in a few words what did. ``hint`` says what would be enough if the end were
    known for a broker: one request header with a client id, or one body that decodes.
    """

    def __init__(self) -> None:
        self.found: str | None = None
        self.hint: str | None = None
        self._asked: dict[int, _Asked] = {}
        # The latest that decodes, and the latest that the capture lacks parts of.
        self._decoded: RequestFrame | None = None
        self._cut: RequestFrame | None = None

    def see(self, direction: Direction, payload: bytes, *, is_whole: bool) -> None:
        """Take in a frame; unless it ``is_whole``, ``payload`` is what the capture has of it."""
        # Zeros decode as many a message by chance.
        if self.found is not None or not any(payload[:_LEADING]):
            return
        is_whole = is_whole and len(payload) <= MOST_READ
        if direction == "request":
            self._see_request(payload, is_whole=is_whole)
        elif self._asked:
            self._see_response(payload, is_whole=is_whole)

    def _see_request(self, payload: bytes, *, is_whole: bool) -> None:
        try:
            request = read_request(payload)
        except _UNREADABLE:
            return
        if not _is_text(request.client_id):
            return
        if is_released(request.api_key, request.api_version):
            self._weigh(request, payload, is_whole=is_whole)
        elif request.client_id and request.message_name == _NEGOTIATED:
            self.found = f"{_named(request)}, newer than any released"

    def _weigh(self, request: RequestFrame, payload: bytes, *, is_whole: bool) -> None:
        name = _named(request)
        body = payload[request.body_offset :]
        is_sound = is_whole and decodes(request.message_name, body, request.api_version)
        said = len(body) - body.count(0)
        has_client_id = request.header_version > 0 and request.client_id != ""
        if is_sound and (has_client_id or said >= _MUCH):
            self.found = f"{name} decodes"
            return
        if has_client_id:
            self.hint = self.hint or f"a header of {name}"
        elif is_sound and said >= _SOME:
            self.hint = self.hint or f"{name} decodes"
        if is_sound and said:
            self._note_decoded(request, name)
        elif not is_whole and request.client_id:
            self._note_cut(request, name)
        self._asked[request.correlation_id] = _Asked(request, is_whole)
        if len(self._asked) > MOST_AWAITED:
            del self._asked[next(iter(self._asked))]

    def _note_decoded(self, request: RequestFrame, name: str) -> None:
        other, self._decoded = self._decoded, request
        if other is not None and other.correlation_id != request.correlation_id:
            self.found = f"{name} decodes, and {_named(other)} before it"

    def _note_cut(self, request: RequestFrame, name: str) -> None:
        other, self._cut = self._cut, request
        if (
            other is not None
            and other.client_id == request.client_id
            and other.correlation_id != request.correlation_id
        ):
            self.found = f"headers of {_named(other)} and {name} with one client id"

    def _see_response(self, payload: bytes, *, is_whole: bool) -> None:
        try:
            asked = self._asked.get(parse_correlation_id(payload))
            if asked is None:
                return
            request = asked.request
            name = _named(request)
            if is_whole:
                response = parse_response(payload, request.api_key, request.api_version)
                body = payload[response.body_offset :]
                if decodes(response.message_name, body, response.body_version):
                    self.found = f"the response to {name} decodes"
                    return
        except _UNREADABLE:
            return
        # A whole response that does not decode is not Kafka's, whatever its header looks like.
        if request.client_id and not asked.is_whole:
            self.found = f"a header of {name}, and a response with its correlation id"


def _named(request: RequestFrame) -> str:
    return f"{request.message_name} v{request.api_version}"


def _is_text(client_id: str | None) -> bool:
    return client_id is None or all(sign >= " " for sign in client_id)
