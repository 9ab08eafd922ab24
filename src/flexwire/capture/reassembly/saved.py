"""The open connections of a capture as plain records, from which a later analysis continues.

A record contains the fields of an object under the same names, and declares the types that they can
have. Data from a file is checked twice: against the types when it is read, and for everything that
the code relies on when objects are made from it. Any record, whoever wrote it, therefore either
raises `ValueError` or becomes valid connections.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec

from flexwire.capture.files.packets import Direction, Segment
from flexwire.capture.reassembly.assembly import (
    OPEN_CONNECTIONS,
    FrameAssembler,
    key_of_ends,
)
from flexwire.capture.reassembly.connections import (
    HELD_SEGMENTS,
    MOST_AWAITED,
    AwaitedRequest,
    BrokerEnds,
    CapturedFrame,
    KafkaEvidence,
)
from flexwire.capture.reassembly.course import MOST_HELD_BACK, NOTED_FRAMES
from flexwire.capture.reassembly.streams import (
    MAX_PENDING_PIECES,
    MOST_GAPS,
    REORDER_SEGMENTS,
    Stream,
    StreamPiece,
)
from flexwire.protocol.headers import RequestFrame, known_request
from flexwire.wire.limits import INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN
from flexwire.wire.segment_layout import MODULUS, PREFIX_LENGTH

if TYPE_CHECKING:
    from flexwire.capture.reassembly.framing import Framer

_LIMIT: Final = 1 << 61  # The limit for values that are summed.
Number = Annotated[int, msgspec.Meta(ge=-_LIMIT, le=_LIMIT)]
Count = Annotated[int, msgspec.Meta(ge=0, le=_LIMIT)]
Int16 = Annotated[int, msgspec.Meta(ge=INT16_MIN, le=INT16_MAX)]
Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
_LENGTH = struct.Struct(">i")

T = TypeVar("T")


class SavedRecord(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The fields of an object that are stored."""


class RequestRecord(SavedRecord):
    """A request. Only the header of the frame is stored."""

    api_key: Int16
    api_version: Int16
    correlation_id: Int32
    client_id: str | None
    header_version: Annotated[int, msgspec.Meta(ge=0, le=9)]
    body_offset: Count


class SegmentRecord(SavedRecord):
    """A segment that is held."""

    timestamp_us: Number
    source: str
    destination: str
    sequence: Annotated[int, msgspec.Meta(ge=0, lt=MODULUS)]
    acknowledgment: Annotated[int, msgspec.Meta(ge=0, lt=MODULUS)]
    flags: Annotated[int, msgspec.Meta(ge=0, le=INT16_MAX)]
    payload: bytes
    missing: Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)]
    begins: Direction | None


class FrameRecord(SavedRecord):
    """A frame that waits."""

    direction: Direction
    timestamp_us: Number
    first_us: Number
    index: Count
    size: Count
    payload: bytes
    error: str | None
    is_placed: bool


class PieceRecord(SavedRecord):
    """A piece of a stream's bytes."""

    position: Number
    data: bytes
    lost: Count
    timestamp_us: Number
    begins_frame: bool
    seen: bool


class ReachRecord(SavedRecord):
    """The bytes of one endpoint that have been seen so far."""

    low: Number
    high: Number
    is_seen: bool
    is_told: bool
    is_anchored: bool
    end: Number | None


class StreamRecord(SavedRecord):
    """The bytes of one direction, in order."""

    started: bool
    anchored: bool
    repeated: Count
    late: Count
    early: Count
    early_missing: Count
    base: Number
    next: Number
    pending: Annotated[list[PieceRecord], msgspec.Meta(max_length=2 * MAX_PENDING_PIECES)]
    acknowledged: Number | None
    fin: Number | None
    segments_since_acknowledged: Count
    gaps: Annotated[list[tuple[Number, Number]], msgspec.Meta(max_length=MOST_GAPS)]


class FramerRecord(SavedRecord):
    """The frames of one direction."""

    ever_synchronized: bool
    tls_records: Count
    buffer: bytes
    seen: Count
    lost: Count
    length: Count | None
    first_us: Number
    last_us: Number
    candidates: Annotated[list[PieceRecord], msgspec.Meta(max_length=1 << 20)]
    why: str | None
    last_length: Number


