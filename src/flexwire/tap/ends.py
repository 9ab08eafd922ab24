"""The two ends of a connection through the tap. Both ends forward bytes immediately.

For every piece of data, asyncio's streams wake a task, copy the piece into a buffer, and copy it
out again. Here the relay is called with the piece itself, and may process it in several steps of
the event loop, so that a piece with many frames does not block other connections. If an end accepts
no more bytes, the other end is not read. At most one piece in each direction therefore waits here,
in addition to the bytes in the sockets. The other end is also not read while bytes are delayed
(`End.wait`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FLUSH_SECONDS: Final = 5.0
"""The number of seconds that sent bytes may wait in a buffer for a peer that does not read."""


class EndCallbacks(NamedTuple):
    """The callbacks for the events of an end, in the order of the events."""

    said: Callable[[bytes], int]
    """Called when bytes have arrived. Returns how many of these bytes were processed, at least one.

    The remaining bytes are reported again, in another step of the event loop.
    """
    ended: Callable[[], None]
    """Called when no more bytes will arrive."""
    lost: Callable[[Exception], None]
    """Called when the connection was lost instead of ending normally."""


class End(asyncio.Protocol):
    """One end of a connection, with or without TLS.

    Bytes that arrive before the callbacks are set wait here. At most one piece can wait, because
    reading then stops. Bytes that the callback does not process immediately wait too. TLS always
    ends in both directions at the same time.
    """

    def __init__(self, *, over_tls: bool = False) -> None:
        self.error: Exception | None = None
        """The reason for the loss of the connection."""
        self.has_ended = False
        """True if the peer has announced that it will send no more bytes."""
        self.is_deaf = False
        """True if anything written from now on is dropped."""
        self._is_full = False
        self._is_muted = False
        self._half_closes = False
        # Delayed output: the loop time at which to send bytes, and the bytes.
        self._late: deque[tuple[float, bytearray]] = deque()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._over_tls = over_tls
        self._transport: asyncio.Transport | None = None
        self._gone = asyncio.get_running_loop().create_future()
        self._calls: EndCallbacks | None = None
        self._other: End | None = None
        self._is_ignored = False
        # The bytes that have arrived but are not processed yet, and the end events after them.
        self._left: list[bytes] = []
        self._ends: list[Callable[[], None]] = []
        self._next_step: asyncio.Handle | None = None

    @property
    def transport(self) -> asyncio.Transport:
        """The transport from asyncio, which is available once the connection exists."""
        if self._transport is None:
            raise ConnectionError("the connection does not exist yet")
        return self._transport

    @property
    def is_full(self) -> bool:
        """True if too many bytes wait here, or if bytes are delayed on purpose."""
        return self._is_full or bool(self._late)

    @property
    def is_closing(self) -> bool:
        """True if nothing more can be written."""
        return (self._over_tls and self.has_ended) or self.transport.is_closing()

    def call(self, calls: EndCallbacks, other: End) -> None:
        """Report all events to ``calls``. Bytes written here come from the ``other`` end."""
        self._calls, self._other = calls, other
        # Events are reported in the order in which they happened.
        if self.error is not None:
            self._ends.append(partial(calls.lost, self.error))
        elif self.has_ended:
            self._ends.append(calls.ended)
        self._tell()
        if not self._is_ignored:
            self.hold(is_held=other.is_full)

    def hold(self, *, is_held: bool) -> None:
        """Stop reading while ``is_held``, because the other end accepts no more bytes."""
        if self._calls is None or self._is_ignored:
            return
        if is_held or self._left or self._is_muted:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def wait(self, seconds: float) -> None:
        """Delay all later output by some seconds. Each delay begins after the previous one.

        During the delay, the other end is not read.
        """
        loop = asyncio.get_running_loop()
        begin = self._late[-1][0] if self._late else loop.time()
        self._late.append((begin + seconds, bytearray()))
        self._set_timer("wait", self._late[0][0], self._send_late)
        self._hold_other()

    def mute(self, seconds: float) -> None:
        """Read nothing for some seconds, as a broker does with a client that it throttles."""
        self._is_muted = True
        self.hold(is_held=True)
        self._set_timer("mute", asyncio.get_running_loop().time() + seconds, self._unmute)

    def _set_timer(self, name: str, at: float, call: Callable[[], None]) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()
        self._timers[name] = asyncio.get_running_loop().call_at(at, call)

    def _send_late(self, *, at_once: bool = False) -> None:
        now = asyncio.get_running_loop().time()
        while self._late and (at_once or self._late[0][0] <= now):
            _, data = self._late.popleft()
            if data and not self.is_closing:
                self.transport.write(bytes(data))
        if self._late:
            self._set_timer("wait", self._late[0][0], self._send_late)
            return
        if self._half_closes:
            self.half_close()
        self._hold_other()

    def _unmute(self) -> None:
        self._is_muted = False
        self.hold(is_held=self._other is not None and self._other.is_full)

    def _hold_other(self) -> None:
        if self._other is not None:
            self._other.hold(is_held=self.is_full)

    def ignore(self) -> None:
        """Report no more events, except that `tell_rest` reports earlier bytes."""
        self._is_ignored = True
        self._ends.clear()
        if self._calls is None:
            self._left.clear()
        # The end of TLS is noticed only after the bytes before it were read.
        self.transport.resume_reading()

    async def tell_rest(self) -> None:
        """Report the bytes that arrived before `ignore`, in steps of the event loop."""
        while self._left:
            self._tell_some()
            await asyncio.sleep(0)

    def tell_rest_at_once(self) -> None:
        """Report the same bytes in one step, for a program that is about to exit."""
        while self._left:
            self._tell_some()

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them until the peer reads them. Without a connection, do nothing."""
        if not data or self.is_closing or self.is_deaf:
            return
        if self._late:
            self._late[-1][1].extend(data)
        else:
            self.transport.write(data)

    def can_half_close(self) -> bool:
        """Return whether one direction can end while the other continues."""
        return self.transport.can_write_eof()

    def half_close(self) -> None:
        """End this direction after all delayed bytes are sent."""
        if self._late:
            self._half_closes = True
        elif not self.transport.is_closing():
            # An error means that the peer has reset the connection. The next read will report the
            # reset.
            with suppress(OSError):
                self.transport.write_eof()

    async def close(self, seconds: float) -> None:
        """Close after the written bytes are sent. Drop a peer that does not read them in time.

        Delayed bytes are sent at their scheduled times, or immediately if ``seconds`` is 0.
        """
        try:
            if self._late and seconds and not self.is_closing:
                left = self._late[-1][0] - asyncio.get_running_loop().time()
                await asyncio.wait({self._gone}, timeout=max(0.0, left))
            self._end_waiting()
            # If the transport were closed twice, asyncio's TLS would lose its connection, which
            # could then not be dropped.
            if not self.transport.is_closing():
                self.transport.close()
            await asyncio.wait({self._gone}, timeout=seconds)
        finally:
            self._end_waiting()
            if not self._gone.done():
                self.transport.abort()
            with suppress(OSError):
                await self._gone

    def _end_waiting(self) -> None:
        self._send_late(at_once=True)
        for timer in self._timers.values():
            timer.cancel()

    def extra_info(self, name: str) -> Any:
        """Return asyncio's information, as `asyncio.BaseTransport.get_extra_info` does."""
        return self.transport.get_extra_info(name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle asyncio's event that the end is connected."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Handle bytes that asyncio has read."""
        if self._is_ignored:
            return
        self._left.append(data)
        if self._calls is None:
            self.transport.pause_reading()
        elif self._next_step is None:
            self._tell()

    def eof_received(self) -> bool:
        """Handle asyncio's event that no more bytes will arrive.

        Returns True to keep the other direction open.
        """
        self._end()
        return not self._over_tls

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle asyncio's event that the connection is closed. ``exc`` is the reason, if any."""
        try:
            if exc is None:
                self._end()
            else:
                self.error = exc
                if self._calls is not None:
                    self._tell_end(partial(self._calls.lost, exc))
        finally:
            # The caller of `close` waits for this, whatever the callbacks do.
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        """Handle asyncio's event that too many written bytes are in the buffer."""
        self._is_full = True
        self._hold_other()

    def resume_writing(self) -> None:
        """Handle asyncio's event that most bytes in the buffer have been sent."""
        self._is_full = False
        self._hold_other()

    def _end(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            if self._calls is not None:
                self._tell_end(self._calls.ended)

    def _tell_end(self, end: Callable[[], None]) -> None:
        if self._is_ignored:
            return
        self._ends.append(end)
        if not self._left:
            self._tell_ends()

    def _tell(self) -> None:
        """Report as many bytes as fit in one step, and let the loop call again for the rest."""
        if self._left:
            self._tell_some()
        if self._left and not self._is_ignored:
            self.transport.pause_reading()
            self._next_step = asyncio.get_running_loop().call_soon(self._tell_more)
        elif not self._left:
            self._tell_ends()

    def _tell_more(self) -> None:
        self._next_step = None
        try:
            self._tell()
        except Exception as error:  # noqa: BLE001 - asyncio also catches all exceptions of its protocols
            self.error = error
            if self._calls is not None:
                self._tell_end(partial(self._calls.lost, error))
        if self._other is not None:
            self.hold(is_held=self._other.is_full)

    def _tell_some(self) -> None:
        if self._calls is None:
            return
        data = self._left[0] if len(self._left) == 1 else b"".join(self._left)
        # The events are removed before they are reported, so that an error does not report them
        # twice.
        self._left.clear()
        taken = self._calls.said(data)
        if taken < len(data):
            self._left.insert(0, data[taken:])

    def _tell_ends(self) -> None:
        while self._ends and not self._is_ignored:
            self._ends.pop(0)()
