"""Which requests of a capture were sent on with header tags that their clients did not send.

A tap captures what a client sent. What it sent on where it stamps request headers differs in these
tags alone, and they stand in comments on the packet with which the request begins, or the first of
several that came together. So both are in the capture, no byte counts twice, and Wireshark shows
the tags.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.files import read_packets
from flexwire.capture.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.model import Unreadable
from flexwire.wire.limits import HIGHEST_TAG, INT32_MAX, INT32_MIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PREFIX: Final = b"flexwire: sent on with header tags: "
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
