"""Read frames that a user provides as bytes: one frame, several frames, or the start of a frame.

A frame may or may not begin with its length. `00 00 00 2b` may begin a frame of 43 bytes or a
Produce request in version 43. The bytes are therefore read both with and without a length. A
reading that decodes to the last byte is accepted. If there is no such reading, a reading that fails
only because the bytes end is used. The length shows how many bytes are missing; a field that needs
more bytes than these is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.codec import Explanation, message
from flexwire.codec.partial_explanation import FirstPart, explain_cut
from flexwire.errors import CodecError, FlexwireError, FrameError, UnknownMessageError
from flexwire.protocol.apis import is_released
from flexwire.protocol.first_bytes import find_foreign_protocol
from flexwire.protocol.frame_explanation import (
    FrameSection,
    WholeFrame,
    holds_credentials,
    only_numbers,
)
from flexwire.protocol.headers import (
    FALLING_BACK,
    UNSUPPORTED_VERSION,
    RequestFrame,
    ResponseFrame,
    check_request,
    decodes,
    header_version_read,
    parse_correlation_id,
    parse_response,
    read_request,
    request_name,
    response_header_version,
    response_name,
)
from flexwire.protocol.nested_messages import with_nested
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_UNREADABLE: Final = (FrameError, CodecError, UnknownMessageError)
# The sizes of an api key and a version together, and of a correlation id.
_KEY_AND_VERSION: Final = 4
_CORRELATION_ID: Final = 4
# Up to this size, bytes may decode completely as a response by chance. In Kafka's own vectors, 24
# bytes do so.
_SHORT: Final = 32
# The first header versions contain only the fields with which all header versions begin.
_FIRST: Final = 0
_NUMBERS: Final = struct.Struct(">hh")

RequestLookup = Callable[[int], tuple[int, int]]
"""A function that returns the API key and version of the request with a given correlation id. It
raises `FrameError`.
"""


class InputFrame(NamedTuple):
    """A frame, or the available part of a frame.

    ``at`` is the position of the frame in the given bytes. ``announced`` is the size of the payload
    according to the frame's length, or None if there is no length. ``whole`` is the frame, if it
    decodes to its last byte. Otherwise, ``error`` contains the reason, ``is_cut`` is true if the
    only reason is that bytes are missing, and ``header`` and ``body`` contain the parts that were
    read. The name of the message is known as soon as the API key and the version are available.
    """

    kind: str
    at: int
    payload: bytes
    announced: int | None
    whole: WholeFrame | None = None
    header: FirstPart | None = None
    header_version: int = _FIRST
    body: FirstPart | None = None
    message_name: str | None = None
    version: int = -1
    error: FlexwireError | None = None
    is_cut: bool = False

    @property
    def is_sound(self) -> bool:
        """True if the frame is complete, or if its only problem is missing bytes."""
        return self.whole is not None or self.is_cut

    @property
    def unread(self) -> int:
        """The number of payload bytes that do not belong to a field that was read."""
        read = sum(part.explanation.rest for part in (self.header, self.body) if part is not None)
        return len(self.payload) - read

    @property
    def extent(self) -> str:
        """The available part of the frame, in words."""
        here = len(self.payload)
        if self.announced == here or not (self.is_cut or self.announced):
            return f"a frame of {here} bytes"
        of = "" if self.announced is None else f" of {self.announced}"
        return f"the first {here}{of} bytes of a frame"

    @property
    def may_hold_credentials(self) -> bool:
        """True if the frame's incomplete body may carry credentials."""
        name = self.message_name
        return name is not None and holds_credentials(name, self.payload)

    def parts(self, *, withheld: bool = False) -> Iterator[FrameSection]:
        """Yield the readable parts of the header and the body, if the frame is not complete.

        With ``withheld``, a body that may contain credentials is not shown. In this case, only the
        numbers at the start of the header are shown.
        """
        if self.header is None:
            title = f"{self.kind}: {self.extent}"
            yield FrameSection(title, self.payload, Explanation((), 0, None), 0)
            return
        header = self.header.explanation
        data = self.payload if self.body is None else self.payload[: header.rest]
        name = f"{self.kind.capitalize()}Header"
        version = "" if self.message_name is None else f" v{self.header_version}"
        title = f"{self.kind}: {self.extent}; {name}{version}"
        is_hidden = withheld and self.may_hold_credentials
        if is_hidden:
            header = only_numbers(header)
            data = data[: header.rest]
        yield FrameSection(title, data, header, 0)
        if self.body is not None:
            title = f"{self.message_name} v{self.version}"
            if is_hidden:
                nothing = Explanation((), 0, self.body.explanation.error)
                yield FrameSection(title, b"", nothing, 1)
                return
            body = with_nested(self.body.explanation, self.message_name or "")
            yield FrameSection(title, self.payload[header.rest :], body, 0)


