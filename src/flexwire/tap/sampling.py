"""Which connections a tap captures where not all are, and what stands in for those that are not."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.files.pcapng import Direction
    from flexwire.tap.statistics import TapStatistics

_OF: Final = 1 << 53


def check_share(share: float) -> float:
    """Give a share of connections back; `ArgumentError` unless it is above 0 and at most 1."""
    if not 0 < share <= 1:
        raise ArgumentError(f"expected a share above 0 and at most 1, got {share}")
    return share


def is_drawn(share: float) -> bool:
    """Whether the next connection is captured: drawn anew for each, so that no pattern is."""
    return secrets.randbelow(_OF) < share * _OF


@dataclass(slots=True)
class Uncaptured:
    """In the place of a connection's capture where there is none: counts, and keeps nothing."""

    statistics: TapStatistics

    def send(
        self,
        direction: Direction,  # noqa: ARG002  # as a capture takes it
        data: bytes,
        timestamp_us: int | None = None,  # noqa: ARG002  # the same
        *,
        frames: int = 1,
        comments: Sequence[bytes] = (),  # noqa: ARG002  # the same
    ) -> None:
        """Count what passes."""
        if data:
            self.statistics.unsampled_frames += frames
            self.statistics.unsampled_bytes += len(data)

    def send_beginning(
        self, direction: Direction, data: bytes, missing: int, timestamp_us: int | None = None
    ) -> None:
        """Count what passes of a frame that was not kept whole."""
        self.send(direction, data, timestamp_us)
        self.statistics.unsampled_bytes += missing

    def close(self, *, reset: bool = False, by_broker: bool = False) -> None:
        """Nothing is to be ended."""
