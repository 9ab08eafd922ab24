"""A segment of a log: its file, and the indexes beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.storage.source import Source


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, and of its indexes those there are; what is at ``below`` or after is another's."""

    base_offset: int
    log: Source
    index: Source | None = None
    time_index: Source | None = None
    transaction_index: Source | None = None
    below: int | None = None
