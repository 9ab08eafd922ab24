"""Request and response headers: their versions, their fields, and the start of the body.

`flexwire.schema.header_versions` decides which header version precedes which message version. The
decision follows the spec or, up to Kafka 4.4, the flexible versions. The version ranges have no
upper end, so a version above those in the catalog also has a header version. However, a request in
such a version is read as brokers read unknown versions: the header is read as version 1, with which
every later version begins, and the body is not read (KAFKA-21160). KIP-482 itself numbers headers
differently and makes no exceptions. `Numbering` selects this scheme.

Unlike a response (`flexwire.protocol.responses`), a request contains everything that is needed to
read it. The bytes alone do not show whether a frame is a request at all
(`flexwire.protocol.conversation`).

A response contains a correlation id but neither an API key nor a version. It is therefore read with
the API key and version of its request, which `flexwire.protocol.conversation` finds.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from flexwire.codec import Message, message, message_of
from flexwire.errors import CodecError, DecodeError, FrameError, UnknownMessageError
from flexwire.protocol.apis import is_released, request_entries
from flexwire.protocol.frames import begins_with_length
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.header_versions import HEADER_NAMES, READ_BY_ALL
from flexwire.schema.parse import parse_spec
from flexwire.schema.spec import MessageType
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from flexwire.schema.catalog import CatalogEntry
    from flexwire.schema.spec import HeaderVersions
    from flexwire.versions import Versions


# The two headers in the text of KIP-482, "RequestHeader Version 1" and "ResponseHeader Version 1".
# Before KIP-482, a client id could be null, so these headers also allow null.
_KIP_482_REQUEST_HEADER: Final = """{
  "type": "header", "name": "RequestHeader", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "RequestApiKey", "type": "int16", "versions": "0+"},
    {"name": "RequestApiVersion", "type": "int16", "versions": "0+"},
    {"name": "CorrelationId", "type": "int32", "versions": "0+"},
    {"name": "ClientId", "type": "string", "versions": "0+", "nullableVersions": "0+"}
  ]
}"""
_KIP_482_RESPONSE_HEADER: Final = """{
  "type": "header", "name": "ResponseHeader", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [{"name": "CorrelationId", "type": "int32", "versions": "0+"}]
}"""


class Numbering(Enum):
    """The numbering of header versions: the one in Kafka's releases, or the one in KIP-482.

    In the KIP, for both requests and responses, all flexible versions use header version 1 and all
    other versions use header version 0. The client id in request header 1 is compact.
    """

    KAFKA = "kafka"
    KIP_482 = "kip-482"


def request_header_version(
    api_key: int, version: int, numbering: Numbering = Numbering.KAFKA
) -> int:
    """Return the header version of a request.

    Version 0 has no client id. Versions 2 and later have tagged fields.

    Only a catalog of Kafka 4.5 or later contains requests with header 3.

    Raises `UnknownMessageError` for an API key that is in no release and, in KIP-482's numbering,
    for the header without a client id, which has no number in the KIP.

    >>> request_header_version(18, 3), request_header_version(18, 2), request_header_version(7, 0)
    (2, 1, 0)
    >>> request_header_version(18, 3, Numbering.KIP_482)
    1
    """
    header = _header_version(api_key, MessageType.REQUEST, version)
    if numbering is Numbering.KAFKA:
        return header
    if header == 0:
        raise UnknownMessageError(
            f"api key {api_key} v{version} has a header without a client id, for which KIP-482 "
            "defines no header version"
        )
    return int(version in _flexible_versions(api_key, MessageType.REQUEST))


def header_version_read(api_key: int, version: int) -> int:
    """Return the version in which a request's header is read, or 1 if no release has the request.

    Raises `UnknownMessageError` for an API key that is in no release.

    >>> header_version_read(3, 9), header_version_read(3, 99), request_header_version(3, 99)
    (2, 1, 2)
    """
    header = request_header_version(api_key, version)
    return header if is_released(api_key, version) else READ_BY_ALL["RequestHeader"]


def has_newest_header(payload: bytes) -> bool:
    """Return whether a request begins with the complete header of its version.

    In a version that is in no release, `read_request` reads less than this header. The result is
    also False if the bytes are not a request.
    """
    if len(payload) < _HEAD.size:
        return False
    api_key, api_version, _ = _HEAD.unpack_from(payload)
    try:
        check_request(api_key, api_version)
        header_version = request_header_version(api_key, api_version)
        message("RequestHeader").decode_prefix(payload, header_version)
    except (FrameError, CodecError):
        return False
    return True


def response_header_version(
    api_key: int, version: int, numbering: Numbering = Numbering.KAFKA
) -> int:
    """Return the header version of a response: 1 with tagged fields, 0 without them.

    Raises `UnknownMessageError` for an API key that is in no release.

    >>> response_header_version(3, 9), response_header_version(3, 8), response_header_version(18, 3)
    (1, 0, 0)
    >>> response_header_version(18, 3, Numbering.KIP_482)
    1
    """
    if numbering is Numbering.KIP_482:
        return int(version in _flexible_versions(api_key, MessageType.RESPONSE))
    return _header_version(api_key, MessageType.RESPONSE, version)


def request_header(numbering: Numbering = Numbering.KAFKA) -> type[Message]:
    """Return the class of the request header for this numbering of versions.

    >>> header = request_header(Numbering.KIP_482)
    >>> header(correlation_id=7, client_id="a").encode(1).hex(" ")
    '00 00 00 00 00 00 00 07 02 61 00'
    """
    if numbering is Numbering.KAFKA:
        return message("RequestHeader")
    return message_of(parse_spec(_KIP_482_REQUEST_HEADER, "RequestHeader (KIP-482)", mode="kip"))


def response_header(numbering: Numbering = Numbering.KAFKA) -> type[Message]:
    """Return the class of the response header for this numbering of versions."""
    if numbering is Numbering.KAFKA:
        return message("ResponseHeader")
    return message_of(parse_spec(_KIP_482_RESPONSE_HEADER, "ResponseHeader (KIP-482)", mode="kip"))


@per_catalog
@cache
def _flexible_versions(api_key: int, kind: MessageType) -> Versions:
    return _newest_entry(api_key, kind).flexible_versions


def _header_version(api_key: int, kind: MessageType, version: int) -> int:
    headers = _header_versions(api_key, kind)
    # No broker supports a negative version, so a broker answers as for any version that it lacks.
    return headers.of(version) if version >= 0 else READ_BY_ALL[HEADER_NAMES[kind]]


@per_catalog
@cache
def _header_versions(api_key: int, kind: MessageType) -> HeaderVersions:
    return _newest_entry(api_key, kind).header_versions


def _newest_entry(api_key: int, kind: MessageType) -> CatalogEntry:
    # Errors are not cached, so hostile API keys cannot fill the caches above.
    if api_key not in catalog().api_keys():
        raise UnknownMessageError(f"no Kafka release in the catalog has api key {api_key}")
    return catalog().by_api_key(api_key, kind)


def first_with_tags(kind: MessageType) -> int:
    """Return the first header version of requests or responses that can contain tags.

    >>> first_with_tags(MessageType.REQUEST), first_with_tags(MessageType.RESPONSE)
    (2, 1)
    """
    return catalog().entry(HEADER_NAMES[kind]).flexible_versions.lowest


# Every version of the request header begins with these fields: API key, API version and correlation
# id.
_HEAD: Final = struct.Struct(">hhi")
# The largest size of a short header, in bytes. Most client ids are shorter.
_SHORT_HEADER: Final = 256
_KEY_AND_VERSION: Final = struct.Struct(">hh")


@dataclass(frozen=True, slots=True)
class RequestFrame:
    """A request as described by its header. The body, `payload[body_offset:]`, is not decoded.

    ``message_name`` is the newest name of a request with this API key and version. If the version
    is not in the catalog, the header was read as version 1 (`header_version_read`), and the body
    cannot be decoded, because it may begin with the header's tagged fields. A conversation sets the
    connection's ``client_id`` if the header's client id is null.
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
        """The name of the request without its suffix, such as "Produce"."""
        return self.message_name.removesuffix("Request")

    def without_header(self) -> RequestFrame:
        """Return the same frame without the client id and the header tags.

        The client id and the header tags can be of any length. A frame with a short header is
        returned unchanged.
        """
        if self.body_offset <= _SHORT_HEADER:
            return self
        return replace(self, client_id=None, header=type(self.header)())


