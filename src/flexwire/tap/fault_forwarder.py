"""Apply faults: change, delay, cut or answer the requests and responses that match a fault.

Frames that match no fault pass unchanged. A request is forwarded completely or not at all, unless
the fault cuts it. A broker therefore never gets bytes that the client did not send.
`flexwire.tap.relay` keeps the order of responses, and `flexwire.tap.fault_rules` defines faults.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.files.comments import fault_comment
from flexwire.codec import Message, message
from flexwire.errors import ArgumentError, FlexwireError, FrameError
from flexwire.protocol import parse_response, response_header_version
from flexwire.protocol.error_responses import error_response, set_errors, unsupported_answer
from flexwire.protocol.frames import to_frame
from flexwire.protocol.headers import UNSUPPORTED_VERSION
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.tables.spec_places import THROTTLE
from flexwire.tap.forwarding import ForwardedRequests, LateBytes, PassedResponse
from flexwire.tap.frame_filter import names_topics_and_ids
from flexwire.tap.limits import FEWEST_IN_FLIGHT, MOST_DECODED, MOST_WALKED, beginning
from flexwire.versions import Versions
from flexwire.wire.field_spans import BoundedReader, field_spans
from flexwire.wire.schema import Presence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from flexwire.protocol import RequestFrame, Turn
    from flexwire.tap.fault_rules import Fault, Faults
    from flexwire.tap.frame_filter import TopicNames
    from flexwire.tap.log_limit import LogLimiter
    from flexwire.tap.metrics import TapStatistics

_MOST_REMEMBERED: Final = 1000
_DONE: Final = {
    "error": "answered with an error",
    "delay": "delayed",
    "cut": "cut",
    "close": "closed",
    "silence": "silent from here on",
    "throttle": "throttled",
    "tag": "tagged",
    "stale": "answered as before",
}
_IMPOSSIBLE: Final = "not possible: "

_Question = tuple[int, int, bytes]
"""The key under which an old response is kept: the api key, version and body of its request."""


class OldResponses:
    """The first response to each request that matches a stale fault, shared by all connections."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[_Question, bytes] = OrderedDict()

    def __contains__(self, question: object) -> bool:
        return question in self._bodies

    def learn(self, question: _Question, payload: bytes, request: RequestFrame) -> None:
        """Keep a response if it is the first for its request, short enough, and readable."""
        if question in self._bodies or len(payload) > MOST_DECODED:
            return
        with suppress(FlexwireError):
            self._bodies[question] = payload[_body_offset(payload, request) :]
            if len(self._bodies) > _MOST_REMEMBERED:
                self._bodies.popitem(last=False)

    def recall(self, question: _Question, payload: bytes, request: RequestFrame) -> bytes:
        """Return a response with the body of the first one.

        Raises `FlexwireError` if this fails.
        """
        if question not in self._bodies:
            raise ArgumentError("the first response is no longer stored")
        return payload[: _body_offset(payload, request)] + self._bodies[question]


class _Planned(NamedTuple):
    """The plan for a response: the fault to apply, and the key under which to keep the response."""

    correlation_id: int
    fault: Fault | None
    question: _Question | None


class _Asked(NamedTuple):
    """A request that matches a fault, with its place among the requests that arrived together."""

    request: RequestFrame
    payload: bytes
    turn: Turn
    place: int


