"""Comments in a capture: its filter, its share of connections, and tags that the tap added.

A comment on the section header of each file has the filter and the share. Wireshark shows that
comment among the properties of the file, and readers see it before the first packet. So nobody
mistakes a part of the traffic for all of it.

A tap captures what a client sent. If the tap adds tags to request headers, only these tags differ
in the bytes that it sent on. They are in a comment on the packet in which the request begins, or on
the first packet if several came together. So the capture has both forms, no byte counts twice, and
Wireshark shows the tags. A comment on the section header of each file lists the tags without their
values. A capture made between the tap and the brokers has these tags in its requests too, and
nothing there distinguishes them from a client's own.
"""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from flexwire.arguments import refuse
from flexwire.capture.files.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.files.packets import UnreadableBytes
from flexwire.capture.files.reading import (
    BYTE_ORDERS,
    DAMAGE,
    SECTION_MAGIC,
    DamagedError,
    options_in,
    read_packets,
)
from flexwire.errors import ArgumentError
from flexwire.wire.limits import HIGHEST_TAG, INT32_MAX, INT32_MIN
from flexwire.wire.packet_layout import OPTION_COMMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from io import BufferedReader
    from pathlib import Path

    from flexwire.capture.files.packets import CapturedPacket


MOST_HEAD_BYTES: Final = 4096
"""Only these first bytes of a file are searched: a tap's comment is the first option."""
_SHARE_PREFIX: Final = b"flexwire: captured of all connections: "
_SHARE: Final = "share"
_OPTIONS_AT: Final = 24


def sampling_comment(share: float) -> bytes:
    """Return the comment that says which share of connections is captured.

    >>> sampling_comment(0.1)
    b'flexwire: captured of all connections: {"share": 0.1}'
    """
    return _SHARE_PREFIX + json.dumps({_SHARE: share}).encode()


def share_in(file: BufferedReader[Any]) -> float | None:
    """Return the share of connections that an open file names, without reading on; otherwise None.

    A damaged file has no share. The next reader finds the damage.
    """
    return next(
        (parsed for said in comments_in(file) if (parsed := _parsed_share(said)) is not None), None
    )


def comments_in(file: BufferedReader[Any]) -> Iterator[bytes]:
    """Yield the comments on the first section header of an open file, without reading on."""
    try:
        head = file.peek(MOST_HEAD_BYTES)[:MOST_HEAD_BYTES]
    except DAMAGE:
        return
    order = BYTE_ORDERS.get(head[8:12])
    if not head.startswith(SECTION_MAGIC) or order is None:
        return
    (length,) = struct.unpack(f"{order}I", head[4:8])
    # A block repeats its length at its end.
    with suppress(DamagedError):
        for code, value in options_in(head[: max(0, length - 4)], _OPTIONS_AT, order):
            if code == OPTION_COMMENT:
                yield value


def _parsed_share(comment: bytes) -> float | None:
    if not comment.startswith(_SHARE_PREFIX):
        return None
    try:
        share = json.loads(comment[len(_SHARE_PREFIX) :])[_SHARE]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return float(share) if type(share) in {int, float} and 0 < share < 1 else None


_FILTER_PREFIX: Final = b"flexwire: captured of all frames: "
_ANY: Final = "*"
MOST_FILTER_BYTES: Final = 3000
"""The filter's comment must fit into the first bytes of a file, where readers search for it."""


@dataclass(frozen=True)
class CaptureFilter:
    """The captured requests, with their responses: those that match every given list.

    ``apis`` are names such as "Produce". In ``client_ids`` and ``topics`` a ``*`` stands for any
    text, and a request without a client id counts as having an empty one. Raises `ArgumentError`.

    >>> print(CaptureFilter(apis=("Fetch", "Produce"), topics=("orders-*",)))
    APIs Fetch, Produce; topics orders-*
    """

    apis: tuple[str, ...] = ()
    client_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for criterion in fields(self):
            given = getattr(self, criterion.name)
            if not isinstance(given, tuple) or not all(isinstance(text, str) for text in given):
                raise refuse(criterion.name, "texts in a tuple", given)
            if "".join(given).encode(errors="ignore").decode() != "".join(given):
                raise refuse(criterion.name, "texts that have UTF-8", given)
        if len(filter_comment(self)) > MOST_FILTER_BYTES:
            raise ArgumentError(f"expected a filter of at most {MOST_FILTER_BYTES} bytes as JSON")

    def __bool__(self) -> bool:
        """Return whether anything is left out."""
        return bool(self.apis or self.client_ids or self.topics)

    def __str__(self) -> str:
        """Return the filter in words."""
        named = ("APIs", self.apis), ("client ids", self.client_ids), ("topics", self.topics)
        return "; ".join(f"{name} {', '.join(given)}" for name, given in named if given)

    def takes_api(self, name: str) -> bool:
        """Return whether requests of the API may be captured."""
        return not self.apis or name in self.apis

    def takes_client(self, client_id: str | None) -> bool:
        """Return whether requests with the client id may be captured."""
        return not self.client_ids or _fits(client_id or "", self._client_parts)

    def takes_topic(self, topic: str) -> bool:
        """Return whether requests about the topic may be captured."""
        return not self.topics or _fits(topic, self._topic_parts)

    @cached_property
    def _client_parts(self) -> list[list[str]]:
        return [text.split(_ANY) for text in self.client_ids]

    @cached_property
    def _topic_parts(self) -> list[list[str]]:
        return [text.split(_ANY) for text in self.topics]


