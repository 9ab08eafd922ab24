"""Response frames: what their header says, where their body begins, and at which version.

A response carries a correlation id and neither api key nor version. So it is read with those of its
request, which `flexwire.protocol.conversation` finds.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from flexwire.codec import Message, message
from flexwire.errors import DecodeError, FrameError, UnknownMessageError
from flexwire.protocol.headers import response_header_version
from flexwire.protocol.requests import request_name

UNSUPPORTED_VERSION: Final = 35
FALLING_BACK: Final = "ApiVersionsResponse"
"""The response that a broker gives in version 0 to a request of a version that it does not have."""
_CORRELATION_ID: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class ResponseFrame:
    """A response as its header and its request describe it; the body is `payload[body_offset:]`.

    ``body_version`` is the request's version, but 0 where a broker that does not have the version
    of an ApiVersions request answers in version 0 (KIP-511).
    """

    correlation_id: int
    header_version: int
    header: Message
    body_offset: int
    body_version: int
    message_name: str


def parse_response(payload: bytes, api_key: int, api_version: int) -> ResponseFrame:
    """Read a response's header from the payload of a frame, given the request that it answers.

    Raises `FrameError` when the payload is too short to be a response, `DecodeError` when the
    header is broken further on, `UnknownMessageError` for an api key that no release has.
    """
    correlation_id = parse_correlation_id(payload)
    header_version = response_header_version(api_key, api_version)
    header, body_offset = message("ResponseHeader").decode_prefix(payload, header_version)
    name = response_name(api_key, api_version)
    fell_back = name == FALLING_BACK and _is_fallback(payload[body_offset:], api_version)
    return ResponseFrame(
        correlation_id=correlation_id,
        header_version=header_version,
        header=header,
        body_offset=body_offset,
        body_version=0 if fell_back else api_version,
        message_name=name,
    )


def response_name(api_key: int, version: int) -> str:
    """The newest name of the response with an api key that has the version, or the newest."""
    return request_name(api_key, version).removesuffix("Request") + "Response"


def parse_correlation_id(payload: bytes) -> int:
    """The correlation id, with which every version of the response header begins."""
    if len(payload) < _CORRELATION_ID.size:
        raise FrameError(
            f"a response header has at least {_CORRELATION_ID.size} bytes, "
            f"got a frame of {len(payload)}"
        )
    correlation_id: int = _CORRELATION_ID.unpack_from(payload)[0]
    return correlation_id


def _is_fallback(body: bytes, api_version: int) -> bool:
    # No v0 body is also a later one: up to v2 the throttle time is missing, and from v3 the
    # first byte of the int32 count reads as a null array, which the field does not allow.
    if api_version == 0:
        return False
    kind = message(FALLING_BACK)
    try:
        kind.decode(body, api_version)
    except (DecodeError, UnknownMessageError):
        pass
    else:
        return False
    try:
        fallback: Any = kind.decode(body, 0)
    except DecodeError:
        return False
    return bool(fallback.error_code == UNSUPPORTED_VERSION)
