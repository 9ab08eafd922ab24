"""What a tap added to request headers: which tags, and which requests were sent on with them.

A tap captures what a client sent. What it sent on where it stamps request headers differs in these
tags alone, and they stand in comments on the packet with which the request begins, or the first of
several that came together. So both are in the capture, no byte counts twice, and Wireshark shows
the tags. A comment on the section header of each file says which tags these are, without values: a
capture from beyond the tap has them, and nothing in it tells them from a client's own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.files.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.files.model import Unreadable
from flexwire.capture.files.reading import read_packets
from flexwire.capture.files.sampling import comments_in
from flexwire.wire.limits import HIGHEST_TAG, INT32_MAX, INT32_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from io import BufferedReader
    from pathlib import Path

MOST_HEADER_TAGS: Final = 16
"""A tap adds no more, so that a comment with all of them stands where it is looked for."""
_PREFIX: Final = b"flexwire: sent on with header tags: "
_FILE_PREFIX: Final = b"flexwire: captured of a tap that adds header tags: "
_CORRELATION_ID: Final = "correlation_id"
_TAGS: Final = "tags"


class Stamp(NamedTuple):
    """What a tap added to the header of one request of the connection between two ends."""

    timestamp_us: int
    client: str
    broker: str
    correlation_id: int
    tags: dict[int, bytes]


def stamp_comment(correlation_id: int, tags: Mapping[int, bytes]) -> bytes:
    """The comment that says which tags a request was sent on with; values are hexadecimal.

    >>> stamp_comment(7, {10042: b"hi"})
    b'flexwire: sent on with header tags: {"correlation_id": 7, "tags": {"10042": "6869"}}'
    """
    said = {_CORRELATION_ID: correlation_id, _TAGS: {tag: tags[tag].hex() for tag in sorted(tags)}}
    return _PREFIX + json.dumps(said).encode()


def added_tags_comment(tags: Iterable[int]) -> bytes:
    """The comment of a file that says which tags its tap adds to the requests that it sends on.

    >>> added_tags_comment([10043, 10042])
    b'flexwire: captured of a tap that adds header tags: {"tags": [10042, 10043]}'
    """
    return _FILE_PREFIX + json.dumps({_TAGS: sorted(tags)}).encode()


def added_tags_in(file: BufferedReader[Any]) -> tuple[int, ...]:
    """The tags that the tap of an open file adds, as it says, ascending, without reading on.

    None where it says nothing: then no tap wrote it, or one that adds none, or an older one. What
    is damaged says nothing, and whatever reads it next finds the damage.
    """
    return next((one for said in comments_in(file) if (one := _parsed_tags(said))), ())


def _parsed_tags(comment: bytes) -> tuple[int, ...]:
    """What a comment says of a file; nothing where anybody else wrote it."""
    if not comment.startswith(_FILE_PREFIX):
        return ()
    try:
        tags = json.loads(comment[len(_FILE_PREFIX) :])[_TAGS]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
    if type(tags) is not list or len(tags) > MOST_HEADER_TAGS:
        return ()
    is_ours = all(type(one) is int and 0 <= one <= HIGHEST_TAG for one in tags)
    return tuple(sorted(set(tags))) if is_ours else ()


def read_stamps(path: Path) -> Iterator[Stamp]:
    """The stamped requests of a capture file, in order; other packets and comments give nothing.

    Raises `CaptureError` for a file that is not a capture.
    """
    for packet in read_packets(path):
        if isinstance(packet, Unreadable):
            continue
        said = [one for comment in packet.comments if (one := _parsed(comment)) is not None]
        if not said:
            continue
        try:
            segment = read_segment(packet)
        except (Skipped, UnreadablePacketError):
            continue
        for correlation_id, tags in said:
            yield Stamp(
                packet.timestamp_us, segment.source, segment.destination, correlation_id, tags
            )


def _parsed(comment: bytes) -> tuple[int, dict[int, bytes]] | None:
    """What a comment says of a request; None where anybody else wrote it."""
    if not comment.startswith(_PREFIX):
        return None
    try:
        said = json.loads(comment[len(_PREFIX) :])
        correlation_id = said[_CORRELATION_ID]
        tags = {int(tag): bytes.fromhex(value) for tag, value in said[_TAGS].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_ours = type(correlation_id) is int and INT32_MIN <= correlation_id <= INT32_MAX
    return (correlation_id, tags) if is_ours and all(0 <= t <= HIGHEST_TAG for t in tags) else None
