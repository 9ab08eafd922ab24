"""Memory that is used again: pages that were touched before cost nothing to touch.

A column's first bytes cost more than all that a kernel does with them, because the system gives new
memory page by page. So memory whose columns nobody holds any more goes to the next columns.
"""

from __future__ import annotations

import weakref
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    Words = np.ndarray[Any, Any]

# Less than this is not worth it, and what is held without use is bounded.
_LEAST = 1 << 16
MOST_HELD = 256 << 20
"""Bytes."""


class Pool:
    """Rooms of a power of two of bytes, given out and taken back by any thread."""

    def __init__(self) -> None:
        self._free: dict[int, list[Words]] = {}
        self._held = 0
        # Taking back may happen within taking, when a collection frees columns then.
        self._lock = Lock()

    @property
    def held(self) -> int:
        """How many bytes wait to be used again."""
        return self._held

    def take(self, size: int) -> Words:
        """Give a room of as many bytes at least, with anything in it.

        It is used again once this very array, and all that `buffer_of` made of it, is gone.
        """
        if size < _LEAST:
            return np.empty(max(size, 8), np.uint8)
        bits = (size - 1).bit_length()
        room = self._reuse(bits)
        if room is None:
            room = np.empty(1 << bits, np.uint8)
        view = room[:]
        weakref.finalize(view, self._give_back, bits, room).atexit = False
        return view

    def _reuse(self, bits: int) -> Words | None:
        rooms = self._free.get(bits)
        try:
            room = rooms.pop() if rooms else None
        except IndexError:
            # Another thread took the last one.
            return None
        if room is not None:
            with self._lock:
                self._held -= len(room)
        return room

    def _give_back(self, bits: int, room: Words) -> None:
        if self._held + len(room) <= MOST_HELD and self._lock.acquire(blocking=False):
            self._held += len(room)
            self._lock.release()
            self._free.setdefault(bits, []).append(room)


POOL = Pool()


def buffer_of(room: Words, size: int, *, kept: bool = False) -> pa.Buffer:
    """Give the first bytes of a room as Arrow has them.

    Where they are ``kept``, they are copied if the rest of the room would be kept for nothing.
    """
    if kept and len(room) > size + size // 8 + 4096:
        return pa.py_buffer(room[:size].copy())
    return pa.py_buffer(room).slice(0, size)
