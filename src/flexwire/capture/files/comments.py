"""Comments in a capture: its filter, its share of connections, and the tags that its tap added.

A comment on the section header of each file contains the filter and the share. Wireshark shows this
comment in the file's properties, and readers see it before the first packet. As a result, nobody
can mistake a part of the traffic for all of it.

A tap captures what a client sent. If the tap adds tags to request headers, these tags are the only
difference between the captured bytes and the bytes that it forwards. The tags are recorded in a
comment on the packet in which the request begins, or on the first packet if several requests
arrived together. The capture therefore contains both forms of the request. No byte is counted
twice, and Wireshark shows the tags. A comment on the section header of each file lists the tags
without their values. The requests in a capture between the tap and the brokers also contain these
tags, and nothing distinguishes them from a client's own tags.
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
"""Only this many bytes at the start of a file are searched, because a tap writes its comment as the
first option.
"""
_SHARE_PREFIX: Final = b"flexwire: captured of all connections: "
_SHARE: Final = "share"
_OPTIONS_AT: Final = 24


def sampling_comment(share: float) -> bytes:
    """Return the comment that states which share of connections is captured.

    >>> sampling_comment(0.1)
    b'flexwire: captured of all connections: {"share": 0.1}'
    """
    return _SHARE_PREFIX + json.dumps({_SHARE: share}).encode()


def share_in(file: BufferedReader[Any]) -> float | None:
    """Return the share of connections that an open file states, or None. Only its head is read.

    For a damaged file, the result is None, and the next reader reports the damage.
    """
    return next(
        (parsed for said in comments_in(file) if (parsed := _parsed_share(said)) is not None), None
    )


def comments_in(file: BufferedReader[Any]) -> Iterator[bytes]:
    """Yield the comments on the first section header of an open file. The rest is not read."""
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
"""The comment with the filter must fit into the first bytes of a file, where readers look for it.
"""


@dataclass(frozen=True)
class CaptureFilter:
    """A filter for requests and their responses: a request must match every list that is given.

    ``apis`` contains names such as "Produce". In ``client_ids`` and ``topics``, a ``*`` stands for
    any text. A request without a client id is treated as a request with an empty client id. Raises
    `ArgumentError` for an invalid list.

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
                raise refuse(criterion.name, "a tuple of strings", given)
            if "".join(given).encode(errors="ignore").decode() != "".join(given):
                raise refuse(criterion.name, "strings that UTF-8 can encode", given)
        if len(filter_comment(self)) > MOST_FILTER_BYTES:
            raise ArgumentError(
                f"the filter is too long: its JSON is limited to {MOST_FILTER_BYTES} bytes"
            )

    def __bool__(self) -> bool:
        """Return whether the filter leaves any frames out."""
        return bool(self.apis or self.client_ids or self.topics)

    def __str__(self) -> str:
        """Return a description of the filter in words."""
        named = ("APIs", self.apis), ("client ids", self.client_ids), ("topics", self.topics)
        return "; ".join(f"{name} {', '.join(given)}" for name, given in named if given)

    def takes_api(self, name: str) -> bool:
        """Return whether requests of this API may be captured."""
        return not self.apis or name in self.apis

    def takes_client(self, client_id: str | None) -> bool:
        """Return whether requests with this client id may be captured."""
        return not self.client_ids or _fits(client_id or "", self._client_parts)

    def takes_topic(self, topic: str) -> bool:
        """Return whether requests about this topic may be captured."""
        return not self.topics or _fits(topic, self._topic_parts)

    @cached_property
    def _client_parts(self) -> list[list[str]]:
        return [text.split(_ANY) for text in self.client_ids]

    @cached_property
    def _topic_parts(self) -> list[list[str]]:
        return [text.split(_ANY) for text in self.topics]


class CapturedPart(NamedTuple):
    """The part of the traffic in a capture file: a share of the connections, or some of the frames.

    ``only`` is empty if the file contains all frames of these connections.
    """

    share: float = 1.0
    only: str = ""


