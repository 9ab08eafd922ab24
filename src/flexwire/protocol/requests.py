"""Request frames: what their header says, and where their body begins.

A request says of itself all that it takes to read it, unlike a response
(`flexwire.protocol.responses`). Whether a frame is a request at all is not decided by its bytes
alone (`flexwire.protocol.conversation`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from flexwire.codec import Message, message
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.protocol.apis import is_released, request_entries
from flexwire.protocol.frames import begins_with_length
from flexwire.protocol.headers import request_header_version
from flexwire.schema.catalog import per_catalog
from flexwire.wire.segment_layout import PREFIX_LENGTH

# Every version of the request header begins so: api key, api version, correlation id.
_HEAD: Final = struct.Struct(">hhi")
# Bytes; most client ids are shorter.
_SHORT_HEADER: Final = 256
_KEY_AND_VERSION: Final = struct.Struct(">hh")


@dataclass(frozen=True, slots=True)
class RequestFrame:
    """A request as its header describes it; the body is `payload[body_offset:]`, not yet decoded.

    ``message_name`` is the newest name of a request with this api key and version. The version may
    be above those in the catalog; then the body cannot be decoded.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    header_version: int
    header: Message
    body_offset: int
    message_name: str

    @property
    def api_name(self) -> str:
        """The request's name without the suffix, as "Produce"."""
        return self.message_name.removesuffix("Request")

    def without_header(self) -> RequestFrame:
        """Return the same without what a client may make long: its id and its header's tags.

        A frame with a short header is returned itself.
        """
        if self.body_offset <= _SHORT_HEADER:
            return self
        return replace(self, client_id=None, header=type(self.header)())


def parse_request(payload: bytes) -> RequestFrame:
    """Read a request's header from the payload of a frame.

    Raises `FrameError` when the payload cannot be a request (too short, an api key that no
    release has, a negative version) or begins with its own length as a frame does, and
    `DecodeError` when the header is broken further on.
    """
    if begins_with_length(payload) and not is_released(*_KEY_AND_VERSION.unpack_from(payload)):
        raise FrameError(
            "not a request: these bytes begin with their own length, as a frame does; the request "
            f"begins after the first {PREFIX_LENGTH}"
        )
    return read_request(payload)


def read_request(payload: bytes) -> RequestFrame:
    """Read a request's header from what is known to be the payload of a frame.

    Raises what `parse_request` does, and takes what begins with its own length as it is: so does a
    Produce request of a version that is not released yet.
    """
    if len(payload) < _HEAD.size:
        raise FrameError(
            f"a request header has at least {_HEAD.size} bytes, got a frame of {len(payload)}"
        )
    api_key, api_version, correlation_id = _HEAD.unpack_from(payload)
    check_request(api_key, api_version)
    header_version = request_header_version(api_key, api_version)
    header, body_offset = message("RequestHeader").decode_prefix(payload, header_version)
    fields: Any = header
    return RequestFrame(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=fields.client_id if header_version else None,
        header_version=header_version,
        header=header,
        body_offset=body_offset,
        message_name=request_name(api_key, api_version),
    )


def check_request(api_key: int, api_version: int) -> None:
    """Raise `FrameError` if no request has these two numbers in front."""
    if not request_entries(api_key):
        raise FrameError(f"not a request: no Kafka release in the catalog has api key {api_key}")
    if api_version < 0:
        raise FrameError(f"not a request: version {api_version} of api key {api_key} is negative")


@per_catalog
@lru_cache(maxsize=4096)
def request_name(api_key: int, version: int) -> str:
    """The newest name of the request with an api key that has the version, or the newest of all."""
    entries = request_entries(api_key)
    return next((entry.name for entry in entries if version in entry.versions), entries[0].name)


def decodes(message_name: str, body: bytes, version: int) -> bool:
    """Whether the body of a request or response is a message of that version, to its last byte."""
    try:
        message(message_name).decode(body, version)
    except (CodecError, UnknownMessageError):
        return False
    return True