class CapturedPart(NamedTuple):
    """The part that a capture file holds: a share of connections, or some frames.

    ``only`` is empty if all frames of these connections are in the file.
    """

    share: float = 1.0
    only: str = ""


def filter_comment(only: CaptureFilter) -> bytes:
    """Return the comment that says which frames are captured.

    >>> filter_comment(CaptureFilter(topics=("orders",)))
    b'flexwire: captured of all frames: {"topics": ["orders"]}'
    """
    said = {criterion.name: getattr(only, criterion.name) for criterion in fields(only)}
    return (
        _FILTER_PREFIX + json.dumps({name: given for name, given in said.items() if given}).encode()
    )


ALL_FRAMES: Final = CaptureFilter()
"""The filter that leaves nothing out."""


def part_in(file: BufferedReader[Any]) -> CapturedPart | None:
    """Return the part of the traffic that an open file declares; None if it declares none.

    A damaged file returns None. The next reader finds the damage.
    """
    share = share_in(file)
    only = next(
        (parsed for comment in comments_in(file) if (parsed := _parsed_filter(comment))), None
    )
    if share is None and only is None:
        return None
    return CapturedPart(1.0 if share is None else share, str(only or ""))


def _parsed_filter(comment: bytes) -> CaptureFilter | None:
    """Return the filter that a comment names; None if somebody else wrote the comment."""
    if not comment.startswith(_FILTER_PREFIX):
        return None
    try:
        said = json.loads(comment[len(_FILTER_PREFIX) :])
        return CaptureFilter(**{name: tuple(given) for name, given in said.items()})
    except (ValueError, TypeError, AttributeError, RecursionError, ArgumentError):
        return None


def _fits(text: str, patterns: list[list[str]]) -> bool:
    """Return whether a text matches a pattern, given as its parts between the wildcards."""
    return any(_is_one(text, *parts) for parts in patterns)


def _is_one(text: str, first: str, *others: str) -> bool:
    # This is not a regular expression, which with several stars would try a client's text in too
    # many ways.
    if not others:
        return text == first
    *between, last = others
    start, end = len(first), len(text) - len(last)
    if start > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in between:
        index = text.find(part, start, end)
        if index < 0:
            return False
        start = index + len(part)
    return True


MOST_HEADER_TAGS: Final = 16
"""A tap adds no more tags, so that one comment holds them all where readers search for it."""
_STAMP_PREFIX: Final = b"flexwire: sent on with header tags: "
_TAGS_PREFIX: Final = b"flexwire: captured of a tap that adds header tags: "
_CORRELATION_ID: Final = "correlation_id"
_TAGS: Final = "tags"


class Stamp(NamedTuple):
    """Tags that a tap added to the header of one request, and the request's connection."""

    timestamp_us: int
    client: str
    broker: str
    correlation_id: int
    tags: dict[int, bytes]


def stamp_comment(correlation_id: int, tags: Mapping[int, bytes]) -> bytes:
    """Return the comment that lists the tags that a request was sent on with, in hexadecimal.

    >>> stamp_comment(7, {10042: b"hi"})
    b'flexwire: sent on with header tags: {"correlation_id": 7, "tags": {"10042": "6869"}}'
    """
    said = {_CORRELATION_ID: correlation_id, _TAGS: {tag: tags[tag].hex() for tag in sorted(tags)}}
    return _STAMP_PREFIX + json.dumps(said).encode()


def added_tags_comment(tags: Iterable[int]) -> bytes:
    """Return the comment that says which tags the tap of a file adds to requests.

    >>> added_tags_comment([10043, 10042])
    b'flexwire: captured of a tap that adds header tags: {"tags": [10042, 10043]}'
    """
    return _TAGS_PREFIX + json.dumps({_TAGS: sorted(tags)}).encode()


def added_tags_in(file: BufferedReader[Any]) -> tuple[int, ...]:
    """Return the tags that the tap of an open file adds, in ascending order, without reading on.

    Empty if it says nothing: then no tap wrote it, or a tap without tags, or an older tap. A
    damaged file has no tags. The next reader finds the damage.
    """
    return next((parsed for said in comments_in(file) if (parsed := _parsed_tags(said))), ())


