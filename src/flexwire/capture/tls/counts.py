"""What became of the TLS connections of captures: how many were opened, and why others were not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.capture.files.model import Unreadable


@dataclass(slots=True)
class TlsCounts:
    """Connections of TLS by what became of them; every one is in exactly one of the three.

    ``opened`` were opened from their handshake on, ``partly`` up to some record, by the reason why
    not further; ``unopened`` not at all, by the reason, and these stay as they were captured.
    ``lost_bytes`` of what was sent in those that were opened are not in the capture, after
    ``unread_bytes`` of TLS nothing opened any more. ``stray_packets`` came after a connection had
    ended, or are of none, and are left out.
    """

    opened: int = 0
    partly: Counter[str] = field(default_factory=Counter)
    unopened: Counter[str] = field(default_factory=Counter)
    plain_bytes: int = 0
    lost_bytes: int = 0
    unread_bytes: int = 0
    stray_packets: int = 0
    packets: int = 0
    damaged: list[Unreadable] = field(default_factory=list)
    """Where files break off, or have what cannot be read."""

    @property
    def connections(self) -> int:
        """All that are TLS."""
        return self.opened + self.partly.total() + self.unopened.total()

    def lines(self) -> list[str]:
        """What became of them, for a terminal."""
        others = f"{self.partly.total():,} in part, {self.unopened.total():,} not"
        sent = f"{self.plain_bytes:,} bytes were sent in them"
        told = [f"TLS connections: {self.opened:,} opened, {others}; {sent}"]
        for how, reasons in (("opened in part", self.partly), ("not opened", self.unopened)):
            told += [f"  {count:,} {how}: {reason}" for reason, count in reasons.most_common(20)]
        if self.damaged:
            first = self.damaged[0]
            told.append(
                f"  {len(self.damaged):,} places in the captures cannot be read, the first at byte "
                f"{first.offset:,} of {first.source}: {first.reason}"
            )
        return told
