"""Explain a frame whose header was read: the meaning of each byte in the header and body."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from flexwire.codec import Explanation, explain, message
from flexwire.errors import CodecError, DecodeError, UnknownMessageError
from flexwire.protocol.credentials import hides_credentials, withhold
from flexwire.protocol.headers import RequestFrame
from flexwire.protocol.nested_messages import with_nested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec import Message
    from flexwire.protocol.headers import ResponseFrame

# The combined size of an API key, a version and a correlation id.
_NUMBERS = 8


class WholeFrame(NamedTuple):
    """A frame's payload, the fields of its header, and the message of its body.

    ``had_length`` is true if the bytes began with the frame's length.
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


class FrameSection(NamedTuple):
    """A header or a body: its name, its bytes, and the meaning of the bytes.

    If credentials were ``withheld``, the bytes differ from the bytes that were sent. A body that
    cannot be decoded and may contain credentials is not shown at all.
    """

    title: str
    data: bytes
    explanation: Explanation
    withheld: int


def explain_frame(
    frame: WholeFrame, *, withheld: bool = False, asked_plainly: bool = False
) -> Iterator[FrameSection]:
    """Yield the header and the body of a frame, whether or not the body can be decoded.

    With ``withheld``, credentials are replaced. See `withhold` for ``asked_plainly``. A body that
    may contain credentials and cannot be decoded is not shown. In this case, only the numbers at
    the start of the header are shown, because a damaged length may have moved any bytes into the
    rest of the header.
    """
    header, version = frame.header, frame.header.header_version
    data = frame.payload[: header.body_offset]
    explanation = explain(type(header.header), data, version)
    hidden = _unreadable_credentials(frame) if withheld else None
    if hidden is not None:
        explanation = only_numbers(explanation)
        data = data[: explanation.rest]
    title = f"{frame.kind}: a frame of {len(frame.payload)} bytes; {type(header.header).__name__}"
    yield FrameSection(f"{title} v{version}", data, explanation, 0)
    if hidden is not None:
        nothing = Explanation((), 0, hidden)
        yield FrameSection(f"{header.message_name} v{frame.version}", b"", nothing, 1)
    else:
        yield _body(frame, withheld=withheld, asked_plainly=asked_plainly)


def only_numbers(header: Explanation) -> Explanation:
    """Return the explanation of only the numbers at the start of a header.

    A damaged length may have moved a credential into the rest of the header.
    """
    annotations = tuple(
        annotation
        for annotation in header.annotations
        if annotation.offset + annotation.length <= _NUMBERS
    )
    rest = max((annotation.offset + annotation.length for annotation in annotations), default=0)
    return Explanation(annotations, rest, None)


def withheld_bytes(
    kind: type[Message], data: bytes, version: int, *, asked_plainly: bool = False
) -> tuple[bytes, int]:
    """Return a message's bytes without credentials, and the number of replaced credentials.

    See `withhold` for ``asked_plainly``. Raises `CodecError` or `UnknownMessageError` if the
    message cannot be decoded.
    """
    shown = kind.decode(data, version)
    count = withhold(shown, asked_plainly=asked_plainly)
    return (shown.encode(version) if count else data), count


def holds_credentials(message_name: str, payload: bytes) -> bool:
    """Return whether a request or response with these bytes may carry credentials.

    >>> holds_credentials("SaslAuthenticateResponse", b""), holds_credentials("FetchResponse", b"")
    (True, False)
    """
    return hides_credentials(message_name.replace("Response", "Request"), payload)


def _unreadable_credentials(frame: WholeFrame) -> DecodeError | None:
    """Return why a body that may contain credentials cannot be decoded.

    Returns None if the body can be decoded or cannot contain credentials.
    """
    name = frame.header.message_name
    if not holds_credentials(name, frame.payload):
        return None
    try:
        message(name).decode(frame.body, frame.version)
    except DecodeError as error:
        return error
    except UnknownMessageError as error:
        return DecodeError(str(error), message=name, version=frame.version)
    return None


def _body(frame: WholeFrame, *, withheld: bool, asked_plainly: bool) -> FrameSection:
    kind = message(frame.header.message_name)
    data, count, version = frame.body, 0, frame.version
    if withheld:
        with suppress(CodecError, UnknownMessageError):
            data, count = withheld_bytes(kind, data, version, asked_plainly=asked_plainly)
    explanation = with_nested(explain(kind, data, version), kind.__name__)
    return FrameSection(f"{kind.__name__} v{version}", data, explanation, count)