class FaultForwarder:
    """Forward requests when they are complete, unless a fault matches them."""

    holds = True

    def __init__(
        self,
        faults: Faults,
        topics: TopicNames,
        old: OldResponses,
        statistics: TapStatistics,
        saying: LogLimiter,
    ) -> None:
        self._faults = faults
        self._topics = topics
        self._old = old
        self._statistics = statistics
        self._saying = saying
        self._is_over = False
        # The plan for each response, by pair.
        self._planned: dict[int, _Planned] = {}
        # Whether an earlier request named the topic, by fault and API. A fetch session names a
        # topic only once (KIP-227).
        self._has_fitted: dict[tuple[str, int], bool] = {}

    def at_once(self, data: bytes) -> bytes:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return nothing, because an incomplete frame may match a fault."""
        return b""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Return the bytes to forward, with their delays, and the tap's own responses."""
        outgoing = _Outgoing()
        for number, (payload, turn) in enumerate(zip(payloads, turns, strict=True)):
            outgoing.comments.append(b"")
            if self._is_over:
                continue
            request = turn.request if turn.kind == "request" else None
            fault = None if request is None else self._pick(request, payload)
            if request is None or fault is None:
                outgoing.send(payload)
                if request is not None:
                    self._plan(turn, request, payload, None)
                continue
            did = self._do(fault, _Asked(request, payload, turn, number), outgoing)
            if did is not None:
                outgoing.comments[-1] = self._noted(fault, request.correlation_id, did)
        return outgoing.forwarded()

    def beginning(self, data: bytes) -> ForwardedRequests:
        """Return the bytes unchanged, because faults apply only to requests that are kept whole."""
        return ForwardedRequests() if self._is_over else ForwardedRequests(data)

    def rest(self, data: bytes) -> bytes:
        """Return the bytes unchanged, until the fault says that nothing more is forwarded."""
        return b"" if self._is_over else data

    def alters(self, request: RequestFrame) -> bool:
        """Return whether the response to this kind of request may be changed, or names topics."""
        planned = self._planned.values()
        if any(plan.correlation_id == request.correlation_id for plan in planned):
            return True
        return self._names_matter() and names_topics_and_ids(request)

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:
        """Return what to do with a response."""
        request = turn.request
        plan = None if turn.pair is None else self._planned.pop(turn.pair, None)
        if request is None:
            return PassedResponse(payload)
        if self._names_matter():
            self._topics.learn(payload, request)
        if plan is None:
            return PassedResponse(payload)
        if plan.question is not None:
            self._old.learn(plan.question, payload, request)
        if plan.fault is None:
            return PassedResponse(payload)
        return self._answered(plan.fault, plan.question, payload, request)

    def _pick(self, request: RequestFrame, payload: bytes) -> Fault | None:
        def fits(fault: Fault) -> bool:
            if fault.kind == "stale" and _question(request, payload) not in self._old:
                return False
            return not fault.only.topics or self._is_about(fault, request, payload)

        return self._faults.pick(request, fits)

    def _is_about(self, fault: Fault, request: RequestFrame, payload: bytes) -> bool:
        try:
            named = self._topics.requested(payload, request)
        except FlexwireError:
            return False
        key = fault.text, request.api_key
        if not named:
            return self._has_fitted.get(key, False)
        fits = any(topic is not None and fault.only.takes_topic(topic) for topic in named)
        self._has_fitted[key] = fits or self._has_fitted.get(key, False)
        return fits

    def _do(self, fault: Fault, asked: _Asked, outgoing: _Outgoing) -> str | None:
        """Apply a fault. Return what was done, or None if the fault applies to the response."""
        if fault.point == "after":
            return self._do_after(fault, asked, outgoing)
        if fault.kind == "error":
            if asked.turn.pair is None:
                return self._close(asked.place, outgoing)
            try:
                answer = _error_answer(asked.request, asked.payload, fault.code)
            except FlexwireError as error:
                if fault.point is None:
                    return self._do_after(fault, asked, outgoing)
                outgoing.send(asked.payload)
                return f"{_IMPOSSIBLE}{error}"
            outgoing.answers[asked.place] = answer
        elif fault.kind == "delay":
            outgoing.wait(fault.seconds)
            outgoing.send(asked.payload)
        elif fault.kind == "cut":
            outgoing.send(asked.payload, fault.length)
            self._close(asked.place, outgoing)
        elif fault.kind == "close":
            self._close(asked.place, outgoing)
        else:
            outgoing.silences = self._is_over = True
        return _DONE[fault.kind]

    def _do_after(self, fault: Fault, asked: _Asked, outgoing: _Outgoing) -> str | None:
        outgoing.send(asked.payload)
        if asked.turn.pair is not None:
            self._plan(asked.turn, asked.request, asked.payload, fault)
            return None
        if fault.kind in {"error", "cut", "close", "silence"}:
            # With acks 0, brokers close the connection instead of responding with an error.
            return self._close(asked.place, outgoing)
        return f"{_IMPOSSIBLE}the request has no response"

    def _close(self, number: int, outgoing: _Outgoing) -> str:
        outgoing.answers[number] = None
        self._is_over = True
        return _DONE["close"]

    def _plan(self, turn: Turn, request: RequestFrame, payload: bytes, fault: Fault | None) -> None:
        """Store the plan for a response, if there is a plan."""
        is_kept = any(
            one.kind == "stale"
            and one.only.takes_api(request.api_name)
            and one.only.takes_client(request.client_id)
            for one in self._faults.active
        )
        if turn.pair is None or (fault is None and not is_kept):
            return
        if len(self._planned) >= FEWEST_IN_FLIGHT:
            del self._planned[next(iter(self._planned))]
        question = _question(request, payload) if is_kept else None
        self._planned[turn.pair] = _Planned(request.correlation_id, fault, question)

    def _answered(
        self, fault: Fault, question: _Question | None, payload: bytes, request: RequestFrame
    ) -> PassedResponse:
        """Apply a fault to a response."""
        altered, did = payload, _DONE[fault.kind]
        try:
            if fault.kind == "error":
                altered = self._with_error(fault, payload, request)
            elif fault.kind == "tag":
                altered = _with_tag(payload, request, *fault.tag)
            elif fault.kind == "throttle":
                altered = _with_throttle(payload, request, fault.seconds)
            elif fault.kind == "stale" and question is not None:
                altered = self._old.recall(question, payload, request)
        except FlexwireError as error:
            return PassedResponse(
                payload, self._noted(fault, request.correlation_id, f"{_IMPOSSIBLE}{error}")
            )
        length = {"cut": fault.length, "close": 0}.get(fault.kind)
        self._is_over = self._is_over or length is not None
        return PassedResponse(
            altered,
            self._noted(fault, request.correlation_id, did),
            seconds=fault.seconds if fault.kind == "delay" else 0.0,
            length=length,
            silences=fault.kind == "silence",
            muted=fault.seconds if fault.kind == "throttle" else 0.0,
        )

    def _with_error(self, fault: Fault, payload: bytes, request: RequestFrame) -> bytes:
        def takes(name: str | None, topic_id: UUID | None) -> bool:
            topic = self._topics.of(name, topic_id)
            return topic is not None and fault.only.takes_topic(topic)

        response = _Response(payload, request)
        topics = takes if fault.only.topics else None
        if not set_errors(response.body, response.version, fault.code, topics=topics):
            raise ArgumentError("the response has no field for this error")
        return response.encode()

    def _names_matter(self) -> bool:
        return any(fault.only.topics for fault in self._faults.active)

    def _noted(self, fault: Fault, correlation_id: int, did: str) -> bytes:
        """Count a fault that was applied. Return the comment about the fault."""
        if did.startswith(_IMPOSSIBLE):
            self._statistics.faults_impossible += 1
            kind = "faults that could not be applied"
            self._saying.say(logging.WARNING, kind, f"{fault}: {did}")
        else:
            self._statistics.faults += 1
            self._faults.done[fault.text] += 1
        return fault_comment(correlation_id, fault.text, did)


