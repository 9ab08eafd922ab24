"""Make captures and frames for the tests of the activity modules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.activity.growing import GrowingCaptures
from flexwire.activity.reading import ActivityReader
from flexwire.capture.reassembly.connections import CapturedFrame
from tests.capture.traffic import CONNECTION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.files.packets import Direction

VECTORS = Path(__file__).parents[1] / "vectors" / "captures"
CAPTURES = ("everything", "hosts", "strange")


def capture_files(name: str) -> list[Path]:
    """Return the files of a capture in the repository."""
    return sorted((VECTORS / name).glob("*.pcap*"))


def listed(paths: Iterable[Path]) -> ActivityReader:
    """Read whole captures, and return the reader that lists their connections."""
    reader = ActivityReader()
    reader.read(GrowingCaptures(paths).poll(must_exist=True))
    reader.finish()
    return reader


def frame_of(
    direction: Direction, payload: bytes, at_us: int = 0, connection: str = CONNECTION
) -> CapturedFrame:
    """Return a frame with this payload, in a connection and a direction."""
    return CapturedFrame(connection, direction, at_us, at_us, 0, len(payload) + 4, payload)
