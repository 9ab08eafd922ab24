"""Collect facts about each connection from its frames."""

from __future__ import annotations

from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from flexwire.capture.reassembly.connections import hear
from flexwire.codec import message
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.facts.units import shorten
from flexwire.protocol import (
    Conversation,
    assigned_client_instance_id,
    client_instance_id,
    parse_response,
)
from flexwire.protocol.client_instances import client_instance_field
from flexwire.protocol.error_codes import NO_ERROR, error_name
from flexwire.protocol.sasl import is_believable
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.tables.spec_places import error_places
from flexwire.tap.frame_filter import TopicNames
from flexwire.tap.limits import MOST_DECODED, MOST_WALKED, beginning
from flexwire.wire.field_spans import BoundedReader, field_spans
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from uuid import UUID

    from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame
    from flexwire.protocol import RequestFrame, Turn

MOST_CONNECTIONS: Final = 20_000
"""The maximum number of connections that are kept at the same time."""
MOST_TOPICS: Final = 20
"""The maximum number of topics that are listed by name for each connection."""
MOST_COUNTED_TOPICS: Final = 256
"""The maximum number of topics that are counted for each connection. Additional topics do not
change the count.
"""
MOST_WAITING: Final = 256
"""The maximum number of requests per connection that can wait for a response. An additional request
displaces the oldest one.
"""

MOST_CHARACTERS: Final = 256
"""Client names and topic names are truncated to this many characters."""

_SOFTWARE: Final = (("client_software_name",), ("client_software_version",))
_UNREADABLE: Final = (FrameError, CodecError, UnknownMessageError)


class LastError(NamedTuple):
    """An error in a response: its name or code, the API of the request, and the time."""

    name: str
    api: str
    at_us: int


class WaitingRequest(NamedTuple):
    """A request without its response: its API, and the time of its last byte."""

    api: str
    since_us: int


@dataclass(slots=True)
class ConnectionActivity:
    """A connection: its client, its traffic, and its waiting requests.

    Times are in microseconds since 1970 and are taken from the capture or the log.
    ``request_bytes`` and ``response_bytes`` include the length prefixes of frames. For request
    logs, which do not contain sizes, both are None. ``client_id`` is the last client id that was
    sent. ``principal`` is known only from request logs. ``instance_id`` is the client instance id
    (KIP-714, KIP-1313), in Kafka's text form, from the first frame that contains an id. ``apis``
    counts the requests of each API. ``topics`` lists the topics that appear in requests, in the
    order of their first request, and ``more_topics`` is the number of other topics. ``closed_by``
    and ``is_reset`` describe how the connection ended, if the end was captured. ``is_open`` is None
    if the state is unknown, as in request logs.
    """

    connection: str
    client: str
    broker: str
    first_us: int
    last_us: int
    client_id: str | None = None
    software_name: str | None = None
    software_version: str | None = None
    principal: str | None = None
    instance_id: str | None = None
    requests: int = 0
    responses: int = 0
    request_bytes: int | None = 0
    response_bytes: int | None = 0
    damaged_frames: int = 0
    errors: int = 0
    last_error: LastError | None = None
    is_open: bool | None = True
    is_kafka: bool = False
    closed_by: Literal["client", "broker"] | None = None
    is_reset: bool = False
    apis: Counter[str] = field(default_factory=Counter)
    topics: dict[str, None] = field(default_factory=dict)
    _hashes: set[int] = field(default_factory=set)
    _waiting: OrderedDict[int, WaitingRequest] = field(default_factory=OrderedDict)

    @property
    def more_topics(self) -> int:
        """The number of topics that are not in ``topics``.

        The count stops at `MOST_COUNTED_TOPICS` in total.
        """
        return len(self._hashes) - len(self.topics)

    @property
    def waiting(self) -> int:
        """The number of requests that are still waiting for their responses."""
        return len(self._waiting)

    @property
    def oldest(self) -> WaitingRequest | None:
        """The request that has waited the longest, or None if no request is waiting."""
        return next(iter(self._waiting.values()), None)

    def note_times(self, first_us: int, last_us: int) -> None:
        """Record the times of new traffic. Files from several taps may overlap in time."""
        self.first_us = min(self.first_us, first_us)
        self.last_us = max(self.last_us, last_us)

    def note_client(
        self, client_id: str | None, name: str | None = None, version: str | None = None
    ) -> None:
        """Record the facts about the client in a request. The first software name is kept."""
        if client_id is not None:
            self.client_id = shorten(client_id, MOST_CHARACTERS)
        if self.software_name is None and (name or version):
            self.software_name = shorten(name or "", MOST_CHARACTERS) or None
            self.software_version = shorten(version or "", MOST_CHARACTERS) or None

    def note_instance(self, instance_id: str | None) -> None:
        """Record a client instance id, and ignore None. The first id of a connection is kept."""
        self.instance_id = self.instance_id or instance_id

    def note_errors(self, codes: Sequence[int], api: str, at_us: int) -> None:
        """Record the error codes in a response, in order. 0 means no error."""
        codes = [code for code in codes if code != NO_ERROR]
        if codes:
            self.errors += len(codes)
            if self.last_error is None or at_us >= self.last_error.at_us:
                name = error_name(codes[-1]) or str(codes[-1])
                self.last_error = LastError(name, api, at_us)

    def note_topics(self, names: Iterable[str | None]) -> None:
        """Record the topics in a request. None stands for a topic whose name is unknown."""
        for name in filter(None, names):
            if len(self._hashes) < MOST_COUNTED_TOPICS:
                self._hashes.add(hash(name))
                if len(self.topics) < MOST_TOPICS:
                    self.topics[shorten(name, MOST_CHARACTERS)] = None

    def wait(self, pair: int, request: WaitingRequest) -> None:
        """Add a request that is waiting for its response."""
        self._waiting[pair] = request
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)

    def answer(self, pair: int | None) -> None:
        """Record that a request has received its response."""
        if pair is not None:
            self._waiting.pop(pair, None)

    def end(self, closed_by: Literal["client", "broker"] | None, *, is_reset: bool) -> None:
        """Record the first sign that the connection has ended. Later signs have no effect."""
        if self.closed_by is None and closed_by is not None:
            self.closed_by, self.is_reset = closed_by, is_reset