class DirectionRecord(SavedRecord):
    """The data that one endpoint has sent: its bytes, its frames, and the counts of both."""

    stream: StreamRecord
    framer: FramerRecord | None
    count: Count
    head: bytes
    frames: Count
    size: Count
    size_before: Count


class EndRecord(SavedRecord):
    """One endpoint of a connection. It may be unknown whether this is the client or the broker."""

    reach: ReachRecord
    initial: Number | None
    asked: set[Int32]
    is_sure: bool


class EvidenceRecord(SavedRecord):
    """The evidence that a connection is Kafka."""

    found: str | None
    hint: str | None
    asked: Annotated[list[tuple[RequestRecord, bool]], msgspec.Meta(max_length=MOST_AWAITED)]
    decoded: RequestRecord | None
    cut: RequestRecord | None


class AccountRecord(SavedRecord):
    """The counts since the last pause, and the facts gathered before that pause."""

    first_us: Number | None
    last_us: Number
    is_paused: bool
    has_syn: bool
    is_marked: bool
    reset: bool
    ended_by: str | None
    lost: Number
    captured: Number
    repeated: Number
    late: Number
    early: Number
    unreadable: Number


class ConnectionRecord(SavedRecord):
    """An open connection."""

    ordinal: Count
    name: str
    last_us: Number
    client: str | None
    is_reset: bool
    segments: Count
    account: AccountRecord
    evidence: EvidenceRecord
    known: str | None
    held: Annotated[list[SegmentRecord], msgspec.Meta(max_length=2 * HELD_SEGMENTS)]
    noted: Annotated[list[tuple[bool, Int32]], msgspec.Meta(max_length=NOTED_FRAMES)]
    any_request: bool
    beginning: Annotated[list[SegmentRecord], msgspec.Meta(max_length=REORDER_SEGMENTS)] | None
    held_back: Annotated[list[FrameRecord], msgspec.Meta(max_length=2 * MOST_HELD_BACK)]
    request: DirectionRecord
    response: DirectionRecord
    low: EndRecord
    high: EndRecord


class AssemblerRecord(SavedRecord):
    """The connections between the endpoints ``low`` and ``high``."""

    low: str
    high: str
    file: str
    ordinal: Count
    client: str | None
    open: Annotated[list[ConnectionRecord], msgspec.Meta(max_length=OPEN_CONNECTIONS)]


def record_of(assembler: FrameAssembler, file: str) -> AssemblerRecord:
    """Return the record of an assembler whose last segment was in ``file``."""
    state = vars(assembler)
    low, _, high = assembler.key.partition("|")
    connections = [_connection(one, low, high) for one in state["_open"]]
    return AssemblerRecord(low, high, file, state["_ordinal"], state["_client"], connections)


def assembler_of(
    record: AssemblerRecord, limit: int, brokers: BrokerEnds, *, endless: bool = False
) -> FrameAssembler:
    """Return an assembler that continues from a record.

    Raises `ValueError` for an invalid record.
    """
    key = key_of_ends(record.low, record.high)
    _check(key == f"{record.low}|{record.high}", "ends")
    ends = {record.low, record.high}
    _check(record.client in {None, *ends}, "client")
    assembler = FrameAssembler(limit=limit, brokers=brokers, endless=endless)
    vars(assembler).update(key=key, _ordinal=record.ordinal, _client=record.client)
    for one in record.open:
        _check(one.ordinal <= record.ordinal, "ordinal")
        _open(one, record, assembler, limit)
    return assembler


def _check(holds: bool, what: str) -> None:  # noqa: FBT001 - this is the condition that is checked
    if not holds:
        raise ValueError(f"{what} of a connection")


def _take(kind: type[T], of: object, **given: Any) -> T:
    """Return a record of an object. Missing fields are taken from the object's attributes."""
    state = _state(of)
    values = {
        name: given[name] if name in given else state.get(name, state.get(f"_{name}"))
        for name in kind.__struct_fields__  # type: ignore[attr-defined]  # of every record
    }
    return kind(**values)


def _state(of: object) -> dict[str, Any]:
    if isinstance(of, tuple):
        named: Any = of
        return dict(named._asdict())
    if isinstance(of, msgspec.Struct):
        return msgspec.structs.asdict(of)
    if isinstance(of, RequestFrame):
        return {field.name: getattr(of, field.name) for field in fields(of)}
    return vars(of)