def parse_request(payload: bytes) -> RequestFrame:
    """Read a request's header from the payload of a frame.

    Raises `FrameError` if the payload cannot be a request: it is too short, its API key is in no
    release, its version is negative, or it begins with its own length, as a frame does. Raises
    `DecodeError` if later bytes of the header are damaged.
    """
    if begins_with_length(payload) and not is_released(*_KEY_AND_VERSION.unpack_from(payload)):
        raise FrameError(
            "not a request but a frame: these bytes begin with their own length; the request "
            f"follows the first {PREFIX_LENGTH} bytes"
        )
    return read_request(payload)


def read_request(payload: bytes) -> RequestFrame:
    """Read a request's header from bytes that are known to be the payload of a frame.

    Raises the same errors as `parse_request`, but accepts a payload that begins with its own
    length, because a Produce request in a version that is not yet released can do so.
    """
    if len(payload) < _HEAD.size:
        raise FrameError(
            f"a request header must have at least {_HEAD.size} bytes, got a frame of {len(payload)}"
        )
    api_key, api_version, correlation_id = _HEAD.unpack_from(payload)
    check_request(api_key, api_version)
    header_version = header_version_read(api_key, api_version)
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


def read_released(payload: bytes) -> RequestFrame | None:
    """Return the request in a frame, or None if it cannot be read or its version is unreleased."""
    try:
        request = read_request(payload)
    except (FrameError, CodecError, UnknownMessageError):
        return None
    return request if is_released(request.api_key, request.api_version) else None