class ActivityTable:
    """The facts about all connections, collected from their frames in chronological order.

    At most ``most`` connections are kept. When this limit is exceeded, a closed connection is
    forgotten or, if all connections are open, the oldest one. ``left_out`` is the number of Kafka
    connections that were forgotten because of the limit. ``last_us`` is the time of the latest
    frame. ``topics`` maps topic ids to topic names. ``leaving`` is called with each connection that
    is forgotten.
    """

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self.left_out = 0
        self.last_us = 0
        self._most = most
        self._rows: dict[str, ConnectionActivity] = {}
        self._conversations: dict[str, Conversation] = {}
        self._closed: dict[str, None] = {}
        self.topics = TopicNames()
        self.leaving: Callable[[ConnectionActivity], None] = _ignore

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[ConnectionActivity]:
        """Yield the connections that are known to be Kafka, in the order of their first frames."""
        return (row for row in self._rows.values() if row.is_kafka)

    def find(self, connection: str) -> ConnectionActivity | None:
        """Return a connection by its name, even one that is not known to be Kafka."""
        return self._rows.get(connection)

    def row(
        self, connection: str, client: str, broker: str, times: tuple[int, int]
    ) -> ConnectionActivity:
        """Return a connection that carried traffic between two times.

        Create the connection if it is new.
        """
        row = self._rows.get(connection)
        if row is None:
            row = self._rows[connection] = ConnectionActivity(connection, client, broker, *times)
            self._make_room()
        row.note_times(*times)
        self.last_us = max(self.last_us, times[1])
        return row

    def see(self, frame: CapturedFrame) -> ConnectionActivity:
        """Process a frame and return its connection."""
        client, _, broker = frame.connection.partition("#")[0].partition(">")
        times = frame.first_us, frame.timestamp_us
        row = self.row(frame.connection, client, broker, times)
        if frame.connection not in self._conversations:
            conversation = Conversation(MOST_WAITING, most_read=MOST_DECODED)
            self._conversations[frame.connection] = conversation
        if frame.direction == "request":
            row.request_bytes = (row.request_bytes or 0) + frame.size
        else:
            row.response_bytes = (row.response_bytes or 0) + frame.size
        turn = hear(frame, self._conversations[frame.connection])
        if turn.error is not None:
            row.damaged_frames += 1
        if frame.direction == "response":
            self._see_response(row, frame, turn)
        elif turn.request is not None and turn.kind != "token" and is_believable(turn.request):
            self._see_request(row, frame, turn, turn.request)
        return row

    def close(self, connection: str) -> None:
        """Record that both ends have closed a connection."""
        row = self._rows.get(connection)
        if row is not None:
            row.is_open = False
            self._closed[connection] = None

    def end(self, ended: CapturedConnection, *, is_over: bool) -> None:
        """Record the facts about a connection that has ended.

        If ``is_over`` is false, the connection may continue later.
        """
        row = self._rows.get(ended.connection)
        if row is None:
            return
        row.is_kafka = ended.is_kafka
        row.end(ended.closed_by, is_reset=ended.reset)
        if is_over:
            self.close(ended.connection)

    def forget_closed(self) -> None:
        """Forget the closed connections, after they have been shown."""
        for connection in self._closed:
            self.leaving(self._rows.pop(connection))
            self._conversations.pop(connection, None)
        self._closed.clear()

    def drop(self, connection: str) -> None:
        """Forget a connection to make room, and count it if it is a Kafka connection."""
        row = self._rows.pop(connection, None)
        if row is not None:
            self.left_out += row.is_kafka
            self.leaving(row)
            self._conversations.pop(connection, None)
            self._closed.pop(connection, None)

    def _make_room(self) -> None:
        while len(self._rows) > self._most:
            self.drop(next(iter(self._closed), next(iter(self._rows))))

    def _see_request(
        self, row: ConnectionActivity, frame: CapturedFrame, turn: Turn, request: RequestFrame
    ) -> None:
        row.requests += 1
        row.apis[request.api_name] += 1
        row.note_client(request.client_id)
        row.note_instance(_text(client_instance_id(request, frame.payload)))
        if turn.pair is not None:
            row.wait(turn.pair, WaitingRequest(request.api_name, frame.timestamp_us))
        if turn.error is not None:
            return
        with suppress(*_UNREADABLE):
            row.note_topics(self.topics.requested(frame.payload, request))
        if row.software_name is None and _names_software(request.message_name):
            with suppress(*_UNREADABLE):
                row.note_client(None, *_software(frame.payload, request))

    def _see_response(self, row: ConnectionActivity, frame: CapturedFrame, turn: Turn) -> None:
        row.answer(turn.pair)
        request = turn.request
        if turn.kind == "response":
            row.responses += 1
        if turn.kind != "response" or request is None:
            return
        self.topics.learn(frame.payload, request)
        row.note_instance(_text(_assigned(frame.payload, request)))
        codes = _error_codes(frame.payload, request)
        row.note_errors(codes, request.api_name, frame.timestamp_us)


