"""What each byte of a request and its response means: length, header and body of both frames."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from flexwire.protocol.credentials import withhold
from flexwire.protocol.whole_frames import Part, WholeFrame, explain_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.client.answers import Answer


def explain_request(answer: Answer) -> Iterator[Part]:
    """The header and the body of what was sent, without credentials."""
    payload = answer.request_frame.payload
    frame = WholeFrame(
        payload, had_length=False, header=answer.request_header, version=answer.version
    )
    return explain_frame(frame, withheld=True)


def explain_response(answer: Answer) -> Iterator[Part]:
    """Yield the header and the body of what came, whether it decodes or not.

    Yield nothing where no answer came. What the request has as a credential is not shown, nor a
    text that may quote it.
    """
    header, came = answer.response_header, answer.response_frame
    if header is None or came is None:
        return
    frame = WholeFrame(
        came.payload, had_length=False, header=header, version=answer.response_version
    )
    asked_plainly = withhold(copy.deepcopy(answer.request)) == 0
    yield from explain_frame(frame, withheld=True, asked_plainly=asked_plainly)