def filter_comment(only: CaptureFilter) -> bytes:
    """Return the comment that contains the filter of the captured frames.

    >>> filter_comment(CaptureFilter(topics=("orders",)))
    b'flexwire: captured of all frames: {"topics": ["orders"]}'
    """
    said = {criterion.name: getattr(only, criterion.name) for criterion in fields(only)}
    return (
        _FILTER_PREFIX + json.dumps({name: given for name, given in said.items() if given}).encode()
    )


ALL_FRAMES: Final = CaptureFilter()
"""The filter that excludes nothing."""


def part_in(file: BufferedReader[Any]) -> CapturedPart | None:
    """Return the part of the traffic that an open file claims to contain, or None without a claim.

    For a damaged file, the result is None, and the next reader reports the damage.
    """
    share = share_in(file)
    only = next(
        (parsed for comment in comments_in(file) if (parsed := _parsed_filter(comment))), None
    )
    if share is None and only is None:
        return None
    return CapturedPart(1.0 if share is None else share, str(only or ""))


def _parsed_filter(comment: bytes) -> CaptureFilter | None:
    """Return the filter in a comment, or None if another program wrote the comment."""
    if not comment.startswith(_FILTER_PREFIX):
        return None
    try:
        said = json.loads(comment[len(_FILTER_PREFIX) :])
        return CaptureFilter(**{name: tuple(given) for name, given in said.items()})
    except (ValueError, TypeError, AttributeError, RecursionError, ArgumentError):
        return None


def _fits(text: str, patterns: list[list[str]]) -> bool:
    """Return whether a string matches a pattern, given as the parts between its wildcards."""
    return any(_is_one(text, *parts) for parts in patterns)


def _is_one(text: str, first: str, *others: str) -> bool:
    # With several stars, a regular expression would try too many ways to match a string from a
    # client.
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
"""The largest number of tags that a tap adds. With this limit, one comment has room for all tags
within the bytes that readers search.
"""
_STAMP_PREFIX: Final = b"flexwire: sent on with header tags: "
_TAGS_PREFIX: Final = b"flexwire: captured of a tap that adds header tags: "
_CORRELATION_ID: Final = "correlation_id"
_TAGS: Final = "tags"


class Stamp(NamedTuple):
    """The tags that a tap added to the header of one request, and the request's connection."""

    timestamp_us: int
    client: str
    broker: str
    correlation_id: int
    tags: dict[int, bytes]


def stamp_comment(correlation_id: int, tags: Mapping[int, bytes]) -> bytes:
    """Return the comment that lists the tags added to a request, in hexadecimal.

    >>> stamp_comment(7, {10042: b"hi"})
    b'flexwire: sent on with header tags: {"correlation_id": 7, "tags": {"10042": "6869"}}'
    """
    said = {_CORRELATION_ID: correlation_id, _TAGS: {tag: tags[tag].hex() for tag in sorted(tags)}}
    return _STAMP_PREFIX + json.dumps(said).encode()


def added_tags_comment(tags: Iterable[int]) -> bytes:
    """Return the comment that lists the tags that the tap adds to requests.

    >>> added_tags_comment([10043, 10042])
    b'flexwire: captured of a tap that adds header tags: {"tags": [10042, 10043]}'
    """
    return _TAGS_PREFIX + json.dumps({_TAGS: sorted(tags)}).encode()


def added_tags_in(file: BufferedReader[Any]) -> tuple[int, ...]:
    """Return the tags that an open file's tap adds, in ascending order. Only the head is read.

    The result is empty if the file has no such comment. In this case, the file was written by
    another program, by a tap that adds no tags, or by an older tap. The result is also empty for a
    damaged file; the next reader reports the damage.
    """
    return next((parsed for said in comments_in(file) if (parsed := _parsed_tags(said))), ())


def _parsed_tags(comment: bytes) -> tuple[int, ...]:
    """Return the tags in a comment. The result is empty if another program wrote the comment."""
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
    """Yield the requests in a capture file to which a tap added tags, in order.

    Raises `CaptureError` for a file that is not a capture.
    """
    for timestamp_us, source, destination, said in _said_in(read_packets(path), _parsed_stamp):
        yield Stamp(timestamp_us, source, destination, *said)