def _parsed_tags(comment: bytes) -> tuple[int, ...]:
    """Return the tags that a comment names; none if somebody else wrote the comment."""
    if not comment.startswith(_TAGS_PREFIX):
        return ()
    try:
        tags = json.loads(comment[len(_TAGS_PREFIX) :])[_TAGS]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
    if type(tags) is not list or len(tags) > MOST_HEADER_TAGS:
        return ()
    is_ours = all(type(tag) is int and 0 <= tag <= HIGHEST_TAG for tag in tags)
    return tuple(sorted(set(tags))) if is_ours else ()


def read_stamps(path: Path) -> Iterator[Stamp]:
    """Yield the stamped requests of a capture file, in order; other packets yield nothing.

    Raises `CaptureError` for a file that is not a capture.
    """
    for timestamp_us, source, destination, said in _said_in(read_packets(path), _parsed_stamp):
        yield Stamp(timestamp_us, source, destination, *said)


_Said = TypeVar("_Said")


def _said_in(
    packets: Iterable[CapturedPacket | UnreadableBytes], parse: Callable[[bytes], _Said | None]
) -> Iterator[tuple[int, str, str, _Said]]:
    """Yield the statements in packet comments, with the packet's time, source and destination."""
    for packet in packets:
        if isinstance(packet, UnreadableBytes):
            continue
        said = [parsed for comment in packet.comments if (parsed := parse(comment)) is not None]
        if not said:
            continue
        try:
            segment = read_segment(packet)
        except (Skipped, UnreadablePacketError):
            continue
        for parsed in said:
            yield packet.timestamp_us, segment.source, segment.destination, parsed


