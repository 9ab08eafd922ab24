"""What is told of a capture file besides its segments: its packets, and those of no use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.errors import CaptureError

# So many different reasons of one file are told apart: a hostile file invents them.
DIFFERENT_REASONS = 1000
FURTHER_REASONS = "further reasons"


@dataclass(slots=True)
class UnusedPackets:
    """How many packets of a file were not used, by reason, and the first bytes of one of each."""

    packets: dict[str, int] = field(default_factory=dict)
    samples: dict[str, bytes] = field(default_factory=dict)

    def add(self, reason: str, packets: int, sample: bytes | None = None) -> None:
        """Count packets; what is one reason too many is counted as FURTHER_REASONS."""
        if reason not in self.packets and len(self.packets) >= DIFFERENT_REASONS:
            reason = FURTHER_REASONS
        if sample:
            self.samples.setdefault(reason, sample)
        self.packets[reason] = self.packets.get(reason, 0) + packets

    def add_all(self, others: UnusedPackets) -> None:
        """Count what others hold, in their order."""
        for reason, packets in others.packets.items():
            self.add(reason, packets, others.samples.get(reason))

    def know(self, reasons: Iterable[str]) -> None:
        """Tell these reasons apart from others, as earlier packets of the file had them."""
        self.packets.update(dict.fromkeys(reasons, 0))

    def counted(self) -> UnusedPackets:
        """Give only the reasons that packets were counted for."""
        counted = {reason: packets for reason, packets in self.packets.items() if packets}
        return UnusedPackets(counted, self.samples)


@dataclass(slots=True)
class FileNotes:
    """What is told of a capture file, or of a part of it, once that is read.

    ``packets`` are all of them. ``unreadable`` holds packets and places that should give a segment
    and do not, ``skipped`` packets that hold something else. ``error`` is why the file cannot be
    read at all.
    """

    file: str
    packets: int = 0
    unreadable: UnusedPackets = field(default_factory=UnusedPackets)
    skipped: UnusedPackets = field(default_factory=UnusedPackets)
    error: CaptureError | None = None

    def unused(self) -> UnusedPackets:
        """Give both kinds together, as the notes of an analysis have them."""
        together = UnusedPackets()
        together.add_all(self.unreadable)
        if self.error is not None:
            together.add(self.error.reason, 0)
        together.add_all(self.skipped)
        return together

    def add(self, later: FileNotes) -> None:
        """Take in the notes of the part of the file that follows."""
        self.packets += later.packets
        self.unreadable.add_all(later.unreadable)
        self.skipped.add_all(later.skipped)
        self.error = self.error or later.error