class _Outgoing:
    """The output for requests that arrived together: pieces of bytes, each with its delay."""

    def __init__(self) -> None:
        self.comments: list[bytes] = []
        self.answers: dict[int, bytes | None] = {}
        self.silences = False
        self._pieces: list[tuple[float, list[bytes]]] = [(0.0, [])]

    def send(self, payload: bytes, length: int | None = None) -> None:
        self._pieces[-1][1].append(to_frame(payload)[:length])

    def wait(self, seconds: float) -> None:
        self._pieces.append((seconds, []))

    def forwarded(self) -> ForwardedRequests:
        (_, first), *late = self._pieces
        return ForwardedRequests(
            b"".join(first),
            self.comments,
            self.answers,
            [LateBytes(seconds, b"".join(data)) for seconds, data in late],
            self.silences,
        )


class _Response:
    """A response, decoded so that it can be changed. Raises `FlexwireError` if that fails."""

    def __init__(self, payload: bytes, request: RequestFrame) -> None:
        frame = parse_response(beginning(payload), request.api_key, request.api_version)
        self.header_version = response_header_version(request.api_key, request.api_version)
        self.version = frame.body_version
        self.header: Any = frame.header
        self.body: Any
        self.body, self._rest = _decode(
            payload, frame.message_name, self.version, frame.body_offset
        )

    def encode(self) -> bytes:
        """Return the payload, encoded again."""
        head: bytes = self.header.encode(self.header_version)
        body: bytes = self.body.encode(self.version)
        return head + body + self._rest


