"""Shares of the connections of a capture, for tasks that each read all packets.

A connection goes from file to file, and its bytes have to be taken in order. So where files cannot
be divided, tasks divide the connections.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32


class ConnectionShare(NamedTuple):
    """One ``of`` so many parts of the connections. Each key of them is in exactly one part."""

    number: int
    of: int

    @property
    def has_others(self) -> bool:
        """Whether this part also has the packets of no connection, and counts all packets."""
        return self.number == 0

    @property
    def is_whole(self) -> bool:
        """True if there is only one part."""
        return self.of == 1

    def has(self, key: str) -> bool:
        """Return whether the connections of a key are in this part."""
        return self.is_whole or crc32(key.encode()) % self.of == self.number


WHOLE: Final = ConnectionShare(0, 1)
"""All connections."""
