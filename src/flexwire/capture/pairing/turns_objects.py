"""Frames of one connection read one by one: what is not plain, and everything without kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.capture.heard import heard
from flexwire.capture.pairing.turns_outcomes import FAILED, TOKEN
from flexwire.capture.pairing.withheld import withheld_tagged_fields
from flexwire.codec import message
from flexwire.columnar.types import raw_tagged_fields
from flexwire.protocol import (
    Conversation,
    RequestFrame,
    carries_credentials,
    is_believable,
)
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.protocol.headers import request_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.reassembly.assembly import CapturedFrame


class Said(NamedTuple):
    """What a request says of its response: how to read it, whose it is, and from when it waited."""

    api_key: int
    api_version: int
    client_id: str | None
    time_us: int


class OneConnection:
    """A connection whose frames are read as objects, and what waits on it for its counterpart."""

    def __init__(self, reader: FrameReader) -> None:
        self._reader = reader
        # By the pair that the conversation gave.
        self._asked: dict[int, tuple[int, Said]] = {}
        self._early: dict[int, int] = {}

    def resume(
        self, asked: list[tuple[int, int, Said]], early: list[tuple[int, int, int]]
    ) -> OneConnection:
        """Go on where others had come to.

        ``asked`` are a correlation id, the request's index, and what it said; ``early`` are a
        correlation id, the response's index, and its time. The oldest come first.
        """
        conversation = self._reader.conversation
        for correlation_id, index, said in asked:
            pair = conversation.resume_request(_request(correlation_id, said))
            self._asked[pair] = index, said
        for correlation_id, index, seen in early:
            self._early[conversation.resume_response(correlation_id, seen)] = index
        return self

    def read(self, frame: CapturedFrame) -> tuple[dict[str, Any], Said | None, int | None]:
        """Give what the frame says, and what the request says that it answers.

        Or, of a request, the index of the response that came before it.
        """
        told = self._reader.read(frame)
        pair = told.get("pair")
        if pair is None:
            return told, None, None
        if frame.direction == "response":
            _, said = self._asked.pop(pair, (0, None))
            if said is None:
                self._early[pair] = frame.index
                if len(self._early) > DEFAULT_IN_FLIGHT:
                    self._early.pop(next(iter(self._early)))
            return told, said, None
        if pair in self._early:
            return told, said_by(told, frame), self._early.pop(pair)
        self._asked[pair] = frame.index, said_by(told, frame)
        return told, None, None

    def forgotten(self) -> Iterator[int]:
        """Give the requests that have surely given up waiting, once."""
        while len(self._asked) > DEFAULT_IN_FLIGHT:
            index, _ = self._asked.pop(next(iter(self._asked)))
            yield index

    def unanswered(self) -> list[int]:
        """Give the requests that wait, or have given up."""
        return [index for index, _ in self._asked.values()]


def said_by(told: dict[str, Any], frame: CapturedFrame) -> Said:
    """What a request that was read says of its response."""
    return Said(told["api_key"], told["api_version"], told["client_id"], frame.timestamp_us)


def _request(correlation_id: int, said: Said) -> RequestFrame:
    """Make a request that waits, of which no more is asked than its correlation id."""
    return RequestFrame(
        api_key=said.api_key,
        api_version=said.api_version,
        correlation_id=correlation_id,
        client_id=said.client_id,
        header_version=0,
        header=message("RequestHeader")(),
        body_offset=0,
        message_name=request_name(said.api_key, said.api_version),
    )


class FrameReader:
    """What the frames of one connection say without their bodies being decoded, as columns.

    Frames are given in the order in which the assembler gave them out. The bytes of a token are
    withheld, and those of a frame that does not read as a request or response are shown only where
    its message is known and authentication is ruled out on the connection.
    """

    def __init__(
        self,
        *,
        show_credentials: bool = False,
        conversation: Conversation | None = None,
        client_id: str | None = None,
    ) -> None:
        self._show_credentials = show_credentials
        self.conversation = conversation or Conversation()
        self.client_id = client_id  # of the last request that is surely one

    def read(self, frame: CapturedFrame) -> dict[str, Any]:
        """The columns of `FRAMES` that the frame's header and its place give."""
        turn = heard(frame, self.conversation)
        told: dict[str, Any] = {"is_guarded": not self._show_credentials and turn.is_guarded}
        if turn.kind == "token":
            told["outcome"] = TOKEN
        elif turn.kind == "unread":
            told |= {"outcome": FAILED, "error": turn.error}
        if turn.correlation_id is not None:
            told |= {"correlation_id": turn.correlation_id, "pair": turn.pair}
        if frame.direction == "request" and turn.request is not None:
            told |= self._described(turn.request)
        # A response whose message is unknown may be one that carries credentials.
        is_unread = "outcome" in told and (told["is_guarded"] or "message" not in told)
        if is_unread and not self._show_credentials:
            tagged = withheld_tagged_fields(told.get("header_unknown_tagged_fields", []))
            told |= {
                "payload": None,
                "withheld_credentials": 1 if frame.payload else 0,
                "header_unknown_tagged_fields": tagged,
            }
        return told

    def _described(self, request: RequestFrame) -> dict[str, Any]:
        header: Any = request.header
        tagged, client_id = raw_tagged_fields(header.unknown_tagged_fields), request.client_id
        if is_believable(request):
            self.client_id = client_id
        elif client_id != self.client_id and not self._show_credentials:
            # Other bytes may read as a header too, and these say that their client is another.
            client_id = None
        is_secret = carries_credentials(request.message_name) or not is_believable(request)
        if is_secret and not self._show_credentials:
            tagged = withheld_tagged_fields(tagged)
        return {
            "message": request.message_name,
            "api_key": request.api_key,
            "api_version": request.api_version,
            "correlation_id": request.correlation_id,
            "client_id": client_id,
            "header_version": request.header_version,
            "body_offset": request.body_offset,
            "header_unknown_tagged_fields": tagged,
        }
