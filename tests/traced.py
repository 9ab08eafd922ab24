"""Measure how much memory a block in a test takes, according to `tracemalloc`."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Traced:
    """The memory that has been allocated since tracing began."""

    def __init__(self) -> None:
        self._last = (0, 0)

    @property
    def held(self) -> int:
        """Return how many bytes are in use, or were in use when tracing ended."""
        return self._now()[0]

    @property
    def most(self) -> int:
        """Return the peak number of bytes in use."""
        return self._now()[1]

    def _now(self) -> tuple[int, int]:
        if tracemalloc.is_tracing():
            self._last = tracemalloc.get_traced_memory()
        return self._last


@contextmanager
def traced() -> Iterator[Traced]:
    """Trace memory only until the block ends, even if it fails: tracing slows the process."""
    assert not tracemalloc.is_tracing(), "another test left its tracing on"
    memory = Traced()
    tracemalloc.start()
    try:
        yield memory
    finally:
        memory._now()
        tracemalloc.stop()
