"""What each byte of a request and its response means: length, header and body of both frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.protocol.whole_frames import Part, WholeFrame, explain_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.net.calling.answers import Answer


def explain_request(answer: Answer) -> Iterator[Part]:
    """The header and the body of what was sent, without credentials."""
    payload = answer.request_frame.payload
    frame = WholeFrame(
        payload, had_length=False, header=answer.request_header, version=answer.version
    )
    return explain_frame(frame, withheld=True)


def explain_response(answer: Answer) -> Iterator[Part]:
    """The header and the body of what came, whether it decodes or not; nothing where none came."""
    header, came = answer.response_header, answer.response_frame
    if header is None or came is None:
        return
    frame = WholeFrame(
        came.payload, had_length=False, header=header, version=answer.response_version
    )
    yield from explain_frame(frame, withheld=True)
