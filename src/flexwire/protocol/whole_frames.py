"""One frame as somebody has it: with its length or without, its header and its body together.

A request says what it is. A response does not: its api key and version are given, or the request
that it answers is. Whether the first four bytes are the frame's length is seen by reading both
ways, as `00 00 00 2b` begins a frame of 43 bytes as well as a Produce request of version 43.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flexwire.codec import Explanation, Message, explain, message
from flexwire.errors import CodecError, DecodeError, FrameError, UnknownMessageError
from flexwire.protocol.apis import is_released
from flexwire.protocol.credentials import hides_credentials, withhold
from flexwire.protocol.frames import begins_with_length
from flexwire.protocol.requests import RequestFrame, decodes, read_request
from flexwire.protocol.responses import ResponseFrame, parse_response
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator

# An api key, a version and a correlation id take so many bytes.
_NUMBERS = 8
_UNREADABLE = (FrameError, CodecError, UnknownMessageError)


class WholeFrame(NamedTuple):
    """A frame's payload, what its header says, and which message its body is.

    ``had_length`` says whether the bytes began with the frame's length.
    """

    payload: bytes
    had_length: bool
    header: RequestFrame | ResponseFrame
    version: int

    @property
    def kind(self) -> str:
        """The word "request" or "response"."""
        return "request" if isinstance(self.header, RequestFrame) else "response"

    @property
    def body(self) -> bytes:
        """The bytes of the message after the header."""
        return self.payload[self.header.body_offset :]


class Part(NamedTuple):
    """A header or a body: what it is, its bytes, and what they mean.

    Where credentials were ``withheld`` the bytes are not those that were sent; a body that does not
    decode and may hold some is not shown at all.
    """

    title: str
    data: bytes
    explanation: Explanation
    withheld: int


def read_request_frame(data: bytes) -> WholeFrame:
    """Read a request, with or without the frame's length. Raises what `parse_request` raises."""
    for payload, had_length in _readings(data):
        try:
            found = read_request(payload)
        except _UNREADABLE:
            continue
        body = payload[found.body_offset :]
        if decodes(found.message_name, body, found.api_version):
            return WholeFrame(payload, had_length, found, found.api_version)
    payload, had_length = _likely(data)
    found = read_request(payload)
    return WholeFrame(payload, had_length, found, found.api_version)


def read_response_frame(data: bytes, api_key: int, api_version: int) -> WholeFrame:
    """Read a response to a request of that api key and version.

    Raises what `parse_response` raises.
    """
    for payload, had_length in _readings(data):
        try:
            found = parse_response(payload, api_key, api_version)
        except _UNREADABLE:
            continue
        if decodes(found.message_name, payload[found.body_offset :], found.body_version):
            return WholeFrame(payload, had_length, found, found.body_version)
    payload, had_length = _likely(data)
    found = parse_response(payload, api_key, api_version)
    return WholeFrame(payload, had_length, found, found.body_version)


def explain_frame(frame: WholeFrame, *, withheld: bool = False) -> Iterator[Part]:
    """The header and the body of a frame, whether it decodes or not.

    With ``withheld`` credentials are asterisks. Of what may hold some and does not decode, only the
    numbers are shown with which its header begins: a damaged length may have put all else into it.
    """
    header, version = frame.header, frame.header.header_version
    data = frame.payload[: header.body_offset]
    found = explain(type(header.header), data, version)
    hidden = _unreadable_credentials(frame) if withheld else None
    if hidden is not None:
        kept = tuple(one for one in found.annotations if one.offset + one.length <= _NUMBERS)
        rest = max((one.offset + one.length for one in kept), default=0)
        data, found = data[:rest], Explanation(kept, rest, None)
    title = f"{frame.kind}: a frame of {len(frame.payload)} bytes; {type(header.header).__name__}"
    yield Part(f"{title} v{version}", data, found, 0)
    if hidden is not None:
        nothing = Explanation((), 0, hidden)
        yield Part(f"{header.message_name} v{frame.version}", b"", nothing, 1)
    else:
        yield _body(message(header.message_name), frame, withheld=withheld)


def _unreadable_credentials(frame: WholeFrame) -> DecodeError | None:
    """Why a body that may hold credentials does not decode, where that is so."""
    name = frame.header.message_name
    if not hides_credentials(name.replace("Response", "Request"), frame.payload):
        return None
    try:
        message(name).decode(frame.body, frame.version)
    except DecodeError as error:
        return error
    except UnknownMessageError as error:
        return DecodeError(str(error), message=name, version=frame.version)
    return None


def _body(kind: type[Message], frame: WholeFrame, *, withheld: bool) -> Part:
    data, count, version = frame.body, 0, frame.version
    if withheld:
        try:
            shown = kind.decode(data, version)
        except (CodecError, UnknownMessageError):
            pass
        else:
            count = withhold(shown)
            data = shown.encode(version) if count else data
    return Part(f"{kind.__name__} v{version}", data, explain(kind, data, version), count)


def _readings(data: bytes) -> list[tuple[bytes, bool]]:
    """The payloads that the bytes may be, the likeliest first."""
    if not begins_with_length(data):
        return [(data, False)]
    return [(data[PREFIX_LENGTH:], True), (data, False)]


def _likely(data: bytes) -> tuple[bytes, bool]:
    """The payload of what decodes in no way, whose error is the one to tell."""
    if not begins_with_length(data):
        return data, False
    key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
    return (data, False) if is_released(key, version) else (data[PREFIX_LENGTH:], True)