def _decode(payload: bytes, name: str, version: int, start: int) -> tuple[Message, bytes]:
    """Return a message and the bytes after it. Raises `FlexwireError` if it is too complex."""
    kind = message(name)
    if version not in kind.entry.versions:
        raise FrameError(f"no release has {name} v{version}")
    schema = kind.definition.schema(version)
    if len(payload) > MOST_DECODED:
        # A long frame may contain a few records, or a million partitions.
        for _ in field_spans(schema, BoundedReader(payload, start, MOST_WALKED), (), to_end=True):
            pass
    body, end = kind.decode_prefix(payload, version, start)
    return body, payload[end:]


def _body_offset(payload: bytes, request: RequestFrame) -> int:
    return parse_response(beginning(payload), request.api_key, request.api_version).body_offset


def _question(request: RequestFrame, payload: bytes) -> _Question | None:
    """Return the key of a request, or None if it is too long to be kept."""
    if len(payload) > MOST_DECODED:
        return None
    return request.api_key, request.api_version, payload[request.body_offset :]


def _error_answer(request: RequestFrame, payload: bytes, code: int) -> bytes:
    """Return the payload of an error response, with which a broker refuses a request."""
    if request.message_name == NEGOTIATES and code == UNSUPPORTED_VERSION:
        # The response offers only lower versions, so the client asks again with a lower version.
        below = Versions(0, max(0, request.api_version - 1))
        return unsupported_answer(request.correlation_id, request.api_key, below)
    body, _ = _decode(payload, request.message_name, request.api_version, request.body_offset)
    answer = error_response(body, request.api_version, code)
    header = message("ResponseHeader")(correlation_id=request.correlation_id)
    version = response_header_version(request.api_key, request.api_version)
    return header.encode(version) + answer.encode(request.api_version)


def _with_throttle(payload: bytes, request: RequestFrame, seconds: float) -> bytes:
    response = _Response(payload, request)
    schema = type(response.body).definition.schema(response.version)
    if not any(
        field.attribute == THROTTLE and field.presence is not Presence.ABSENT
        for field in schema.fields
    ):
        raise ArgumentError("the response has no field for a throttle time")
    setattr(response.body, THROTTLE, round(seconds * 1000))
    return response.encode()


def _with_tag(payload: bytes, request: RequestFrame, number: int, value: bytes) -> bytes:
    """Add a tagged field to the response's header and body, if they can have tagged fields."""
    response = _Response(payload, request)
    parts = (
        (response.header, response.header_version),
        (response.body, response.version),
    )
    added = 0
    for part, version in parts:
        schema = type(part).definition.schema(version)
        if schema.flexible and number not in (*schema.tagged, *part.unknown_tagged_fields):
            part.unknown_tagged_fields = {**part.unknown_tagged_fields, number: value}
            added += 1
    if not added:
        raise ArgumentError(f"the response cannot contain tag {number}")
    return response.encode()
