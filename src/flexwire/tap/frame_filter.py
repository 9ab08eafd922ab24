"""A filter for the frames that a tap captures: by API, client id or topic.

Omitted frames leave no gap in a capture: the capture looks as if only the other frames had been
sent. A request and its response are therefore either both captured or both left out. A frame that
cannot be decoded is captured, because it may match the filter. SASL frames are captured too,
because a reader needs them to understand later bytes. The topics of a request are the topics that
the request names.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from functools import cache
from itertools import compress, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

from flexwire.codec import message
from flexwire.errors import ArgumentError, CodecError, FrameError, UnknownMessageError
from flexwire.protocol import parse_response
from flexwire.protocol.apis import find_api
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.protocol.frames import FrameGroup, to_frame
from flexwire.protocol.sasl import is_sasl
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.tables.spec_places import entity_paths, fields_with_paths
from flexwire.tap.limits import MOST_WALKED, beginning
from flexwire.wire.field_spans import BoundedReader, field_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.capture.files.packets import Direction
    from flexwire.capture.files.pcapng import TappedConnection
    from flexwire.protocol import RequestFrame, Turn
    from flexwire.protocol.frames import TruncatedFrame

# A cluster may have any number of topics, and each topic in a response takes memory for its name.
_MOST_TOPICS: Final = 100_000
_TOPIC: Final = "topics"
_NO_ID: Final = UUID(int=0)
_UNREADABLE: Final = (FrameError, CodecError, UnknownMessageError)


class _TopicFields(NamedTuple):
    """A structure that names topics: its path, and its name and id fields."""

    path: tuple[str, ...]
    name: str = ""
    topic_id: str = ""


class _TopicReference(NamedTuple):
    """A topic in a structure, given by its name, its id, or both."""

    name: str
    topic_id: UUID


class TopicNames:
    """The names of a cluster's topics by their ids, learned from responses."""

    def __init__(self) -> None:
        self._names: OrderedDict[UUID, str] = OrderedDict()

    def learn(self, payload: bytes, request: RequestFrame) -> None:
        """Read a response. Some responses contain both the names and the ids of topics."""
        if not names_topics_and_ids(request):
            return
        name = _response_name(request)
        # Names that precede unreadable bytes, or the step limit, are kept.
        with suppress(*_UNREADABLE):
            frame = parse_response(beginning(payload), request.api_key, request.api_version)
            for topic in _named(payload, frame.body_offset, name, frame.body_version):
                self.note(topic.name, topic.topic_id)

    def note(self, name: str | None, topic_id: UUID | None) -> None:
        """Record a topic from a response. A topic without a name or without an id is ignored."""
        if name and topic_id is not None and topic_id != _NO_ID:
            self._names[topic_id] = name
            if len(self._names) > _MOST_TOPICS:
                self._names.popitem(last=False)

    def of(self, name: str | None, topic_id: UUID | None) -> str | None:
        """Return the name of a topic, or None if only its id is known."""
        return name or (None if topic_id is None else self._names.get(topic_id))

    def requested(self, payload: bytes, request: RequestFrame) -> list[str | None]:
        """Return the topics in a request. None stands for a topic of which only the id is known.

        Raises `FlexwireError` for a request that cannot be read, or that has more than
        `MOST_WALKED` elements.
        """
        name = request.message_name
        if not topic_fields(name):
            return []
        named = _named(payload, request.body_offset, name, request.api_version)
        return [self.of(*topic) for topic in named]


def names_topics_and_ids(request: RequestFrame) -> bool:
    """Return whether the response to a request may contain both names and ids of topics."""
    return any(topic.name and topic.topic_id for topic in topic_fields(_response_name(request)))


def _response_name(request: RequestFrame) -> str:
    return request.message_name.removesuffix("Request") + "Response"


def parse_api(text: str) -> str:
    """Return the name of an API, given its name or its api key.

    For any other text, raises an `ArgumentError` that suggests the most similar name.

    >>> parse_api("0"), parse_api("produce")
    ('Produce', 'Produce')
    """
    try:
        return find_api(text).name.removesuffix("Request")
    except UnknownMessageError as error:
        raise ArgumentError(f"expected the name or key of an API: {error}") from None


class FilterCounts(Protocol):
    """The numbers of frames and bytes that a filter has left out so far."""

    filtered_frames: int
    filtered_bytes: int