def _parsed_stamp(comment: bytes) -> tuple[int, dict[int, bytes]] | None:
    """Return the request and tags that a comment names; None if somebody else wrote it."""
    if not comment.startswith(_STAMP_PREFIX):
        return None
    try:
        said = json.loads(comment[len(_STAMP_PREFIX) :])
        correlation_id = said[_CORRELATION_ID]
        tags = {int(tag): bytes.fromhex(value) for tag, value in said[_TAGS].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_ours = type(correlation_id) is int and INT32_MIN <= correlation_id <= INT32_MAX
    return (correlation_id, tags) if is_ours and all(0 <= t <= HIGHEST_TAG for t in tags) else None


_REHEARSAL_PREFIX: Final = b"flexwire: rehearsed: "
_REHEARSING_PREFIX: Final = b"flexwire: captured of a tap that rehearses: "
_RELEASE: Final = "release"
_DID: Final = "did"
_REQUEST: Final = "request"
_CLIENT_ID: Final = "client_id"
_DONE: Final = ("narrowed", "sent on", "unsupported", "closed")
MOST_CLIENT_ID: Final = 200
"""A comment has at most this many characters of a client id."""


class RehearsedRequest(NamedTuple):
    """The action of a rehearsing tap on one request, and the request's connection.

    ``did`` is "narrowed" if versions were removed from its response, "sent on" if it was sent on in
    the broker's version, "unsupported" if the tap answered it, and "closed" if the tap closed the
    connection. ``request`` is its API and version, such as "Produce v2"; None if it was not read.
    ``client_id`` has at most `MOST_CLIENT_ID` characters.
    """

    timestamp_us: int
    client: str
    broker: str
    correlation_id: int
    release: str
    did: str
    request: str | None = None
    client_id: str | None = None


def rehearsing_comment(release: str) -> bytes:
    """Return the comment that says which release the tap of a file rehearses.

    >>> rehearsing_comment("4.4.0")
    b'flexwire: captured of a tap that rehearses: {"release": "4.4.0"}'
    """
    return _REHEARSING_PREFIX + json.dumps({_RELEASE: release}).encode()


def rehearsed_release_in(file: BufferedReader[Any]) -> str | None:
    """Return the release that the tap of an open file rehearses, without reading on.

    None if it says nothing. A damaged file has no release. The next reader finds the damage.
    """
    said = (comment for comment in comments_in(file) if comment.startswith(_REHEARSING_PREFIX))
    for comment in said:
        try:
            release = json.loads(comment[len(_REHEARSING_PREFIX) :])[_RELEASE]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if _is_short(release):
            return str(release)
    return None


def rehearsal_comment(
    correlation_id: int,
    release: str,
    did: str,
    request: str | None = None,
    client_id: str | None = None,
) -> bytes:
    """Return the comment that says what a rehearsal did with a request.

    >>> rehearsal_comment(7, "4.4.0", "closed", "Produce v2")
    b'flexwire: rehearsed: {"correlation_id": 7, "release": "4.4.0", "did": "closed", \
"request": "Produce v2"}'
    """
    said: dict[str, Any] = {_CORRELATION_ID: correlation_id, _RELEASE: release, _DID: did}
    if request is not None:
        said[_REQUEST] = request
    if client_id is not None:
        said[_CLIENT_ID] = client_id[:MOST_CLIENT_ID]
    return _REHEARSAL_PREFIX + json.dumps(said).encode()


def read_rehearsed(path: Path) -> Iterator[RehearsedRequest]:
    """Yield the requests of a capture file that a rehearsal changed or refused, in order.

    Raises `CaptureError` for a file that is not a capture.
    """
    return rehearsed_in(read_packets(path))


def rehearsed_in(packets: Iterable[CapturedPacket | UnreadableBytes]) -> Iterator[RehearsedRequest]:
    """Yield the requests among packets that a rehearsal changed or refused, in order."""
    for timestamp_us, source, destination, said in _said_in(packets, _parsed_rehearsal):
        yield RehearsedRequest(timestamp_us, source, destination, *said)


def _parsed_rehearsal(comment: bytes) -> tuple[int, str, str, str | None, str | None] | None:
    """Return the statement of a comment about a request; None if somebody else wrote it."""
    if not comment.startswith(_REHEARSAL_PREFIX):
        return None
    try:
        said = json.loads(comment[len(_REHEARSAL_PREFIX) :])
        correlation_id, release, did = said[_CORRELATION_ID], said[_RELEASE], said[_DID]
        named = said.get(_REQUEST), said.get(_CLIENT_ID)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_ours = type(correlation_id) is int and INT32_MIN <= correlation_id <= INT32_MAX
    is_text = _is_short(release) and did in _DONE
    if not (is_ours and is_text and all(text is None or _is_short(text) for text in named)):
        return None
    return (correlation_id, release, did, *named)


def _is_short(text: object) -> bool:
    return isinstance(text, str) and len(text) <= MOST_CLIENT_ID


_FAULT_PREFIX: Final = b"flexwire: fault: "
_FAULTS_PREFIX: Final = b"flexwire: captured of a tap that breaks requests: "
_FAULT: Final = "fault"
_MOST_SAID: Final = 1000


class FaultedFrame(NamedTuple):
    """The fault that a tap applied to one request or response, and the frame's connection.

    ``fault`` is the fault as the user wrote it, "Fetch delay=2s 5%". ``did`` says what was done,
    and begins with "not possible" if nothing was done. ``source`` sent the frame. A fault on a
    request was done after the client sent it and before the broker received it.
    """

    timestamp_us: int
    source: str
    destination: str
    correlation_id: int
    fault: str
    did: str


def faults_comment(faults: Iterable[str], seed: int) -> bytes:
    """Return the comment that lists the faults of a file's tap, as far as there is room.

    >>> faults_comment(["Fetch stale"], 7)
    b'flexwire: captured of a tap that breaks requests: {"seed": 7, "faults": ["Fetch stale"]}'
    """
    said: list[str] = []
    for fault in faults:
        if sum(map(len, said)) + len(fault) > _MOST_SAID:
            said.append("…")
            break
        said.append(fault)
    return _FAULTS_PREFIX + json.dumps({"seed": seed, "faults": said}).encode()


def fault_comment(correlation_id: int, fault: str, did: str) -> bytes:
    """Return the comment that says what a fault did with a request or response.

    >>> fault_comment(7, "Fetch delay=2s 5%", "delayed")
    b'flexwire: fault: {"correlation_id": 7, "fault": "Fetch delay=2s 5%", "did": "delayed"}'
    """
    said = {_CORRELATION_ID: correlation_id, _FAULT: fault, _DID: did[:_MOST_SAID]}
    return _FAULT_PREFIX + json.dumps(said).encode()


def read_faulted(path: Path) -> Iterator[FaultedFrame]:
    """Yield the frames of a capture file with which a fault was done, in order.

    Raises `CaptureError` for a file that is not a capture.
    """
    for timestamp_us, source, destination, said in _said_in(read_packets(path), _parsed_fault):
        yield FaultedFrame(timestamp_us, source, destination, *said)


def _parsed_fault(comment: bytes) -> tuple[int, str, str] | None:
    """Return the statement of a comment about a frame; None if somebody else wrote it."""
    if not comment.startswith(_FAULT_PREFIX):
        return None
    try:
        said = json.loads(comment[len(_FAULT_PREFIX) :])
        correlation_id, fault, did = said[_CORRELATION_ID], said[_FAULT], said[_DID]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_ours = type(correlation_id) is int and INT32_MIN <= correlation_id <= INT32_MAX
    if not is_ours or not all(isinstance(text, str) for text in (fault, did)):
        return None
    return correlation_id, fault[:_MOST_SAID], did[:_MOST_SAID]