_Read = Callable[[InputFrame], InputFrame]
_ReadHeader = Callable[[bytes], RequestFrame | ResponseFrame]


def read_input_requests(data: bytes, *, has_length: bool = True) -> list[InputFrame]:
    """Read bytes as requests, and return the requests, if any, in order.

    Without ``has_length``, the bytes are a single request that begins with its header.
    """
    return _given(data, "request", _request, has_length=has_length)


def read_input_responses(
    data: bytes, asked: RequestLookup, *, has_length: bool = True
) -> list[InputFrame]:
    """Read bytes as responses. ``asked`` returns the request of each response."""
    return _given(data, "response", lambda frame: _response(frame, asked), has_length=has_length)


def match_by_correlation_id(requests: Sequence[InputFrame]) -> RequestLookup:
    """Return a function that finds a request by its correlation id.

    The function raises the error of `read_request` for a request whose header cannot be read.
    """
    headers = [read_request(request.payload) for request in requests]
    asked = {request.correlation_id: (request.api_key, request.api_version) for request in headers}
    ids = " or ".join(map(str, asked))

    def find(correlation_id: int) -> tuple[int, int]:
        if correlation_id not in asked:
            raise FrameError(
                f"the response has correlation id {correlation_id} instead of {ids}, so it belongs "
                "to another request"
            )
        return asked[correlation_id]

    return find


def _given(data: bytes, kind: str, read: _Read, *, has_length: bool) -> list[InputFrame]:
    bare = InputFrame(kind, 0, data, None)
    if not has_length:
        return [read(bare)]
    framed = _framed(data, kind, read)
    if all(frame.whole is not None for frame in framed):
        return framed
    is_read = framed[0].is_sound or framed[0].message_name is not None
    if kind == "request" and is_read and not _may_begin_request(data):
        return framed
    bare = read(bare)
    if _is_bare(bare, framed):
        return [bare]
    *before, last = framed
    if not before and last.is_cut and bare.whole is not None:
        reason = (
            f"{last.error}; read without a length, the bytes are a complete {bare.message_name}"
        )
        return [last._replace(error=FrameError(reason))]
    return framed


def _framed(data: bytes, kind: str, read: _Read) -> list[InputFrame]:
    """Split bytes into frames by their lengths. Return the frames before an unreadable frame."""
    frames: list[InputFrame] = []
    at = 0
    while at < len(data) and (not frames or frames[-1].message_name is not None):
        begin = at + PREFIX_LENGTH
        announced = int.from_bytes(data[at:begin], "big", signed=True)
        if begin > len(data):
            here = len(data) - at
            reason = f"a frame must begin with a length field of {PREFIX_LENGTH} bytes, got {here}"
            cut = InputFrame(kind, at, b"", None, error=FrameError(reason), is_cut=True)
            return [*frames, cut]
        if (opening := find_foreign_protocol(data[at:begin])) is not None:
            reason = f"not Kafka's protocol: the first {PREFIX_LENGTH} bytes are {opening.what}"
            return [*frames, InputFrame(kind, at, data[at:], None, error=FrameError(reason))]
        if announced < 0:
            reason = f"a frame cannot have {announced} bytes; this is not Kafka's protocol"
            return [*frames, InputFrame(kind, at, data[at:], announced, error=FrameError(reason))]
        frames.append(read(InputFrame(kind, at, data[begin : begin + announced], announced)))
        at = begin + announced
    return frames


def _is_bare(bare: InputFrame, framed: Sequence[InputFrame]) -> bool:
    """Return whether the bytes are more likely one frame without its length."""
    if bare.message_name is None:
        return False
    *before, last = framed
    size = len(bare.payload)
    if bare.whole is not None:
        is_chance = bare.kind == "response" and size <= _SHORT
        return not (is_chance and framed[0].is_cut)
    if last.is_sound and all(frame.whole is not None for frame in before):
        # The lengths of frames of 64 KiB or more look like API keys other than 0.
        is_doubtful = bare.kind == "request" and any(bare.payload[:2])
        is_known = last.message_name is not None
        return is_doubtful and is_known and bare.is_cut and bare.unread < last.unread
    is_exact = last.at + PREFIX_LENGTH + (last.announced or 0) == size
    if is_exact and last.message_name is not None:
        return False
    return bare.is_cut or framed[0].message_name is None


