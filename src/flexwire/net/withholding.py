"""Keeps credentials out of a capture: asterisks stand in their place, and every length stays.

What is a credential is `flexwire.protocol.credentials`' to say, as for tables and the report; what
may be one and does not decode is filled as a whole, while its connection may be authenticating.
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
    withhold,
)
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from flexwire.protocol.conversation import Turn

# Api key, version and correlation id; a response has but the last of them.
_REQUEST_HEAD: Final = 8
_RESPONSE_HEAD: Final = 4
_API: Final = struct.Struct(">hh")
_UNREADABLE: Final = (FrameError, CodecError, UnknownMessageError)


def withheld(payload: bytes, turn: Turn) -> bytes:
    """A frame's payload for the capture, itself if it has no credential. Its length stays."""
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
            frame = parse_response(payload, request.api_key, request.api_version)
        except _UNREADABLE:
            return payload[:_RESPONSE_HEAD] + filler(len(payload) - _RESPONSE_HEAD)
        name, version, start = frame.message_name, frame.body_version, frame.body_offset
    hidden = _body(payload, name, version, start, is_guarded=turn.is_guarded)
    return payload if hidden is None else payload[:start] + hidden


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


def _body(payload: bytes, name: str, version: int, start: int, *, is_guarded: bool) -> bytes | None:
    """What stands for a message's body and what follows it; None: itself."""
    hidden = filler(len(payload) - start)
    try:
        body, end = message(name).decode_prefix(payload, version, start)
    except (CodecError, UnknownMessageError):
        return hidden if is_guarded or carries_credentials(name) else None
    if not withhold(body, keep_length=True):
        return None
    written = body.encode(version)
    # What a lenient reader took may be written shorter; bytes after the body may be anything.
    return written + filler(len(payload) - end) if len(written) == end - start else hidden