def _put(record: SavedRecord, into: T, *others: str) -> T:
    """Copy the fields of a record to an object, except the fields in ``others``."""
    state = vars(into)
    for name, value in msgspec.structs.asdict(record).items():
        if name not in others:
            state[name if name in state else f"_{name}"] = value
    return into


def _connection(opened: object, low: str, high: str) -> ConnectionRecord:
    state = vars(opened)
    course, account, roles = (vars(state[name]) for name in ("course", "_account", "_roles"))
    waiting, beginning = vars(state["_waiting"]), state["_beginning"]
    ends = [
        EndRecord(
            _take(ReachRecord, course["_reach"][end]),
            course["_initial"].get(end),
            roles["_asked"].get(end, set()),
            end in roles["_sure"],
        )
        for end in (low, high)
    ]
    directions = [
        DirectionRecord(
            _stream(half.stream),
            None if half.framer is None else _framer(half.framer),
            half.count,
            *(account[name][way] for name in ("_heads", "_frames", "_bytes", "_bytes_before")),
        )
        for way, half in state["_halves"].items()
    ]
    return _take(
        ConnectionRecord,
        opened,
        is_reset=course["is_reset"],
        segments=course["_segments"],
        account=_take(AccountRecord, state["_account"]),
        evidence=record_of_evidence(account["evidence"]),
        known=roles["_known"],
        held=_segments(roles["held"]),
        noted=[*waiting["_noted"]],
        any_request=waiting["_any_request"],
        beginning=None if beginning is None else _segments(vars(beginning)["_segments"]),
        held_back=[_take(FrameRecord, one) for one in vars(state["_held_back"])["_frames"]],
        request=directions[0],
        response=directions[1],
        low=ends[0],
        high=ends[1],
    )


def _open(
    record: ConnectionRecord, of: AssemblerRecord, assembler: FrameAssembler, limit: int
) -> None:
    """Open a connection of an assembler from its record."""
    ends = (of.low, of.high)
    opened = assembler.open_again(assembler.key, record.ordinal)
    state = vars(opened)
    broker = ""
    if record.client is not None:
        _check(record.client in ends, "client")
        broker = ends[0] if record.client == ends[1] else ends[1]
        ordinal = f"#{record.ordinal}" if record.ordinal > 1 else ""
        _check(record.name == f"{record.client}>{broker}{ordinal}", "name")
    else:
        _check(not record.name, "name")
    state.update(name=record.name, last_us=record.last_us, _client=record.client, _broker=broker)
    _put_course(record, of, state["course"])
    _put_account(record, state["_account"])
    _put_roles(record, of, state["_roles"])
    vars(state["_waiting"]).update(
        _noted=deque(record.noted, maxlen=NOTED_FRAMES), _any_request=record.any_request
    )
    if record.beginning is None:
        state["_beginning"] = None
    else:
        held = [_segment(one, of) for one in record.beginning]
        size = sum(len(one.payload) for one in held)
        vars(state["_beginning"]).update(_segments=held, _bytes=size)
    frames = [
        CapturedFrame(connection=record.name, **msgspec.structs.asdict(one))
        for one in record.held_back
    ]
    size = sum(len(one.payload) for one in frames)
    vars(state["_held_back"]).update(_frames=frames, _bytes=size)
    for way, direction in _directions(record):
        half = state["_halves"][way]
        half.count = direction.count
        _put_stream(direction.stream, half.stream)
        if direction.framer is not None:
            # The state of the connection determines whether it is known where frames begin.
            half.framer = opened.new_framer(way)
            _put_framer(direction.framer, half.framer, limit)


def _directions(record: ConnectionRecord) -> list[tuple[Direction, DirectionRecord]]:
    return [("request", record.request), ("response", record.response)]


def _put_course(record: ConnectionRecord, of: AssemblerRecord, course: object) -> None:
    state = vars(course)
    state.update(is_reset=record.is_reset, _segments=record.segments)
    for end, known in ((of.low, record.low), (of.high, record.high)):
        _check(known.reach.low <= known.reach.high, "bytes")
        _put(known.reach, state["_reach"][end])
        if known.initial is not None:
            state["_initial"][end] = known.initial


def _put_account(record: ConnectionRecord, account: object) -> None:
    _put(record.account, account)
    state = vars(account)
    for way, direction in _directions(record):
        state["_heads"][way] = direction.head
        state["_frames"][way] = direction.frames
        state["_bytes"][way] = direction.size
        state["_bytes_before"][way] = direction.size_before
    state["evidence"] = evidence_of(record.evidence)


