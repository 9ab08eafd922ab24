"""Log lines that a peer or a failure could repeat without limit: one a second, with a count."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

SECONDS: Final = 1.0
"""The time between two lines of one kind."""


class _OmittedLines(NamedTuple):
    """The lines of a kind that were not logged since the last one, and their level."""

    level: int
    things: int


class LogLimiter:
    """Logs a line of each kind at most every `SECONDS`, and how many it left out.

    There are few kinds, because the connection or the reason is in the text. The next line of the
    same kind counts the omitted lines. If no such line comes, a separate line reports the count
    after a second. Without an event loop, `close` reports it.
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._silent_until: dict[str, float] = {}
        self._left: dict[str, _OmittedLines] = {}
        self._telling: dict[str, asyncio.TimerHandle] = {}

    def say(
        self,
        level: int,
        kind: str,
        text: str,
        *,
        count: int = 1,
        error: BaseException | None = None,
    ) -> None:
        """Log a text for ``count`` events, with the traceback of ``error``."""
        if not self._log.isEnabledFor(level):
            return
        now = self._clock()
        until = self._silent_until.get(kind, now)
        left = self._left.pop(kind, _OmittedLines(level, 0))
        if now < until:
            self._left[kind] = _OmittedLines(max(level, left.level), left.things + count)
            self._tell_later(kind, until - now)
            return
        self._silent_until[kind] = now + SECONDS
        more = f" (and {left.things:,} more before it)" if left.things else ""
        self._log.log(level, "%s%s", text, more, exc_info=error)

    def close(self) -> None:
        """Log the counts of omitted lines."""
        for kind in list(self._left):
            self._tell(kind)

    def _tell_later(self, kind: str, seconds: float) -> None:
        if kind in self._telling:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # No event loop would call later, so the next line reports it, or `close`.
            return
        self._telling[kind] = loop.call_later(seconds, self._tell, kind)

    def _tell(self, kind: str) -> None:
        telling = self._telling.pop(kind, None)
        if telling is not None:
            telling.cancel()
        left = self._left.pop(kind, None)
        if left is not None:
            self._silent_until[kind] = self._clock() + SECONDS
            self._log.log(left.level, "%s: %s more", kind, f"{left.things:,}")
