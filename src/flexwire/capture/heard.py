"""What a captured frame is in its conversation, whether the capture has all of it or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.capture.reassembly.connections import CapturedFrame
    from flexwire.protocol import Conversation, Turn


def heard(frame: CapturedFrame, conversation: Conversation) -> Turn:
    """Take the next frame of a connection in, and return what it is in its conversation."""
    is_request, payload, seen = frame.direction == "request", frame.payload, frame.timestamp_us
    error, is_placed = frame.error, frame.is_placed
    if error is None:
        hear = conversation.request if is_request else conversation.response
        return hear(payload, seen)
    # A frame that is cut off, or damaged further on, still says what its header says.
    if is_request:
        return conversation.damaged_request(payload, error, seen, is_placed=is_placed)
    return conversation.damaged_response(error, payload, seen, is_placed=is_placed)
