"""What the facts say of TLS connections, where an analysis was given key logs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TlsReason:
    """Why connections were not opened, or not to their end, and how many."""

    reason: str
    connections: int


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """The TLS connections of all captures, by what became of them.

    ``opened`` were opened from handshake to end, ``partly`` up to some record, ``unopened`` not at
    all: these are in the tables as they were captured. The rarest of very many reasons are left
    out, so ``partly_opened`` and ``not_opened`` say how many there are. ``lost_bytes`` of what was
    sent are missing from the captures, ``unread_bytes`` of TLS came after the last record that
    opened. ``sources`` may be the first of ``source_files``.
    """

    opened: int
    partly_opened: int = 0
    not_opened: int = 0
    partly: tuple[TlsReason, ...] = ()
    unopened: tuple[TlsReason, ...] = ()
    plain_bytes: int = 0
    lost_bytes: int = 0
    unread_bytes: int = 0
    damaged_places: int = 0
    sources: tuple[str, ...] = ()
    source_files: int = 0