def _may_begin_request(data: bytes) -> bool:
    return len(data) >= _KEY_AND_VERSION and is_released(*_key_and_version(data))


def _request(frame: InputFrame) -> InputFrame:
    payload = frame.payload
    if len(payload) < _KEY_AND_VERSION:
        return _opened(frame, "RequestHeader", _FIRST)
    if (whole := _whole(frame, read_request)) is not None:
        return whole
    key, version = _key_and_version(payload)
    try:
        check_request(key, version)
    except FrameError as error:
        return frame._replace(error=error)
    named = frame._replace(message_name=request_name(key, version), version=version)
    return _opened(named, "RequestHeader", header_version_read(key, version))


def _response(frame: InputFrame, asked: RequestLookup) -> InputFrame:
    payload = frame.payload
    if len(payload) < _CORRELATION_ID:
        return _opened(frame, "ResponseHeader", _FIRST)
    try:
        key, version = asked(parse_correlation_id(payload))
    except FrameError as error:
        return frame._replace(error=error)
    if (whole := _whole(frame, lambda data: parse_response(data, key, version))) is not None:
        return whole
    header_version = response_header_version(key, version)
    named = frame._replace(message_name=response_name(key, version), version=version)
    opened = _opened(named, "ResponseHeader", header_version)
    if opened.is_cut or named.message_name != FALLING_BACK:
        return opened
    # A broker that lacks the version answers in version 0 (KIP-511).
    first = _opened(named._replace(version=0), "ResponseHeader", header_version)
    says = first.body is not None and first.body.form.get("errorCode") == UNSUPPORTED_VERSION
    return first if first.is_cut and says else opened


def _whole(frame: InputFrame, read: _ReadHeader) -> InputFrame | None:
    """Return the frame if it is complete and decodes to its last byte. Otherwise return None."""
    payload, announced = frame.payload, frame.announced
    if announced not in {None, len(payload)}:
        return None
    try:
        header = read(payload)
    except _UNREADABLE:
        return None
    name, body = header.message_name, payload[header.body_offset :]
    version = header.api_version if isinstance(header, RequestFrame) else header.body_version
    if not decodes(name, body, version):
        return None
    whole = WholeFrame(payload, announced is not None, header, version)
    return frame._replace(whole=whole, message_name=name, version=version)


def _opened(frame: InputFrame, header_name: str, header_version: int) -> InputFrame:
    """Return the frame with the readable parts of its header and its body."""
    payload, announced = frame.payload, frame.announced
    missing = None if announced is None else announced - len(payload)
    header = explain_cut(message(header_name), payload, header_version, missing, follows=True)
    frame = frame._replace(header=header, header_version=header_version)
    if header.explanation.error is not None or frame.message_name is None:
        return _ended(frame, header)
    rest = payload[header.explanation.rest :]
    try:
        body = explain_cut(message(frame.message_name), rest, frame.version, missing)
    except UnknownMessageError as error:
        return frame._replace(error=error)
    return _ended(frame._replace(body=body), body)


def _ended(frame: InputFrame, last: FirstPart) -> InputFrame:
    """Return the frame with the error at which reading of the header or body stopped."""
    error, here = last.explanation.error, len(frame.payload)
    if frame.announced is None:
        reason = "the frame is cut off; without its length, the number of missing bytes is unknown"
    else:
        reason = (
            f"the frame is cut off: its first {PREFIX_LENGTH} bytes announce {frame.announced} "
            f"bytes, but {here} follow"
        )
    if error is not None and not last.is_cut:
        is_whole = frame.announced in {None, here}
        return frame._replace(error=error if is_whole else FrameError(f"{reason}; {error}"))
    if error is not None and here:
        # The first four bytes of the header determine its version.
        version = "" if frame.message_name is None else f" v{error.version}"
        reason += f"; the bytes end in {error.message}{version} at {error.path}"
    return frame._replace(error=FrameError(reason), is_cut=True)


def _key_and_version(data: bytes) -> tuple[int, int]:
    return _NUMBERS.unpack_from(data)
