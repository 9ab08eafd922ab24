"""The two ends of a connection through the tap: bytes are taken at once, and waiting is bounded.

asyncio's streams wake a task for every piece, copy it into a buffer and out again. Here the relay
is called with the piece itself, and may take it in several steps of the event loop, so that a piece
of many frames does not block other connections. If an end takes no more bytes, the other end is not
read. So at most one piece in each direction waits here, in addition to the bytes in the sockets.
The same holds while bytes are delayed (`End.wait`).
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
"""How long a peer that reads nothing may keep sent bytes in a buffer, in seconds."""


class EndCallbacks(NamedTuple):
    """The callbacks for the events of an end, in their order."""

    said: Callable[[bytes], int]
    """Bytes came. Return how many of them were taken, at least one.

    The others come again, in another step of the event loop.
    """
    ended: Callable[[], None]
    """No more bytes will come."""
    lost: Callable[[Exception], None]
    """The connection was lost, not ended regularly."""


class End(asyncio.Protocol):
    """One end of a connection, with TLS or without.

    Bytes that come before there are callbacks wait: one piece, because reading stops then. Bytes
    that are not accepted at once wait too. TLS ends in both directions at once.
    """

    def __init__(self, *, over_tls: bool = False) -> None:
        self.error: Exception | None = None
        """The cause of the loss of the connection."""
        self.has_ended = False
        """Whether it has announced that no more bytes will come."""
        self.is_deaf = False
        """Whether everything that is written from now on is dropped."""
        self._is_full = False
        self._is_muted = False
        self._half_closes = False
        # Delayed output: the time of the loop at which bytes are sent, and the bytes.
        self._late: deque[tuple[float, bytearray]] = deque()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._over_tls = over_tls
        self._transport: asyncio.Transport | None = None
        self._gone = asyncio.get_running_loop().create_future()
        self._calls: EndCallbacks | None = None
        self._other: End | None = None
        self._is_ignored = False
        # The bytes that have arrived but were not accepted yet, and the end events after them.
        self._left: list[bytes] = []
        self._ends: list[Callable[[], None]] = []
        self._next_step: asyncio.Handle | None = None

    @property
    def transport(self) -> asyncio.Transport:
        """Asyncio's transport, once there is a connection."""
        if self._transport is None:
            raise ConnectionError("there is no connection")
        return self._transport

    @property
    def is_full(self) -> bool:
        """True if too many bytes wait here, or bytes are delayed on purpose."""
        return self._is_full or bool(self._late)

    @property
    def is_closing(self) -> bool:
        """True if nothing can be written any more."""
        return (self._over_tls and self.has_ended) or self.transport.is_closing()

    def call(self, calls: EndCallbacks, other: End) -> None:
        """Report all events from now on; bytes written here come from the ``other`` end."""
        self._calls, self._other = calls, other
        # Events are reported in their order.
        if self.error is not None:
            self._ends.append(partial(calls.lost, self.error))
        elif self.has_ended:
            self._ends.append(calls.ended)
        self._tell()
        if not self._is_ignored:
            self.hold(is_held=other.is_full)

    def hold(self, *, is_held: bool) -> None:
        """Stop reading while ``is_held``, because the other end takes no more bytes."""
        if self._calls is None or self._is_ignored:
            return
        if is_held or self._left or self._is_muted:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def wait(self, seconds: float) -> None:
        """Delay all later output by this many seconds; each delay begins after the one before.

        Meanwhile the other end is not read.
        """
        loop = asyncio.get_running_loop()
        begin = self._late[-1][0] if self._late else loop.time()
        self._late.append((begin + seconds, bytearray()))
        self._set_timer("wait", self._late[0][0], self._send_late)
        self._hold_other()

    def mute(self, seconds: float) -> None:
        """Read nothing for this many seconds, as a broker does with a client that it throttles."""
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
        """Report no more events, except for bytes that came before: see `tell_rest`."""
        self._is_ignored = True
        self._ends.clear()
        if self._calls is None:
            self._left.clear()
        # TLS ends only after the bytes before its end were read.
        self.transport.resume_reading()

    async def tell_rest(self) -> None:
        """Report the bytes that came before `ignore`, in steps of the event loop."""
        while self._left:
            self._tell_some()
            await asyncio.sleep(0)

    def tell_rest_at_once(self) -> None:
        """Do `tell_rest` in one step, for a program that is about to end."""
        while self._left:
            self._tell_some()

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them until the peer takes them; do nothing without a connection."""
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
        """End this direction, after all delayed bytes were sent."""
        if self._late:
            self._half_closes = True
        elif not self.transport.is_closing():
            # The peer has reset the connection in the meantime, which the next read reports.
            with suppress(OSError):
                self.transport.write_eof()

    async def close(self, seconds: float) -> None:
        """Close after the written bytes were sent; drop a peer that does not take them in time.

        Delayed bytes are sent at their times; with ``seconds`` of 0, at once.
        """
        try:
            if self._late and seconds and not self.is_closing:
                left = self._late[-1][0] - asyncio.get_running_loop().time()
                await asyncio.wait({self._gone}, timeout=max(0.0, left))
            self._end_waiting()
            # If it is closed twice, asyncio's TLS loses its connection, which then cannot be
            # dropped.
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
        """Return asyncio's information about it, as `asyncio.BaseTransport.get_extra_info` does."""
        return self.transport.get_extra_info(name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle asyncio's event: it has connected."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Handle asyncio's event: it has read bytes."""
        if self._is_ignored:
            return
        self._left.append(data)
        if self._calls is None:
            self.transport.pause_reading()
        elif self._next_step is None:
            self._tell()

    def eof_received(self) -> bool:
        """Handle asyncio's event: it has read to the end; True keeps the other direction open."""
        self._end()
        return not self._over_tls

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle asyncio's event: it has closed, because of ``exc`` if that is given."""
        try:
            if exc is None:
                self._end()
            else:
                self.error = exc
                if self._calls is not None:
                    self._tell_end(partial(self._calls.lost, exc))
        finally:
            # The caller of close waits for this, whatever the callbacks do.
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        """Handle asyncio's event: too many written bytes are buffered."""
        self._is_full = True
        self._hold_other()

    def resume_writing(self) -> None:
        """Handle asyncio's event: most buffered bytes were sent."""
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
        """Report one step's worth of the bytes, and let the loop call again for the rest."""
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
        except Exception as error:  # noqa: BLE001 - as asyncio does with exceptions of its protocols
            self.error = error
            if self._calls is not None:
                self._tell_end(partial(self._calls.lost, error))
        if self._other is not None:
            self.hold(is_held=self._other.is_full)

    def _tell_some(self) -> None:
        if self._calls is None:
            return
        data = self._left[0] if len(self._left) == 1 else b"".join(self._left)
        # They are removed before they are reported, so that an error does not report them twice.
        self._left.clear()
        taken = self._calls.said(data)
        if taken < len(data):
            self._left.insert(0, data[taken:])

    def _tell_ends(self) -> None:
        while self._ends and not self._is_ignored:
            self._ends.pop(0)()
