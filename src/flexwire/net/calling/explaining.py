"""What each byte of a request and its response means: length, header and body of both frames."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

from flexwire.codec import Explanation, Message, explain
from flexwire.protocol import withhold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.net.calling.answers import Answer, Frame


class Part(NamedTuple):
    """A header or a body: what it is, its bytes, and what they mean.

    ``withheld`` credentials of it are replaced, so that the bytes are not those that were sent.
    """

    title: str
    data: bytes
    explanation: Explanation
    withheld: int


def explain_answer(answer: Answer) -> Iterator[Part]:
    """The parts of what was sent and what came, in order."""
    sent = answer.request_header
    yield from _parts(
        "request", answer.request_frame, sent.header, sent.header_version, answer.request,
        answer.version,
    )  # fmt: skip
    came = answer.response_header
    if came is not None and answer.response is not None and answer.response_frame is not None:
        yield from _parts(
            "response", answer.response_frame, came.header, came.header_version, answer.response,
            answer.response_version,
        )  # fmt: skip


def _parts(
    what: str, frame: Frame, header: Message, header_version: int, body: Message, version: int
) -> Iterator[Part]:
    size = len(frame.payload)
    head, data = frame.payload[: frame.body_offset], frame.payload[frame.body_offset :]
    title = f"{what}: a frame of {size} bytes; {type(header).__name__} v{header_version}"
    yield Part(title, head, explain(type(header), head, header_version), 0)
    kind, shown = type(body), copy.deepcopy(body)
    withheld = withhold(shown)
    data = shown.encode(version) if withheld else data
    yield Part(f"{kind.__name__} v{version}", data, explain(kind, data, version), withheld)