def check_request(api_key: int, api_version: int) -> None:
    """Raise `FrameError` if no request begins with these two numbers."""
    if not request_entries(api_key):
        raise FrameError(f"not a request: no Kafka release in the catalog has api key {api_key}")
    if api_version < 0:
        raise FrameError(f"not a request: version {api_version} of api key {api_key} is negative")


def known_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> RequestFrame:
    """Return a request that contains only these facts, for callers that need no others."""
    return RequestFrame(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=client_id,
        header_version=0,
        header=message("RequestHeader")(),
        body_offset=0,
        message_name=request_name(api_key, api_version),
    )


@per_catalog
@lru_cache(maxsize=4096)
def request_name(api_key: int, version: int) -> str:
    """Return the newest name under which a request has this version, or else its newest name."""
    entries = request_entries(api_key)
    return next((entry.name for entry in entries if version in entry.versions), entries[0].name)


def decodes(message_name: str, body: bytes, version: int) -> bool:
    """Return whether a body is a complete message in that version."""
    try:
        message(message_name).decode(body, version)
    except (CodecError, UnknownMessageError):
        return False
    return True


UNSUPPORTED_VERSION: Final = 35
FALLING_BACK: Final = "ApiVersionsResponse"
"""The only response that a broker sends in version 0 if it lacks the version of the request."""
_CORRELATION_ID: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class ResponseFrame:
    """A response as described by its header and request. The body is `payload[body_offset:]`.

    ``body_version`` is the version of the request. For an ApiVersions request, ``body_version``
    can be 0, because a broker that lacks the version answers in version 0 (KIP-511).
    """

    correlation_id: int
    header_version: int
    header: Message
    body_offset: int
    body_version: int
    message_name: str


def parse_response(payload: bytes, api_key: int, api_version: int) -> ResponseFrame:
    """Read a response's header from the payload of a frame, given the request that it answers.

    Raises `FrameError` if the payload is too short to be a response, `DecodeError` if later bytes
    of the header are damaged, and `UnknownMessageError` for an API key that is in no release.
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
    """Return the newest name under which a response has this version, or else its newest name."""
    return request_name(api_key, version).removesuffix("Request") + "Response"


def parse_correlation_id(payload: bytes) -> int:
    """Return the correlation id, with which every version of the response header begins."""
    if len(payload) < _CORRELATION_ID.size:
        raise FrameError(
            f"a response header needs at least {_CORRELATION_ID.size} bytes, "
            f"but the frame has only {len(payload)}"
        )
    correlation_id: int = _CORRELATION_ID.unpack_from(payload)[0]
    return correlation_id


def _is_fallback(body: bytes, api_version: int) -> bool:
    # A body of version 0 never decodes as a later version. In versions up to 2, the throttle time
    # would be missing. In later versions, the first byte of the int32 count would be a null array,
    # which the field does not allow.
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
