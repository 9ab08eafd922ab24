"""Relay one connection through the tap in both directions, capture it, and change it if needed."""

from __future__ import annotations

import asyncio
import logging
import operator
import time
from collections import deque
from dataclasses import dataclass, field
from ssl import SSLError
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.client.tls import explain_failure, is_data_after_end
from flexwire.errors import FlexwireError, FrameError
from flexwire.protocol import Conversation, FrameSplitter
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.protocol.frames import FrameGroup, to_frame
from flexwire.protocol.sasl import asks_for_tickets, is_before_login
from flexwire.tap.addresses import may_advertise, rewrite_addresses
from flexwire.tap.ends import EndCallbacks
from flexwire.tap.limits import FEWEST_IN_FLIGHT, MOST_DECODED, MOST_FRAMES, MOST_HELD_UNANSWERED
from flexwire.tap.log_limit import LogLimiter
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.files.packets import Direction
    from flexwire.protocol import RequestFrame, Turn
    from flexwire.protocol.frames import FrameBudget, TruncatedFrame
    from flexwire.tap.addresses import Route
    from flexwire.tap.ends import End
    from flexwire.tap.forwarding import ForwardedRequests, Forwarder, PassedResponse
    from flexwire.tap.metrics import TapStatistics
    from flexwire.tap.recorder import Recorder


log = logging.getLogger("flexwire.tap")

# The length of a frame and the correlation id, by which a response is recognized.
_RESPONSE_HEAD: Final = 8
_SHORTENED: Final = "only the beginning of the frame was kept"
# A TLS handshake record with version 3.x. Read as the length of a frame, these bytes would be 369
# million.
_TLS_CLIENT_HELLO: Final = b"\x16\x03"


class _OwnAnswer(NamedTuple):
    """The tap's own response to a request.

    The response is sent when all earlier requests are answered. If there is no ``payload``, the
    connection is closed at that time.
    """

    after: int
    payload: bytes | None
    is_awaited: bool
    """True if the conversation waits for this response."""


@dataclass(slots=True)
class _TakenResponses:
    """Responses that arrived together, with their turns and the payloads that must still be sent.

    The first ``sent`` of them were already sent, or will not be sent. ``comments`` contains one
    comment for each response, or is empty.
    """

    turns: list[Turn] = field(default_factory=list)
    shown: list[bytes] = field(default_factory=list)
    sent: int = 0
    comments: list[bytes] = field(default_factory=list)


