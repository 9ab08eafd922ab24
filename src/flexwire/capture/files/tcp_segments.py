"""Reads the TCP segments of a capture file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.capture.files.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.files.model import SAMPLE_BYTES, Segment, SegmentCounts, Unreadable
from flexwire.capture.files.reading import read_packets

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from flexwire.capture.files.model import CapturedPacket

__all__ = ["Segment", "SegmentCounts", "Unreadable", "read_segments"]


def read_segments(
    path: str | os.PathLike[str], counts: SegmentCounts | None = None
) -> Iterator[Segment | Unreadable]:
    """The TCP segments of a pcap or pcapng file (gzip'd or not), in the file's order.

    Packets that hold no TCP segment are counted in ``counts.skipped`` by what they are; packets
    whose segment cannot be read are `Unreadable`, and so is the place where a damaged file breaks
    off. `CaptureError` if the file cannot be opened or is not a capture file.
    """
    counts = SegmentCounts() if counts is None else counts
    source = str(path)
    for item in read_packets(Path(path)):
        if isinstance(item, Unreadable):
            yield item
            continue
        counts.packets += 1
        try:
            segment = read_segment(item)
        except Skipped as skipped:
            counts.skipped[str(skipped)] += 1
        except UnreadablePacketError as error:
            counts.unreadable_packets += 1
            yield unreadable_packet(source, item, error)
        else:
            counts.segments += 1
            yield segment


def unreadable_packet(
    source: str, packet: CapturedPacket, error: UnreadablePacketError
) -> Unreadable:
    """What is told of a packet that should hold a segment and gives none."""
    sample = packet.data[:SAMPLE_BYTES]
    return Unreadable(
        source, packet.offset, str(error), packet.timestamp_us, sample, len(packet.data)
    )