def _ignore(_: ConnectionActivity) -> None:
    """Do nothing with a connection that is forgotten."""


@per_catalog
@cache
def _names_software(name: str) -> bool:
    specs = catalog().entry(name).all_specs()
    return any((field.attribute,) == _SOFTWARE[0] for spec in specs for field in spec.fields)


def _software(payload: bytes, request: RequestFrame) -> tuple[str, str]:
    """Return the name and the version of the client's software; either may be empty."""
    schema = message(request.message_name).definition.schema(request.api_version)
    reader = BoundedReader(payload, request.body_offset, MOST_WALKED)
    found = {span.path: span.value or "" for span in field_spans(schema, reader, _SOFTWARE)}
    name, version = (found.get(path, "") for path in _SOFTWARE)
    return name, version


def _text(instance_id: UUID | None) -> str | None:
    return None if instance_id is None else uuid_text(instance_id)


def _assigned(payload: bytes, request: RequestFrame) -> UUID | None:
    """Return the client instance id that a response assigns, or None if it does not assign one."""
    if client_instance_field(request.message_name.removesuffix("Request") + "Response") is None:
        return None
    with suppress(*_UNREADABLE):
        response = parse_response(beginning(payload), request.api_key, request.api_version)
        return assigned_client_instance_id(response, payload)
    return None


def _error_codes(payload: bytes, request: RequestFrame) -> list[int]:
    """Return the error codes in the readable part of a response, in order."""
    codes: list[int] = []
    with suppress(*_UNREADABLE):
        response = parse_response(beginning(payload), request.api_key, request.api_version)
        paths = [place.path for place in error_places(response.message_name)]
        schema = message(response.message_name).definition.schema(response.body_version)
        reader = BoundedReader(payload, response.body_offset, MOST_WALKED)
        # Codes found before the damaged part are kept.
        codes.extend(span.value for span in field_spans(schema, reader, paths))
    return codes
