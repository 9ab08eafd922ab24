"""The log of a partition in one directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.storage.filesystems import shown

if TYPE_CHECKING:
    from flexwire.logs.names import Partition
    from flexwire.logs.segment import Segment
    from flexwire.storage.source import Source


@dataclass(frozen=True, slots=True)
class Replica:
    """The log of a partition in one directory: its segments in order, and producer snapshots.

    ``later_transactions`` are indexes of segments after these, where not all of a log was named.
    The records before ``start`` were deleted.
    """

    partition: Partition
    directory: str
    is_tiered: bool
    segments: tuple[Segment, ...]
    snapshots: tuple[tuple[int, Source], ...] = ()
    later_transactions: tuple[Source, ...] = ()
    start: int = 0

    @property
    def first(self) -> int:
        """The first offset that it may have."""
        return max(self.segments[0].base_offset, self.start)

    @property
    def beside(self) -> str:
        """The directory of all logs that this one is in."""
        return self.directory.rstrip("/").rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.partition} in {shown(self.directory)}"
