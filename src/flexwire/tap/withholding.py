"""Keeps credentials out of a capture: asterisks stand in their place, and every length stays.

`flexwire.protocol.credentials` says what a credential is, as for tables and the report. A body that
may hold one and does not decode is filled as a whole, while its connection may be authenticating.
So is a body of more than `flexwire.tap.limits.MOST_DECODED` bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from flexwire.codec import message
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.protocol import is_believable, parse_response
from flexwire.protocol.apis import is_released
from flexwire.protocol.credentials import (
    carries_credentials,
    filler,
    hides_credentials,
    may_be_quoted,
    may_hide_credentials,
    withhold,
)
from flexwire.tap.limits import FEWEST_IN_FLIGHT, MOST_DECODED, beginning
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from flexwire.protocol.conversation import Turn

# Api key, version and correlation id; a response has but the last of them.
_REQUEST_HEAD: Final = 8
_RESPONSE_HEAD: Final = 4
_API: Final = struct.Struct(">hh")
_UNREADABLE: Final = (FrameError, CodecError, UnknownMessageError)


def withheld(payload: bytes, turn: Turn, *, asked_plainly: bool = False) -> bytes:
    """Return a frame's payload for the capture, itself if it has no credential. Its length stays.

    ``asked_plainly`` says of a response that nothing was withheld of its request.
    """
    request = turn.request
    if turn.kind == "unread" or request is None:
        # A token too, which has no request, and comes when a connection is guarded.
        return filler(len(payload)) if turn.is_guarded else payload
    if turn.is_guarded and not is_believable(request):
        return filler(len(payload))
    if not hides_credentials(request.message_name, payload):
        return payload
    if turn.kind == "request":
        name, version, start = request.message_name, request.api_version, request.body_offset
    else:
        try:
            frame = parse_response(beginning(payload), request.api_key, request.api_version)
        except _UNREADABLE:
            return payload[:_RESPONSE_HEAD] + filler(len(payload) - _RESPONSE_HEAD)
        name, version, start = frame.message_name, frame.body_version, frame.body_offset
    hidden = _body(payload, turn, (name, version, start), asked_plainly=asked_plainly)
    return payload if hidden is None else payload[:start] + hidden


class Withholding:
    """Withholds the frames of one connection, and remembers which requests hold no credential.

    A broker's text may quote its request, so it stays only in the response to such a request.
    """

    def __init__(self) -> None:
        # Their pairs, the oldest first. A request that is forgotten costs the capture a text.
        self._plain: dict[int, None] = {}

    def shown(self, payload: bytes, turn: Turn) -> bytes:
        """Return a frame's payload for the capture, itself if it has no credential."""
        request, pair = turn.request, turn.pair
        if request is None or pair is None or not may_be_quoted(request.message_name):
            return withheld(payload, turn)
        if turn.kind != "request":
            is_plain = pair in self._plain
            self._plain.pop(pair, None)
            return withheld(payload, turn, asked_plainly=is_plain)
        shown = withheld(payload, turn)
        if shown is payload:
            if len(self._plain) >= FEWEST_IN_FLIGHT:
                del self._plain[next(iter(self._plain))]
            self._plain[pair] = None
        return shown


def withheld_rest(data: bytes, *, is_request: bool) -> bytes:
    """A frame that breaks off, with its length before it: what follows its head is filled.

    A frame of the client that does not begin as a request does may be a token, and has no head.
    """
    head = PREFIX_LENGTH
    if not is_request:
        head += _RESPONSE_HEAD
    elif len(data) >= PREFIX_LENGTH + _API.size:
        head += _REQUEST_HEAD if is_released(*_API.unpack_from(data, PREFIX_LENGTH)) else 0
    return data[:head] + filler(len(data) - len(data[:head]))


def withheld_beginning(data: bytes, turn: Turn, *, is_request: bool) -> bytes:
    """Return the beginning of a frame for the capture, its length before it; itself if it is safe.

    A request's header stays, as it holds no credential. What follows it stays where neither the
    message nor the connection may carry one.
    """
    request = turn.request
    if request is None or not is_believable(request):
        return withheld_rest(data, is_request=is_request)
    if not turn.is_guarded and not may_hide_credentials(request.message_name):
        return data
    head = data[: PREFIX_LENGTH + (request.body_offset if is_request else _RESPONSE_HEAD)]
    return head + filler(len(data) - len(head))


def _body(
    payload: bytes, turn: Turn, place: tuple[str, int, int], *, asked_plainly: bool
) -> bytes | None:
    """Return what stands for a message's body and what follows it; None stands for itself.

    ``place`` is the message's name, its version, and where its body starts.
    """
    name, version, start = place
    hidden = filler(len(payload) - start)
    if len(payload) > MOST_DECODED:
        # To find out which of a million configurations are secret takes too long here.
        return hidden
    try:
        body, end = message(name).decode_prefix(payload, version, start)
    except (CodecError, UnknownMessageError):
        return hidden if turn.is_guarded or carries_credentials(name) else None
    if not withhold(body, keep_length=True, asked_plainly=asked_plainly):
        return None
    written = body.encode(version)
    # What a lenient reader took may be written shorter; bytes after the body may be anything.
    return written + filler(len(payload) - end) if len(written) == end - start else hidden
