"""A bound on how long a command computes over what somebody else sent."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flexwire.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def at_most(seconds: float, what: str) -> Iterator[None]:
    """Let a block compute for at most so many CPU seconds; then `CallError` names ``what``.

    Waiting does not count, as each wait has its own bound. Only a main thread hears of the time,
    and only on systems that have such timers (POSIX); elsewhere there is no bound.
    """
    if not hasattr(signal, "setitimer") or not _is_main():
        yield
        return

    def over(_: int, __: FrameType | None) -> None:
        raise CallError(f"{what} takes more than {seconds:g} s; --timeout SECONDS gives it longer")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
