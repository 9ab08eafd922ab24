"""Run taps before real brokers in a thread, because the tests block their own thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.tap import Tap

MOST_SECONDS = 120


@contextlib.contextmanager
def running(taps: Sequence[Tap]) -> Iterator[None]:
    """Start taps in order, and close them at the end."""
    started, stop = threading.Event(), threading.Event()

    async def job() -> None:
        async with contextlib.AsyncExitStack() as stack:
            for tap in taps:
                await stack.enter_async_context(tap)
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(job(),))
    thread.start()
    try:
        assert started.wait(MOST_SECONDS)
        yield
    finally:
        stop.set()
        thread.join(MOST_SECONDS)