_Said = TypeVar("_Said")


def _said_in(
    packets: Iterable[CapturedPacket | UnreadableBytes], parse: Callable[[bytes], _Said | None]
) -> Iterator[tuple[int, str, str, _Said]]:
    """Yield the statements in packet comments, each with its time, source and destination."""
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
    """Return the request and the tags in a comment, or None if another program wrote it."""
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
"""The largest number of characters of a client id that a comment contains."""


class RehearsedRequest(NamedTuple):
    """The action that a rehearsing tap took for one request, and the request's connection.

    ``did`` is "narrowed" if versions were removed from the response, "sent on" if the request was
    forwarded in one of the broker's versions, "unsupported" if the tap answered it, and "closed" if
    the tap closed the connection. ``request`` is the API and version of the request, such as
    "Produce v2", or None if the tap could not read it. ``client_id`` contains at most
    `MOST_CLIENT_ID` characters.
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
    """Return the comment that states which release the tap rehearses.

    >>> rehearsing_comment("4.4.0")
    b'flexwire: captured of a tap that rehearses: {"release": "4.4.0"}'
    """
    return _REHEARSING_PREFIX + json.dumps({_RELEASE: release}).encode()


def rehearsed_release_in(file: BufferedReader[Any]) -> str | None:
    """Return the release that an open file's tap rehearses, or None. Only the head is read.

    The result is None if the file states no release. For a damaged file, the result is also None,
    and the next reader reports the damage.
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
    """Return the comment that describes the tap's action for a request during a rehearsal.

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
    """Yield the requests in a capture file that a rehearsal changed or refused, in order.

    Raises `CaptureError` for a file that is not a capture.
    """
    return rehearsed_in(read_packets(path))


def rehearsed_in(packets: Iterable[CapturedPacket | UnreadableBytes]) -> Iterator[RehearsedRequest]:
    """Yield the requests in some packets that a rehearsal changed or refused, in order."""
    for timestamp_us, source, destination, said in _said_in(packets, _parsed_rehearsal):
        yield RehearsedRequest(timestamp_us, source, destination, *said)


def _parsed_rehearsal(comment: bytes) -> tuple[int, str, str, str | None, str | None] | None:
    """Return the facts about a request in a comment, or None if another program wrote it."""
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
    """A fault that a tap injected into one request or response, and the connection of the frame.

    ``fault`` is the fault as the user specified it, such as "Fetch delay=2s 5%". ``did`` describes
    the effect, and begins with "not possible" if the fault had no effect. ``source`` sent the
    frame. A fault in a request takes effect after the client has sent the request and before the
    broker receives it.
    """

    timestamp_us: int
    source: str
    destination: str
    correlation_id: int
    fault: str
    did: str


def faults_comment(faults: Iterable[str], seed: int) -> bytes:
    """Return the comment that lists the faults of a file's tap, as many as it has room for.

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
    """Return the comment that describes how a fault changed a request or response.

    >>> fault_comment(7, "Fetch delay=2s 5%", "delayed")
    b'flexwire: fault: {"correlation_id": 7, "fault": "Fetch delay=2s 5%", "did": "delayed"}'
    """
    said = {_CORRELATION_ID: correlation_id, _FAULT: fault, _DID: did[:_MOST_SAID]}
    return _FAULT_PREFIX + json.dumps(said).encode()


def read_faulted(path: Path) -> Iterator[FaultedFrame]:
    """Yield the frames in a capture file into which a tap injected a fault, in order.

    Raises `CaptureError` for a file that is not a capture.
    """
    for timestamp_us, source, destination, said in _said_in(read_packets(path), _parsed_fault):
        yield FaultedFrame(timestamp_us, source, destination, *said)


def _parsed_fault(comment: bytes) -> tuple[int, str, str] | None:
    """Return the facts about a frame in a comment, or None if another program wrote it."""
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
