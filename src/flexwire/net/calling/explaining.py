"""What each byte of a request and its response means: length, header and body of both frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flexwire.codec import Explanation, Message, explain, message
from flexwire.errors import CodecError
from flexwire.protocol import withhold
from flexwire.protocol.credentials import hides_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.net.calling.answers import Answer, Frame


class Part(NamedTuple):
    """A header or a body: what it is, its bytes, and what they mean.

    Where credentials were ``withheld`` the bytes are not those that were sent; a body that does not
    decode and may hold some is not shown at all.
    """

    title: str
    data: bytes
    explanation: Explanation
    withheld: int


def explain_request(answer: Answer) -> Iterator[Part]:
    """The header and the body of what was sent."""
    header, frame = answer.request_header, answer.request_frame
    yield _header("request", frame, header.header, header.header_version)
    yield _body(type(answer.request), frame, answer.version)


def explain_response(answer: Answer) -> Iterator[Part]:
    """The header and the body of what came, whether it decodes or not; nothing where none came."""
    header, frame = answer.response_header, answer.response_frame
    if header is None or frame is None:
        return
    yield _header("response", frame, header.header, header.header_version)
    kind = type(answer.response) if answer.response is not None else message(header.message_name)
    yield _body(kind, frame, answer.response_version)


def _header(what: str, frame: Frame, header: Message, version: int) -> Part:
    data = frame.payload[: frame.body_offset]
    title = f"{what}: a frame of {len(frame.payload)} bytes; {type(header).__name__} v{version}"
    return Part(title, data, explain(type(header), data, version), 0)


def _body(kind: type[Message], frame: Frame, version: int) -> Part:
    data, withheld = frame.payload[frame.body_offset :], 0
    try:
        shown = kind.decode(data, version)
    except CodecError:
        if hides_credentials(kind.__name__.replace("Response", "Request"), frame.payload):
            data, withheld = b"", 1
    else:
        withheld = withhold(shown)
        data = shown.encode(version) if withheld else data
    return Part(f"{kind.__name__} v{version}", data, explain(kind, data, version), withheld)
