"""One connection through the tap: passed on both ways, captured, altered where it must be."""

from __future__ import annotations

import asyncio
import logging
import operator
import struct
from contextlib import suppress
from ssl import SSLError
from typing import TYPE_CHECKING, Final

from flexwire.capture.stamps import stamp_comment
from flexwire.errors import CaptureError, FlexwireError, FrameError
from flexwire.net.handshakes import why
from flexwire.net.rewriting import may_advertise, rewrite
from flexwire.net.withholding import withheld, withheld_rest
from flexwire.protocol import Conversation, FrameSplitter
from flexwire.protocol.credentials import filler
from flexwire.protocol.sasl import asks_for_tickets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.pcapng import Direction, TappedConnection
    from flexwire.net.rewriting import Route
    from flexwire.net.sampling import Uncaptured
    from flexwire.net.stamping import Stamper
    from flexwire.net.statistics import TapStatistics
    from flexwire.protocol import RequestFrame, Turn

log = logging.getLogger("flexwire.tap")

CHUNK_BYTES: Final = 256 * 1024
FLUSH_SECONDS: Final = 5.0
"""A peer that reads nothing keeps what was sent to it in a buffer; this is how long it may."""
_PREFIX: Final = struct.Struct(">i")
# A frame's length and the correlation id, by which a response is known.
_RESPONSE_HEAD: Final = 8
# The comments of so many requests stand on one packet.
_STAMPED_TOGETHER: Final = 64
# A TLS record of the handshake, version 3.x: as a frame's length it would be 369 million.
_TLS_CLIENT_HELLO: Final = b"\x16\x03"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Relay:
    """Passes one connection's bytes on, both ways, until one side ends it.

    Bytes go on as they come, with backpressure from the slower side. Only a response that may
    advertise addresses is held until it is whole, and requests where they are stamped. The capture
    gets every frame as its sender sent it, before rewriting and stamping, and the bytes of a frame
    that breaks off. A direction whose bytes are not frames is passed on and captured in pieces as
    they come.

    A client that ends its direction (half-close) still gets what the broker has to say. A broker
    that ends its direction ends the connection: no request would be answered any more. TLS ends in
    both directions at once: so towards a broker with TLS it ends when all is answered.

    Where it ``withholds``, credentials are not in the capture (`flexwire.net.withholding`).
    """

    def __init__(  # noqa: PLR0913  # the parts of a connection are what they are
        self,
        client: Streams,
        broker: Streams,
        capture: TappedConnection | Uncaptured,
        *,
        route: Route,
        statistics: TapStatistics,
        frame_limit: int,
        name: str,
        withholds: bool = False,
        stamper: Stamper | None = None,
    ) -> None:
        self.name = name
        self.asked_for_tickets = False
        self.refused: str | None = None
        self._has_answered = False
        self._withholds = withholds
        self._stamper = stamper
        self._from_client, self._to_client = client
        self._from_broker, self._to_broker = broker
        self._capture = capture
        self._route = route
        self._statistics = statistics
        self._conversation = Conversation()
        self._requests = FrameSplitter(frame_limit)
        self._responses = FrameSplitter(frame_limit)
        self._requests_are_frames = True
        self._responses_are_frames = True
        self._first_bytes = b""
        # How much of the response that is not yet complete has gone to the client.
        self._passed_on = 0
        self._client_ended = False

    async def run(self) -> None:
        """Pass on until the connection ends; then everything captured is written."""
        requests = asyncio.create_task(self._pass_requests())
        responses = asyncio.create_task(self._pass_responses())
        reset = False
        try:
            await asyncio.wait({requests, responses}, return_when=asyncio.FIRST_COMPLETED)
            if requests.done() and requests.exception() is None:
                await asyncio.wait({responses})
            for task in (requests, responses):
                if task.done():
                    task.result()
        except (OSError, EOFError) as error:
            reset = True
            self._ended_by(error)
        finally:
            requests.cancel()
            responses.cancel()
            await asyncio.gather(requests, responses, return_exceptions=True)
            self._finish_capture(reset=reset)

    def _ended_by(self, error: OSError | EOFError) -> None:
        is_tls = isinstance(error, SSLError)
        told = why(error) if is_tls else str(error)
        if is_tls and error is self._from_broker.exception() and not self._has_answered:
            # With TLS 1.3 a broker looks at our certificate when we believe to have begun.
            self._statistics.broker_handshakes_failed += 1
            self.refused = told
            return
        self._statistics.reset += 1
        log.info("%s: ended: %s", self.name, told)

    async def _pass_requests(self) -> None:
        while data := await self._from_client.read(CHUNK_BYTES):
            outgoing = self._take_requests(data)
            try:
                self._to_broker.write(outgoing)
                await self._to_broker.drain()
            except OSError:
                # The broker is gone. What it said before that, and how it went, is the other
                # direction's to pass on.
                return
        self._client_ended = True
        if self._stamper is not None and self._requests_are_frames:
            # What was held back is not a whole request, and still what the client said.
            self._to_broker.write(self._requests.pending)
        if self._to_broker.can_write_eof():
            self._to_broker.write_eof()
        elif self._to_client.is_closing():
            self._to_broker.close()
        else:
            self._end_when_answered()

    async def _pass_responses(self) -> None:
        while data := await self._from_broker.read(CHUNK_BYTES):
            outgoing = await self._take_responses(data)
            if self._to_client.is_closing() and self._from_client.exception() is None:
                # After the end of TLS asyncio drops what is written, without a word.
                self._statistics.left_early += 1
                return
            try:
                self._to_client.write(outgoing)
                await self._to_client.drain()
            except OSError as error:
                if not self._client_left():
                    raise
                self._statistics.left_early += 1
                log.debug("%s: the client left before its last response: %s", self.name, error)
                return
            if self._client_ended and not self._to_broker.can_write_eof():
                self._end_when_answered()
        # What was held back is not a whole response, and still what the broker said.
        rest = self._responses.peek(self._passed_on, self._responses.pending_length)
        if rest and self._responses_are_frames:
            self._to_client.write(rest)

    def _end_when_answered(self) -> None:
        if not (self._requests_are_frames and self._conversation.unanswered()):
            self._to_broker.close()

    def _client_left(self) -> bool:
        # To answer a client that has closed its socket gives an error too. The system calls it a
        # broken pipe if the client had ended its direction first, and a reset if it had not.
        return self._client_ended or isinstance(self._from_client.exception(), BrokenPipeError)

    def _broker_left(self) -> bool:
        """Whether the broker ended the connection, and not the client."""
        broker = self._from_broker
        return not self._client_ended and (broker.at_eof() or broker.exception() is not None)

    def _take_requests(self, data: bytes) -> bytes:
        """Capture what came from the client, and give what is to go on to the broker."""
        self._statistics.request_bytes += len(data)
        if not self._requests_are_frames:
            self._write_capture("request", self._unframed(data))
            return data
        if self._is_tls(data):
            self._requests_are_frames = self._responses_are_frames = False
            whole = self._requests.pending + data
            self._write_capture("request", whole)
            # Only what is to be stamped is held until it is whole.
            return data if self._stamper is None else whole
        payloads = self._feed(self._requests, data)
        self._statistics.requests += len(payloads)
        turns = [self._conversation.request(payload) for payload in payloads]
        for turn, payload in zip(turns, payloads, strict=True):
            if turn.error is not None:
                self._statistics.not_requests += 1
                log.warning("%s: passed on what is not a request: %s", self.name, turn.error)
            elif turn.request is not None and asks_for_tickets(turn.request, payload):
                self._statistics.gssapi += 1
                self.asked_for_tickets = True
        if self._stamper is None:
            self._write_frames("request", payloads, turns)
            outgoing = data
        else:
            outgoing = self._stamp(self._stamper, payloads, turns)
        if self._requests.error is not None:
            self._requests_are_frames = False
            self._write_capture("request", self._unframed(self._requests.pending))
            if self._stamper is not None:
                outgoing += self._requests.pending
        return outgoing

    def _stamp(self, stamper: Stamper, payloads: list[bytes], turns: list[Turn]) -> bytes:
        """Capture the requests as they came, and give them stamped."""
        stamped = [stamper.stamp(*one) for one in zip(payloads, turns, strict=True)]
        added = [
            stamp_comment(turn.request.correlation_id, one.added)
            if turn.request is not None and one.added
            else b""
            for turn, one in zip(turns, stamped, strict=True)
        ]
        self._statistics.count_stamped(one.reason for one in stamped)
        for start in range(0, len(payloads), _STAMPED_TOGETHER):
            part = slice(start, start + _STAMPED_TOGETHER)
            comments = [one for one in added[part] if one]
            self._write_frames("request", payloads[part], turns[part], comments)
        return b"".join(piece for one in stamped for piece in _framed(one.payload))

    async def _take_responses(self, data: bytes) -> bytes:
        """Capture what came from the broker, and give what is to go on to the client."""
        self._statistics.response_bytes += len(data)
        self._has_answered = True
        if not self._responses_are_frames:
            self._write_capture("response", self._unframed(data))
            return data
        # Whether all that came before has gone to the client, and what comes now goes unchanged.
        unchanged = self._passed_on == self._responses.pending_length
        payloads = self._feed(self._responses, data)
        self._statistics.responses += len(payloads)
        turns = [self._conversation.response(payload) for payload in payloads]
        self._write_frames("response", payloads, turns)
        outgoing: list[bytes | memoryview] = []
        for turn, payload in zip(turns, payloads, strict=True):
            request = self._answered(turn)
            if self._passed_on:
                # A part is on its way; that it goes unchanged was decided then.
                outgoing.append(memoryview(_frame(payload))[self._passed_on :])
                self._passed_on = 0
            else:
                replaced = request and await self._rewrite(payload, request)
                unchanged = unchanged and not replaced
                outgoing += _framed(replaced or payload)
        pending = self._responses.pending_length
        if self._responses.error is not None:
            self._responses_are_frames = False
            outgoing.append(self._responses.pending)
            self._write_capture("response", self._unframed(self._responses.pending))
            return b"".join(outgoing)
        if pending > self._passed_on and not self._is_held(pending):
            if not unchanged:
                outgoing.append(self._responses.peek(self._passed_on, pending))
            self._passed_on = pending
        return data if unchanged and self._passed_on == pending else b"".join(outgoing)

    def _is_held(self, pending: int) -> bool:
        if self._passed_on:
            return False
        if pending < _RESPONSE_HEAD:
            return True
        request = self._conversation.expected(self._responses.peek(_PREFIX.size, _RESPONSE_HEAD))
        return request is not None and may_advertise(request)

    def _answered(self, turn: Turn) -> RequestFrame | None:
        if turn.error is not None:
            self._statistics.unpaired += 1
            log.warning("%s: passed on what is not a response: %s", self.name, turn.error)
        elif turn.kind == "response" and turn.request is None:
            self._statistics.unpaired += 1
            log.info("%s: passed on a response that answers no request", self.name)
        return turn.request

    async def _rewrite(self, payload: bytes, request: RequestFrame) -> bytes | None:
        if not may_advertise(request):
            return None
        try:
            replaced = await rewrite(payload, request, self._route)
        except FlexwireError as error:
            self._statistics.undecodable += 1
            log.warning(
                "%s: passed on a response unchanged, with the addresses it may have: %s",
                self.name,
                error,
            )
            return None
        if replaced is not None:
            self._statistics.rewritten += 1
        return replaced

    def _feed(self, splitter: FrameSplitter, data: bytes) -> list[bytes]:
        try:
            payloads = splitter.feed(data)
        except FrameError:
            payloads = []
        if splitter.error is not None:
            self._statistics.not_frames += 1
            log.warning("%s: from here on passed on as it comes: %s", self.name, splitter.error)
        return payloads

    def _is_tls(self, data: bytes) -> bool:
        if len(self._first_bytes) >= len(_TLS_CLIENT_HELLO):
            return False
        self._first_bytes += data[: len(_TLS_CLIENT_HELLO)]
        if not self._first_bytes.startswith(_TLS_CLIENT_HELLO):
            return False
        self._statistics.tls += 1
        log.warning(
            "%s: the client speaks TLS: its bytes are passed on and captured, but nothing in "
            "them can be read, and the addresses that brokers advertise stay as they are",
            self.name,
        )
        return True

    def _finish_capture(self, *, reset: bool) -> None:
        for direction, splitter, are_frames in (
            ("request", self._requests, self._requests_are_frames),
            ("response", self._responses, self._responses_are_frames),
        ):
            if are_frames and splitter.pending_length:
                self._statistics.broken_off += 1
                log.info("%s: a %s broke off", self.name, direction)
                rest, is_request = splitter.pending, direction == "request"
                if self._withholds:
                    rest = withheld_rest(rest, is_request=is_request)
                self._write_capture("request" if is_request else "response", rest)
        try:
            self._capture.close(reset=reset, by_broker=self._broker_left())
        except CaptureError as error:
            self._statistics.unended += 1
            log.error("%s: its end is not captured: %s", self.name, error)  # noqa: TRY400  # the reason says all

    def _unframed(self, data: bytes) -> bytes:
        """Bytes that are not frames, for the capture."""
        # Where requests are not seen any more, one may have brought or asked for a credential.
        is_sure = self._requests_are_frames and self._conversation.authentication.is_ruled_out
        return filler(len(data)) if self._withholds and not is_sure else data

    def _write_frames(
        self,
        direction: Direction,
        payloads: list[bytes],
        turns: list[Turn],
        comments: Sequence[bytes] = (),
    ) -> None:
        if self._withholds:
            shown = [withheld(*both) for both in zip(payloads, turns, strict=True)]
            self._statistics.withheld += sum(map(operator.is_not, shown, payloads))
            payloads = shown
        # Frames that came together are written together: one call of the system for all.
        if payloads:
            whole = b"".join(piece for payload in payloads for piece in _framed(payload))
            self._write_capture(direction, whole, len(payloads), comments)

    def _write_capture(
        self,
        direction: Direction,
        data: bytes,
        frames: int = 1,
        comments: Sequence[bytes] = (),
    ) -> None:
        # A full disk must not cut clients off from their brokers.
        try:
            self._capture.send(direction, data, frames=frames, comments=comments)
        except CaptureError as error:
            self._statistics.capture_failures += frames
            log.error("%s: not captured: %s", self.name, error)  # noqa: TRY400  # the reason says all


def _framed(payload: bytes) -> tuple[bytes, bytes]:
    return _PREFIX.pack(len(payload)), payload


def _frame(payload: bytes) -> bytes:
    return b"".join(_framed(payload))


async def close_stream(writer: asyncio.StreamWriter, seconds: float) -> None:
    """Close, once what was written is sent; drop a peer that does not take it in time."""
    writer.close()
    closed = asyncio.ensure_future(writer.wait_closed())
    try:
        await asyncio.wait({closed}, timeout=seconds)
    finally:
        if not closed.done():
            writer.transport.abort()
        with suppress(OSError):
            await closed
