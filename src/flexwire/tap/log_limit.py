"""Limit log lines that a peer or a failure could repeat to one a second, and count the rest."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

SECONDS: Final = 1.0
"""The time between two log lines of the same kind."""


class _OmittedLines(NamedTuple):
    """The lines of a kind that were omitted since the last logged line, and their level."""

    level: int
    things: int


class LogLimiter:
    """Log a line of each kind at most once every `SECONDS`, with the number of omitted lines.

    There are few kinds, because the connection or the reason is part of the text, not of the kind.
    The next line of the same kind reports how many lines were omitted. If no such line follows, a
    separate line reports the number after a second. Without an event loop, `close` reports the
    number.
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
        """Log a message about ``count`` events, with the traceback of ``error`` if it is given."""
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
        more = f" (and {left.things:,} more before this line)" if left.things else ""
        self._log.log(level, "%s%s", text, more, exc_info=error)

    def close(self) -> None:
        """Log the numbers of omitted lines."""
        for kind in list(self._left):
            self._tell(kind)

    def _tell_later(self, kind: str, seconds: float) -> None:
        if kind in self._telling:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # Without an event loop, nothing can be called later. The next line or `close` reports
            # the number.
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