def _put_roles(record: ConnectionRecord, of: AssemblerRecord, roles: object) -> None:
    held = [_segment(one, of) for one in record.held]
    ends = ((of.low, record.low), (of.high, record.high))
    vars(roles).update(
        held=held,
        _known=record.known,
        _held_bytes=sum(len(one.payload) for one in held),
        _asked={end: known.asked for end, known in ends if known.asked},
        _sure={end for end, known in ends if known.is_sure},
    )
    _check(record.known in {None, of.low, of.high}, "client")


def evidence_of(record: EvidenceRecord) -> KafkaEvidence:
    """Return the evidence in a record."""
    evidence = KafkaEvidence()
    vars(evidence).update(
        found=record.found,
        hint=record.hint,
        _asked={
            request.correlation_id: AwaitedRequest(_request(request), is_whole)
            for request, is_whole in record.asked
        },
        _decoded=None if record.decoded is None else _request(record.decoded),
        _cut=None if record.cut is None else _request(record.cut),
    )
    return evidence


def record_of_evidence(evidence: KafkaEvidence) -> EvidenceRecord:
    """Return the record of the evidence that a connection is Kafka."""
    state = vars(evidence)
    known = {name: state[f"_{name}"] for name in ("decoded", "cut")}
    return EvidenceRecord(
        evidence.found,
        evidence.hint,
        [(_take(RequestRecord, one.request), one.is_whole) for one in state["_asked"].values()],
        *(None if one is None else _take(RequestRecord, one) for one in known.values()),
    )


def _request(record: RequestRecord) -> RequestFrame:
    return replace(
        known_request(record.api_key, record.api_version, record.correlation_id, record.client_id),
        header_version=record.header_version,
        body_offset=record.body_offset,
    )


def _segments(segments: list[Segment]) -> list[SegmentRecord]:
    return [_take(SegmentRecord, one) for one in segments]


def _segment(record: SegmentRecord, of: AssemblerRecord) -> Segment:
    _check({record.source, record.destination} == {of.low, of.high}, "ends")
    return Segment(**msgspec.structs.asdict(record))


def _stream(stream: Stream) -> StreamRecord:
    return _take(StreamRecord, stream, pending=_pieces(vars(stream)["_pending"]))


def _put_stream(record: StreamRecord, stream: Stream) -> None:
    pending = _checked(record.pending)
    _check(record.base <= record.next, "bytes")
    _check(not pending or pending[0].position > record.next, "bytes")
    _put(record, stream, "pending")
    vars(stream).update(_pending=pending, _pending_bytes=sum(len(piece.data) for piece in pending))


def _framer(framer: Framer) -> FramerRecord:
    candidates = vars(framer)["_candidates"].pieces
    return _take(
        FramerRecord, framer, buffer=bytes(vars(framer)["_buffer"]), candidates=_pieces(candidates)
    )


def _put_framer(record: FramerRecord, framer: Framer, limit: int) -> None:
    buffer, seen, length = record.buffer, record.seen, record.length
    if record.why is None:
        _check(not record.candidates and len(buffer) <= seen - record.lost, "frame")
        _check(bool(record.lost) or len(buffer) == seen, "frame")
        if length is None:
            _check(seen < PREFIX_LENGTH and not record.lost, "frame")
        else:
            _check(len(buffer) >= PREFIX_LENGTH and seen < length <= limit + PREFIX_LENGTH, "frame")
            _check(_LENGTH.unpack_from(buffer)[0] + PREFIX_LENGTH == length, "frame")
    _put(record, framer, "buffer", "candidates")
    vars(framer)["_buffer"] = bytearray(buffer)
    vars(framer)["_candidates"].pieces = _checked(record.candidates)


def _pieces(pieces: list[StreamPiece]) -> list[PieceRecord]:
    return [_take(PieceRecord, one) for one in pieces]


def _checked(records: list[PieceRecord]) -> list[StreamPiece]:
    pieces = [StreamPiece(**msgspec.structs.asdict(one)) for one in records]
    for piece, following in pairwise(pieces):
        _check(piece.end <= following.position, "bytes")
    _check(all(bool(piece.data) != bool(piece.lost) for piece in pieces), "bytes")
    return pieces