class Relay:
    """Forward the bytes of a connection in both directions, until one side ends it.

    Bytes are forwarded when they arrive, before anything else is done with them. The slower side
    slows down the other one. Only two kinds of frames are held until they are complete: responses
    that may advertise addresses, and frames that ``passing`` holds. The tap's own response is sent
    after the responses to all earlier requests. The capture gets every frame as its sender sent it,
    before any change, and the bytes of a truncated frame. If the bytes in a direction are not
    frames, they are forwarded and captured in the pieces in which they arrive.

    If a client ends its direction (half-close), it still gets the broker's remaining responses. If
    a broker ends its direction, the connection ends, because no more requests would be answered.
    TLS always ends in both directions. Towards a broker with TLS, the end is therefore sent only
    when all requests are answered.
    """

    def __init__(  # noqa: PLR0913  # a connection has this many parts
        self,
        client: End,
        broker: End,
        recorder: Recorder,
        passing: Forwarder,
        *,
        route: Route,
        statistics: TapStatistics,
        frame_limit: int,
        room: FrameBudget,
        name: str,
        saying: LogLimiter | None = None,
    ) -> None:
        self.name = name
        self.asked_for_tickets = False
        self.refused: str | None = None
        self._client = client
        self._broker = broker
        self._recorder = recorder
        self._passing = passing
        self._route = route
        self._statistics = statistics
        self._conversation = Conversation(FEWEST_IN_FLIGHT, most_read=MOST_DECODED)
        self._requests = FrameSplitter(frame_limit, room, MOST_HELD_UNANSWERED)
        self._responses = FrameSplitter(frame_limit, room)
        self._requests_are_frames = True
        self._responses_are_frames = True
        self._first_bytes = b""
        # The number of bytes of the incomplete response that were sent to the client.
        self._passed_on = 0
        # The pair of the last request that was forwarded, and of the last request that was
        # answered.
        self._last_sent = 0
        self._last_answered = 0
        self._own: deque[_OwnAnswer] = deque()
        self._closes = False
        self._has_answered = False
        self._client_ended = False
        self._said: set[str] = set()
        self._saying = saying or LogLimiter(log)
        self._over = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Forward bytes until the connection ends and all captured bytes are written."""
        client, broker = self._client, self._broker
        was_reset = False
        try:
            client.call(
                EndCallbacks(self._client_said, self._end_requests, self._client_lost), broker
            )
            if not self._over.done():
                calls = EndCallbacks(self._broker_said, self._end_responses, self._broker_lost)
                broker.call(calls, client)
            was_reset = await self._over
            await client.tell_rest()
            await broker.tell_rest()
        finally:
            self._finish()
            self._take_rest()
            self._finish_capture(reset=was_reset)
            self._requests.clear()
            self._responses.clear()

    def _take_rest(self) -> None:
        """Process all bytes that arrived.

        Some bytes are left only if the tap is closed in the meantime.
        """
        for end in (self._client, self._broker):
            end.tell_rest_at_once()

    def _finish(self, *, was_reset: bool = False) -> None:
        if not self._over.done():
            self._over.set_result(was_reset)
        self._client.ignore()
        self._broker.ignore()

    def _client_said(self, data: bytes) -> int:
        if self._requests_are_frames:
            # Later requests wait here, because the conversation must know a request before the
            # broker answers it.
            data = data[: self._requests.reach(data, MOST_FRAMES)]
        self._broker.write(self._passing.at_once(data))
        at_us = time.time_ns() // 1000
        self._statistics.request_bytes += len(data)
        if not self._requests_are_frames:
            self._broker.write(self._passing.rest(data))
            self._record_piece("request", data, at_us)
        elif self._is_tls(data):
            if self._responses_are_frames:
                self._let_go(at_us)
            self._requests_are_frames = self._responses_are_frames = False
            whole = self._requests.pending + data
            self._broker.write(self._passing.rest(whole))
            self._recorder.piece("request", whole, at_us, may_be_secret=False)
        else:
            rest = self._skip_request(data, at_us) if self._requests.is_shortened else data
            if rest:
                self._take_requests(rest, at_us)
        return len(data)

    def _let_go(self, at_us: int) -> None:
        """Forward and capture the bytes of a held response that turned out not to be a frame."""
        pending = self._responses.pending
        self._client.write(pending[self._passed_on :])
        self._record_piece("response", pending, at_us)

    def _take_requests(self, data: bytes, at_us: int) -> None:
        frames = self._cut(self._requests, data)
        if frames.payloads:
            self._statistics.requests += len(frames.payloads)
            turns = [self._conversation.request(payload) for payload in frames.payloads]
            passed = self._passing.requests(frames.payloads, turns)
            self._send_requests(passed)
            self._recorder.frames("request", frames, turns, at_us, passed.comments)
            for number, (payload, turn) in enumerate(zip(frames.payloads, turns, strict=True)):
                self._look_at(payload, turn)
                if number in passed.answers:
                    self._queue_answer(passed.answers[number], turn)
                elif turn.request is not None and turn.pair is not None:
                    self._last_sent = turn.pair
            if passed.answers:
                self._give_answers()
        if self._requests.error is not None:
            self._requests_are_frames = False
            rest = self._requests.pending
            self._broker.write(self._passing.rest(rest))
            self._record_piece("request", rest, at_us)
            self._requests.clear()
        elif self._requests.is_too_long:
            if self._passing.holds:
                begun = self._passing.beginning(self._requests.pending)
                self._broker.write(begun.outgoing)
                if begun.answers:
                    self._own.append(_OwnAnswer(self._last_sent, None, is_awaited=False))
                    self._give_answers()
            self._requests.shorten()

    def _send_requests(self, passed: ForwardedRequests) -> None:
        self._broker.write(passed.outgoing)
        for late in passed.late:
            self._broker.wait(late.seconds)
            self._broker.write(late.data)
        if passed.silences:
            self._broker.is_deaf = True

    def _queue_answer(self, payload: bytes | None, turn: Turn) -> None:
        if len(self._own) >= FEWEST_IN_FLIGHT:
            payload = None
        self._own.append(_OwnAnswer(self._last_sent, payload, is_awaited=turn.pair is not None))

    def _give_answers(self) -> None:
        """Send the tap's own responses that are due, unless a response was sent only in part."""
        if not self._passed_on:
            self._client.write(b"".join(map(to_frame, self._due())))
            self._close_if_due()

    def _due(self) -> list[bytes]:
        due: list[bytes] = []
        while self._own and self._own[0].after <= self._last_answered:
            answer = self._own.popleft()
            if answer.payload is None:
                self._own.clear()
                self._closes = True
                break
            if answer.is_awaited:
                self._conversation.response(answer.payload)
            due.append(answer.payload)
        return due

    def _close_if_due(self) -> None:
        if self._closes:
            self._finish()

    def _skip_request(self, data: bytes, at_us: int) -> bytes:
        """Forward the bytes of a request that is not kept. Return the bytes after it."""
        over, rest = self._requests.skip(data)
        self._broker.write(self._passing.rest(data[: len(data) - len(rest)]))
        if over is not None:
            self._statistics.requests += 1
            turn = self._shortened_request(over)
            if turn.request is not None and turn.pair is not None:
                self._last_sent = turn.pair
            self._recorder.shortened("request", over, turn, at_us)
        return rest

    def _shortened_request(self, frame: TruncatedFrame) -> Turn:
        return self._conversation.damaged_request(frame.payload, _SHORTENED, is_placed=True)

    def _say_once(self, kind: str, reason: str) -> None:
        """Log an event that a peer can cause with every few bytes.

        The counts contain the number of these events.
        """
        level = logging.DEBUG if kind in self._said else logging.WARNING
        self._said.add(kind)
        self._saying.say(level, kind, f"{self.name}: {kind}: {reason}")

    def _look_at(self, payload: bytes, turn: Turn) -> None:
        if turn.error is not None:
            self._statistics.not_requests += 1
            self._say_once("forwarded bytes that are not a request", turn.error)
        elif asks_for_tickets(turn.request, payload):
            # A session ticket after a counted handshake is not counted again.
            self._statistics.gssapi += turn.request is not None or not self.asked_for_tickets
            self.asked_for_tickets = True

    def _end_requests(self) -> None:
        self._client_ended = True
        if self._broker.is_deaf:
            self._finish()
            return
        if self._requests_are_frames:
            # The held bytes are not a complete request, but the client has sent them.
            self._broker.write(self._passing.rest(self._requests.pending))
        if self._broker.can_half_close():
            self._broker.half_close()
        elif self._client.is_closing:
            self._broker.transport.close()
        else:
            self._end_when_answered()

    def _client_lost(self, error: Exception) -> None:
        # If a client has closed its socket, writing to it raises an error too: a broken pipe if the
        # client had ended its direction first, and otherwise a reset.
        if self._client_ended or isinstance(error, BrokenPipeError):
            self._left_early()
        else:
            self._ended_by(error)

    def _broker_said(self, data: bytes) -> int:
        if self._responses_are_frames:
            data = data[: self._responses.reach(data, MOST_FRAMES)]
        at_us = time.time_ns() // 1000
        self._statistics.response_bytes += len(data)
        self._has_answered = True
        if self._responses_are_frames:
            rest = self._skip_response(data, at_us) if self._responses.is_shortened else data
            if rest:
                self._take_responses(rest, at_us)
        else:
            self._client.write(data)
            self._record_piece("response", data, at_us)
        if self._client.is_closing and self._client.error is None:
            # After TLS has ended, nothing can be written.
            self._left_early()
        elif self._client_ended and not self._broker.can_half_close():
            self._end_when_answered()
        return len(data)

    def _take_responses(self, data: bytes, at_us: int) -> None:
        # The number of bytes of the first frame that were sent. If any were sent, the frame is sent
        # unchanged.
        begun = self._passed_on
        # Whether all earlier bytes were sent to the client, so that new bytes can be sent
        # unchanged.
        unchanged = begun == self._responses.pending_length
        frames = self._cut(self._responses, data)
        taken = self._take_each(frames.payloads, begun)
        turns, shown = taken.turns, taken.shown
        unchanged = unchanged and taken.sent == 0 and len(shown) == len(turns)
        unchanged = unchanged and all(map(operator.is_, shown, frames.payloads))
        if turns:
            self._passed_on = 0
        pending, is_over = self._responses.pending_length, self._responses.error is not None
        goes_on = is_over or (pending > self._passed_on and not self._is_held(pending))
        goes_on = goes_on and not self._closes
        if unchanged and (goes_on or pending == self._passed_on):
            self._client.write(data)
        else:
            skipped = begun if turns and not taken.sent else 0
            outgoing = [b"".join(map(to_frame, shown))[skipped:]]
            if goes_on:
                outgoing.append(self._responses.peek(self._passed_on, pending))
            self._client.write(b"".join(outgoing))
        if goes_on:
            self._passed_on = pending
        if turns:
            self._statistics.responses += len(turns)
            self._recorder.frames("response", frames, turns, at_us, taken.comments)
            for turn in turns:
                self._look_at_answer(turn)
        if is_over:
            self._responses_are_frames = False
            self._record_piece("response", self._responses.pending, at_us)
            self._responses.clear()
        elif self._responses.is_too_long:
            self._shorten_response()
        self._close_if_due()

    def _take_each(self, payloads: Sequence[bytes], begun: int) -> _TakenResponses:
        """Process complete responses. ``begun`` bytes of the first response were already sent."""
        taken = _TakenResponses()
        for number, payload in enumerate(payloads):
            turn = self._conversation.response(payload)
            taken.turns.append(turn)
            if self._closes:
                continue
            request = turn.request
            if (begun and not number) or request is None or not self._may_change(request):
                taken.shown.append(payload)
            else:
                passed = self._passed(payload, turn, request)
                if passed.comment:
                    taken.comments += [b""] * (number - len(taken.comments))
                    taken.comments.append(passed.comment)
                if passed.is_plain:
                    taken.shown.append(passed.payload)
                else:
                    whole = b"".join(map(to_frame, taken.shown))
                    self._client.write(whole[0 if taken.sent else begun :])
                    taken.sent += len(taken.shown) + 1
                    taken.shown.clear()
                    self._send_unusually(passed)
            taken.shown += self._answered(turn)
        if taken.comments:
            taken.comments += [b""] * (len(payloads) - len(taken.comments))
        return taken

    def _send_unusually(self, passed: PassedResponse) -> None:
        """Send a response late, in part, or not at all."""
        if passed.silences:
            self._client.is_deaf = True
        if passed.seconds:
            self._client.wait(passed.seconds)
        self._client.write(to_frame(passed.payload)[: passed.length])
        if passed.length is not None:
            self._own.clear()
            self._closes = True
        if passed.muted:
            self._client.mute(passed.muted)

    def _answered(self, turn: Turn) -> list[bytes]:
        """Record which request is answered. Return the tap's responses that must follow."""
        if turn.request is not None and turn.pair is not None:
            self._last_answered = max(self._last_answered, turn.pair)
        return self._due() if self._own else []

    def _shorten_response(self) -> None:
        pending = self._responses.pending_length
        if self._passed_on < pending:
            # A response that may advertise addresses was held until this point.
            self._client.write(self._responses.peek(self._passed_on, pending))
            self._passed_on = pending
            self._statistics.too_long_to_rewrite += 1
        self._responses.shorten()

    def _skip_response(self, data: bytes, at_us: int) -> bytes:
        """Forward the bytes of a response that is not kept. Return the bytes after it."""
        over, rest = self._responses.skip(data)
        self._client.write(data[: len(data) - len(rest)])
        self._passed_on = self._responses.pending_length
        if over is not None:
            self._statistics.responses += 1
            turn = self._shortened_response(over)
            self._recorder.shortened("response", over, turn, at_us)
            self._client.write(b"".join(map(to_frame, self._answered(turn))))
            self._close_if_due()
        return rest

    def _shortened_response(self, frame: TruncatedFrame) -> Turn:
        return self._conversation.damaged_response(_SHORTENED, frame.payload, is_placed=True)

    def _is_held(self, pending: int) -> bool:
        if self._passed_on:
            return False
        if pending < _RESPONSE_HEAD:
            return True
        request = self._conversation.expected(self._responses.peek(PREFIX_LENGTH, _RESPONSE_HEAD))
        return request is not None and self._may_change(request)

    def _look_at_answer(self, turn: Turn) -> None:
        if turn.request is not None and not is_before_login(turn.request):
            # A broker that requires a login answers no other request before the login.
            self._requests.most_kept = None
            self._conversation.in_flight = DEFAULT_IN_FLIGHT
        if turn.error is not None:
            self._statistics.unpaired += 1
            self._say_once("forwarded bytes that are not a response", turn.error)
        elif turn.kind == "response" and turn.request is None:
            self._statistics.unpaired += 1
            remark = "forwarded a response that does not belong to any request"
            self._saying.say(logging.INFO, remark, f"{self.name}: {remark}")

    def _may_change(self, request: RequestFrame) -> bool:
        """Return whether the response to a request may be changed."""
        return may_advertise(request) or self._passing.alters(request)

    def _passed(self, payload: bytes, turn: Turn, request: RequestFrame) -> PassedResponse:
        """Return what to do with a response."""
        passed = self._passing.response(payload, turn)
        if not may_advertise(request):
            return passed
        return passed._replace(payload=self._rewritten(passed.payload, request))

    def _rewritten(self, payload: bytes, request: RequestFrame) -> bytes:
        """Return a response with the tap's addresses. Other responses stay unchanged."""
        try:
            replaced = rewrite_addresses(payload, request, self._route)
        except FlexwireError as error:
            self._statistics.undecodable += 1
            kind = "forwarded a response unchanged, without replacing any addresses"
            self._saying.say(logging.WARNING, kind, f"{self.name}: {kind}: {error}")
            return payload
        if replaced is None:
            return payload
        self._statistics.rewritten += 1
        return replaced

    def _end_responses(self) -> None:
        if self._responses_are_frames:
            # The held bytes are not a complete response, but the broker has sent them.
            held = self._responses.peek(self._passed_on, self._responses.pending_length)
            self._client.write(held)
        self._finish()

    def _broker_lost(self, error: Exception) -> None:
        if self._client_ended and is_data_after_end(error):
            # The broker was sending a response when it learned that the client had left.
            self._left_early()
        elif isinstance(error, SSLError) and not self._has_answered:
            # With TLS 1.3, a broker checks the tap's certificate after the tap considers the
            # handshake complete.
            self._statistics.broker_handshakes_failed += 1
            self.refused = explain_failure(error)
            self._finish(was_reset=True)
        elif isinstance(error, TimeoutError) and error.errno is None and self._client_ended:
            # All requests are answered, and the broker has not closed the TLS session in time.
            log.debug("%s: the broker did not close the TLS session", self.name)
            self._finish()
        else:
            self._ended_by(error)

    def _ended_by(self, error: Exception) -> None:
        if not isinstance(error, OSError | EOFError):
            # asyncio closes a connection for any error that its protocol raises.
            if not self._over.done():
                self._over.set_exception(error)
            return
        self._statistics.reset += 1
        reason = explain_failure(error) if isinstance(error, SSLError) else error
        line = f"{self.name}: ended: {reason}"
        self._saying.say(logging.INFO, "connections that ended with a reset", line)
        self._finish(was_reset=True)

    def _left_early(self) -> None:
        if self._over.done():
            return
        self._statistics.left_early += 1
        log.debug("%s: the client disconnected before the last response", self.name)
        self._finish()

    def _end_when_answered(self) -> None:
        if not (self._requests_are_frames and self._conversation.unanswered()):
            self._broker.transport.close()

    def _cut(self, splitter: FrameSplitter, data: bytes) -> FrameGroup:
        try:
            frames = splitter.cut(data)
        except FrameError:
            frames = FrameGroup(b"", [])
        if splitter.error is not None:
            self._statistics.not_frames += 1
            line = f"{self.name}: bytes are now forwarded without parsing: {splitter.error}"
            self._saying.say(logging.WARNING, "connections with bytes that are not frames", line)
        return frames

    def _is_tls(self, data: bytes) -> bool:
        if len(self._first_bytes) >= len(_TLS_CLIENT_HELLO):
            return False
        self._first_bytes += data[: len(_TLS_CLIENT_HELLO)]
        if not self._first_bytes.startswith(_TLS_CLIENT_HELLO):
            return False
        self._statistics.tls += 1
        self._saying.say(
            logging.WARNING,
            "connections of clients that speak TLS",
            f"{self.name}: the client speaks TLS. The tap forwards and captures the encrypted "
            "bytes, but cannot read them or replace the addresses that brokers advertise",
        )
        return True

    def _record_piece(self, direction: Direction, data: bytes, at_us: int) -> None:
        # If requests are no longer read, one of them may have contained a credential, or asked for
        # one.
        is_sure = self._requests_are_frames and self._conversation.authentication.is_ruled_out
        self._recorder.piece(direction, data, at_us, may_be_secret=not is_sure)

    def _finish_capture(self, *, reset: bool) -> None:
        if self._requests_are_frames and (rest := self._requests.rest()) is not None:
            self._recorder.broken_off("request", rest, self._shortened_request(rest))
        if self._responses_are_frames and (rest := self._responses.rest()) is not None:
            self._recorder.broken_off("response", rest, self._shortened_response(rest))
        self._recorder.close(reset=reset, by_broker=self._broker_left())

    def _broker_left(self) -> bool:
        """Return whether the broker, rather than the client, ended the connection."""
        broker = self._broker
        return not self._client_ended and (broker.has_ended or broker.error is not None)