class FrameFilter:
    """The filter for the frames of one connection."""

    def __init__(self, only: CaptureFilter, topics: TopicNames, statistics: FilterCounts) -> None:
        self._only = only
        self._topics = topics
        self._statistics = statistics
        # The pairs of omitted requests whose responses have not arrived yet.
        self._left_out: OrderedDict[int, None] = OrderedDict()
        # Whether a captured request has named topics, by API. Later requests may not name the
        # topics again.
        self._has_taken: dict[int, bool] = {}

    def select(self, frames: FrameGroup, turns: Sequence[Turn]) -> tuple[FrameGroup, list[bool]]:
        """Return the frames to capture, and for each frame whether it is captured."""
        takes = [self._takes(*pair) for pair in zip(frames.payloads, turns, strict=True)]
        if all(takes):
            return frames, takes
        payloads = list(compress(frames.payloads, takes))
        whole = b"".join(map(to_frame, payloads))
        self._statistics.filtered_frames += len(takes) - len(payloads)
        self._statistics.filtered_bytes += len(frames.whole) - len(whole)
        return FrameGroup(whole, payloads), takes

    def takes_beginning(self, direction: Direction, frame: TruncatedFrame, turn: Turn) -> bool:
        """Return whether to capture the beginning of a frame whose other bytes are not kept."""
        if turn.request is not None:
            turn = turn._replace(kind=direction)
        takes = self._takes(frame.payload, turn)
        if not takes:
            self._statistics.filtered_frames += 1
            self._statistics.filtered_bytes += len(frame.data) + frame.missing
        return takes

    def _takes(self, payload: bytes, turn: Turn) -> bool:
        request = turn.request
        if turn.kind == "response" and request is not None:
            if self._only.topics:
                self._topics.learn(payload, request)
            if turn.pair is None or turn.pair not in self._left_out:
                return True
            del self._left_out[turn.pair]
            return False
        if turn.kind != "request" or request is None or self._takes_request(payload, request):
            return True
        if turn.pair is not None:
            self._left_out[turn.pair] = None
            if len(self._left_out) > DEFAULT_IN_FLIGHT:
                self._left_out.popitem(last=False)
        return False

    def _takes_request(self, payload: bytes, request: RequestFrame) -> bool:
        if is_sasl(request):
            return True
        only = self._only
        if not (only.takes_api(request.api_name) and only.takes_client(request.client_id)):
            return False
        return not only.topics or self._is_about(payload, request)

    def _is_about(self, payload: bytes, request: RequestFrame) -> bool:
        if not topic_fields(request.message_name):
            return False
        try:
            names = self._topics.requested(payload, request)
        except _UNREADABLE:
            return True
        if not names:
            # The request is about all topics, or about the topics of earlier requests (the fetch
            # sessions of KIP-227).
            return self._has_taken.get(request.api_key, True)
        takes = any(topic is None or self._only.takes_topic(topic) for topic in names)
        self._has_taken[request.api_key] = takes or self._has_taken.get(request.api_key, False)
        return takes


class LazyCapture:
    """A connection's capture, which begins with the first captured frame."""

    def __init__(self, begin: Callable[[int | None], TappedConnection]) -> None:
        self._begin = begin
        self._begun: TappedConnection | None = None

    def send(
        self,
        direction: Direction,
        data: bytes,
        timestamp_us: int | None = None,
        *,
        frames: int = 1,
        comments: Sequence[bytes] = (),
    ) -> None:
        """Write captured frames. Also raises `CaptureError` if the capture cannot begin."""
        if data:
            capture = self._started(timestamp_us)
            capture.send(direction, data, timestamp_us, frames=frames, comments=comments)

    def send_beginning(
        self, direction: Direction, data: bytes, missing: int, timestamp_us: int | None = None
    ) -> None:
        """Write the beginning of a frame that was not kept whole."""
        self._started(timestamp_us).send_beginning(direction, data, missing, timestamp_us)

    def _started(self, timestamp_us: int | None) -> TappedConnection:
        if self._begun is None:
            self._begun = self._begin(timestamp_us)
        return self._begun

    def close(self, *, reset: bool = False, by_broker: bool = False) -> None:
        """Write the end of the capture, if the capture has begun."""
        if self._begun is not None:
            self._begun.close(reset=reset, by_broker=by_broker)


@per_catalog
@cache
def topic_fields(name: str) -> tuple[_TopicFields, ...]:
    """Return the places in which a message names topics, in any of its versions."""
    ids = {
        path[:-1]: path[-1]
        for spec in catalog().entry(name).all_specs()
        for path, field in fields_with_paths(spec.fields, spec.structs(), ())
        if field.identifies_topic
    }
    named = [path for path, kind in entity_paths(name) if kind == _TOPIC]
    places = [_TopicFields(path[:-1], path[-1], ids.get(path[:-1], "")) for path in named]
    without_name = ids.keys() - {field.path for field in places}
    return (*places, *(_TopicFields(path, topic_id=ids[path]) for path in sorted(without_name)))


def _named(payload: bytes, start: int, name: str, version: int) -> Iterator[_TopicReference]:
    """Yield the topics in a message, whose body begins at ``start`` in the payload.

    Raises `DecodeError`, also if the message has more than `MOST_WALKED` elements.
    """
    places = topic_fields(name)
    paths = [
        (*place.path, element)
        for place in places
        for element in (place.name, place.topic_id)
        if element
    ]
    schema = message(name).definition.schema(version)
    spans = field_spans(schema, BoundedReader(payload, start, MOST_WALKED), paths, to_end=True)
    for _, structure in groupby(spans, key=attrgetter("structure")):
        fields = {span.path: span.value for span in structure}
        for place in places:
            names = fields.get((*place.path, place.name))
            topic_id = fields.get((*place.path, place.topic_id), _NO_ID)
            for element in names if isinstance(names, list) else [names]:
                if element or topic_id != _NO_ID:
                    yield _TopicReference(element or "", topic_id)
