"""Whether bytes look like the beginning of a request or response frame.

Frames have no mark of their own, so this is a guess, made only where a capture begins within a
connection or lacks a frame's length, and only of bytes with which a segment begins. It may err so:

- A frame that begins in the middle of a segment is missed, and found again with the next one that
  begins a segment.
- Other bytes are taken for a request when they have its api key, version and client id by chance
  (about one segment of random bytes in 10¹¹), for an awaited response when they have a length and
  that very correlation id (one in 10¹⁰ for each response awaited), and for another response when a
  second one follows where their length says (one in 10¹²). Bytes that are not random, arrays of
  small integers above all, do it more often. Then the frames up to where that length leads are
  lost, and something that is not a frame is given out in their place.
- A response to a request from before the capture is not found when it is longer than 16 MiB, when
  the capture ends within it, or when the client does not count its correlation ids.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from flexwire.protocol.apis import is_released
from flexwire.protocol.headers import request_header_version
from flexwire.schema.catalog import per_catalog
from flexwire.wire.segment_layout import PREFIX_LENGTH, REQUEST_HEAD, RESPONSE_HEAD

if TYPE_CHECKING:
    from collections.abc import Callable

# Length, api key, api version, correlation id; all but header version 0 go on with a client id.
_HEAD = struct.Struct(">ihhi")
_CLIENT_ID_LENGTH = struct.Struct(">h")
_RESPONSE_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")

SHORTEST_HEAD = REQUEST_HEAD
"""Bytes that hold the correlation id of either, the length prefix included."""

RESPONSE_HEAD_BYTES = RESPONSE_HEAD
"""Bytes that hold the length and correlation id of a response."""

_SHORTEST_RESPONSE = RESPONSE_HEAD - PREFIX_LENGTH
LIKELY_LENGTH = 16 * 1024 * 1024
"""Up to this length bytes are taken for a response that no request awaits: they are held."""

# A Java client counts its requests to all brokers together.
_IDS_APART = 100
_CLIENT_ID_SAMPLE = 48

REQUEST_HEAD_BYTES = _HEAD.size + _CLIENT_ID_LENGTH.size + _CLIENT_ID_SAMPLE
"""Bytes that suffice to tell whether a request begins with them."""


def looks_like_request(head: bytes, limit: int) -> bool | None:
    """Whether a frame that begins with ``head`` is a request of a released version.

    ``head`` begins with the length prefix. None: too few bytes to tell; `REQUEST_HEAD_BYTES`
    always suffice.
    """
    if len(head) < _HEAD.size:
        return None
    length, api_key, api_version, correlation_id = _HEAD.unpack_from(head)
    rest = length + PREFIX_LENGTH - _HEAD.size
    if not 0 <= rest <= limit or correlation_id < 0 or not is_released(api_key, api_version):
        return False
    return _client_id_follows(head, rest) if _has_client_id(api_key, api_version) else True


@per_catalog
@lru_cache(maxsize=4096)
def _has_client_id(api_key: int, api_version: int) -> bool:
    return request_header_version(api_key, api_version) > 0


def _client_id_follows(head: bytes, rest: int) -> bool | None:
    start = _HEAD.size + _CLIENT_ID_LENGTH.size
    if len(head) < start:
        return None
    (length,) = _CLIENT_ID_LENGTH.unpack_from(head, _HEAD.size)
    if not -1 <= length <= rest - _CLIENT_ID_LENGTH.size:
        return False
    sample = max(0, min(length, _CLIENT_ID_SAMPLE))
    if len(head) < start + sample:
        return None
    # A client id is text; control characters in it speak against it.
    return min(head[start : start + sample], default=ord(" ")) >= ord(" ")


def looks_like_response(head: bytes, limit: int) -> bool | None:
    """Whether ``head`` begins with the length and correlation id of a response.

    None: too few bytes to tell; `RESPONSE_HEAD_BYTES` suffice. Many other bytes do as well, so
    something else must speak for it: that a request awaits it, or what follows it.
    """
    if len(head) < _RESPONSE_HEAD.size:
        return None
    length, correlation_id = _RESPONSE_HEAD.unpack_from(head)
    return bool(_SHORTEST_RESPONSE <= length <= limit and correlation_id >= 0)


def looks_like_responses(head: bytes, limit: int) -> bool | None:
    """Whether lengths lead from response to response through ``head``, as far as it goes.

    None: too few bytes to tell.
    """
    if len(head) < _RESPONSE_HEAD.size:
        return None
    position = 0
    while position + _RESPONSE_HEAD.size <= len(head):
        if not looks_like_response(head[position : position + _RESPONSE_HEAD.size], limit):
            return False
        position += PREFIX_LENGTH + _LENGTH.unpack_from(head, position)[0]
    return True


def leads_to_a_response(peek: Callable[[int, int], bytes], size: int) -> bool | None:
    """Whether a response begins ``size`` bytes of a stream, by what follows where it ends.

    The next one must begin there, with a correlation id that is a little higher, as clients count
    them; or the bytes must end there, as segments do where a frame ends. None: too few bytes to
    tell. ``peek(start, count)`` gives some of the bytes.
    """
    length, correlation_id = _RESPONSE_HEAD.unpack(peek(0, _RESPONSE_HEAD.size))
    if not _SHORTEST_RESPONSE <= length <= LIKELY_LENGTH:
        return False
    end = PREFIX_LENGTH + length
    if size == end:
        return True
    following = peek(end, _RESPONSE_HEAD.size) if end < size else b""
    if len(following) < _RESPONSE_HEAD.size:
        return None
    next_length, next_id = _RESPONSE_HEAD.unpack(following)
    is_next = 0 < next_id - correlation_id <= _IDS_APART
    return bool(is_next and _SHORTEST_RESPONSE <= next_length <= LIKELY_LENGTH)


def correlation_ids(head: bytes) -> tuple[int, int]:
    """What the correlation id is if ``head`` begins a request, and if it begins a response.

    ``head`` has at least `SHORTEST_HEAD` bytes.
    """
    return _HEAD.unpack_from(head)[3], _RESPONSE_HEAD.unpack_from(head)[1]
