"""The two responses that librdkafka's mock writes wrong, put right.

ApiVersions: the mock supports versions 0 to 2. Asked for a later one it should answer as KIP-511
says: the error UNSUPPORTED_VERSION and its own versions, in version 0's layout. It answers with a
compact count that is off by one and without tag sections, a body that is valid in no version.
librdkafka reads only the error code of it and goes on; kafka-python 3 decodes all of it and gives
up.

Metadata: in flexible versions the mock writes the last tag section twice, so one byte follows the
message. Clients overlook it; a strict decoder does not.
"""

from __future__ import annotations

import struct

from flexwire.codec import message
from flexwire.errors import DecodeError, FrameError, UnknownMessageError
from flexwire.protocol import parse_response

_METADATA, _API_VERSIONS = 3, 18
_UNSUPPORTED_VERSION = 35
_FIRST_FLEXIBLE = {_METADATA: 9, _API_VERSIONS: 3}
# correlation id, error code, 1, api key, lowest, highest, throttle time
_WRONG_FALLBACK = struct.Struct(">ihbhhhi")
# correlation id, error code, count, api key, lowest, highest
_RIGHT_FALLBACK = struct.Struct(">ihihhh")
_EMPTY_TAG_SECTION = b"\0"


def may_need_repair(api_key: int, api_version: int) -> bool:
    """Whether the mock's response to such a request may be one that it writes wrong."""
    return api_version >= _FIRST_FLEXIBLE.get(api_key, api_version + 1)


def repair(payload: bytes, api_key: int, api_version: int) -> bytes:
    """The response as it should be; one that is not wrong, or wrong in another way, is given back.

    >>> repair(bytes.fromhex("00000001 0023 01 0012 0000 0002 00000000"), 18, 4).hex(" ", 2)
    '0000 0001 0023 0000 0001 0012 0000 0002'
    """
    if api_key == _API_VERSIONS:
        return _repair_fallback(payload)
    if api_key == _METADATA:
        return _repair_end(payload, api_version)
    return payload


def _repair_fallback(payload: bytes) -> bytes:
    if len(payload) != _WRONG_FALLBACK.size:
        return payload
    correlation_id, error, count, api_key, lowest, highest, _ = _WRONG_FALLBACK.unpack(payload)
    if (error, count, api_key) != (_UNSUPPORTED_VERSION, 1, _API_VERSIONS):
        return payload
    return _RIGHT_FALLBACK.pack(correlation_id, error, 1, api_key, lowest, highest)


def _repair_end(payload: bytes, api_version: int) -> bytes:
    try:
        frame = parse_response(payload, _METADATA, api_version)
        kind = message(frame.message_name)
        _, end = kind.decode_prefix(payload, frame.body_version, frame.body_offset)
    except (DecodeError, FrameError, UnknownMessageError):
        return payload
    return payload[:end] if payload[end:] == _EMPTY_TAG_SECTION else payload
