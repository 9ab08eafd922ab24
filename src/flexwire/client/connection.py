"""One connection to a broker: send and receive one frame at a time, within time and size limits."""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from flexwire.client.tls import explain_failure
from flexwire.errors import (
    CallError,
    ConnectionEndedError,
    FrameError,
    NoAnswerError,
    UnreadableFrameError,
)
from flexwire.protocol import SENT_FRAME_LIMIT, FrameSplitter
from flexwire.protocol.first_bytes import find_foreign_protocol
from flexwire.protocol.frames import to_frame
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from flexwire.client.notation import HostPort
    from flexwire.client.security import Security

DEFAULT_SECONDS: Final = 30.0
"""The time limit for one answer and for connecting, equal to Kafka's ``request.timeout.ms``."""

_CHUNK_BYTES: Final = 256 * 1024


class Connection:
    """A socket that carries frames. Every failure is a `CallError` and ends the connection.

    The connection holds at most one frame, of at most ``frame_limit`` bytes. Memory is allocated
    only for bytes that have arrived, whatever length the frame declares. ``timeout`` is the time
    limit for a complete exchange, in seconds.
    """

    def __init__(
        self,
        address: HostPort,
        security: Security,
        *,
        timeout: float = DEFAULT_SECONDS,
        frame_limit: int = SENT_FRAME_LIMIT,
    ) -> None:
        self.address = address
        self._timeout = timeout
        self._splitter = FrameSplitter(frame_limit)
        self._frames: deque[bytes] = deque()
        self._deadline = time.monotonic() + timeout
        self._socket: socket.socket | None = self._connected(security)

    def exchange(self, payload: bytes, *, is_answered: bool = True) -> bytes:
        """Send a frame, and return the payload of the next one, or b"" if no answer is expected."""
        return self.exchange_bytes(to_frame(payload), is_answered=is_answered)

    def exchange_bytes(self, data: bytes, *, is_answered: bool = True) -> bytes:
        """Send bytes unchanged, even if they are not a frame, and return the next frame's payload.

        Raises `NoAnswerError`, `UnreadableFrameError` or `ConnectionEndedError`.
        """
        self._deadline = time.monotonic() + self._timeout
        try:
            self._send(data)
            return self._receive() if is_answered else b""
        except TimeoutError:
            self.close()
            raise NoAnswerError(f"{self.address}: no answer after {self._timeout:g} s") from None
        except FrameError as error:
            hint = self._hint()
            self.close()
            raise UnreadableFrameError(f"{self.address}: {error}{hint}") from None
        except OSError as error:  # This includes ssl.SSLError.
            self.close()
            reason = f"{self.address}: the connection ended: {error}"
            held = self._splitter.pending_length
            raise ConnectionEndedError(reason, held=held) from error
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """True if the connection can be used. A failed exchange makes the connection unusable."""
        return self._socket is not None

    @property
    def unread_length(self) -> int:
        """The number of unrequested bytes that arrived after the last answer."""
        return sum(map(len, self._frames)) + self._splitter.pending_length

    def close(self) -> None:
        """End the connection. Calling this again has no effect."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self, security: Security) -> socket.socket:
        try:
            plain = socket.create_connection(self.address, self._remaining())
        # The last two errors occur for impossible hosts.
        except (OSError, UnicodeError, OverflowError) as error:
            reason = str(error) or type(error).__name__
            raise CallError(f"{self.address} cannot be reached: {reason}") from None
        if security.context is None:
            return plain
        try:
            plain.settimeout(self._remaining())
            name = security.server_name or self.address.host
            return security.context.wrap_socket(plain, server_hostname=name)
        # A ValueError occurs if a certificate must be checked but the host has no name.
        except (OSError, ValueError) as error:
            plain.close()
            reason = "no answer" if isinstance(error, TimeoutError) else explain_failure(error)
            raise CallError(f"{self.address}: cannot start TLS: {reason}") from None

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._open().send(view[:_CHUNK_BYTES]) :]

    def _receive(self) -> bytes:
        while not self._frames:
            data = self._open().recv(_CHUNK_BYTES)
            if not data:
                held = self._splitter.pending_length
                within = f" after {held} bytes of an answer" if held else " without an answer"
                self.close()
                raise ConnectionEndedError(
                    f"{self.address} closed the connection{within}; brokers do this if they do "
                    "not support a request's version, or expect TLS or SASL first",
                    held=held,
                )
            self._frames.extend(self._splitter.feed(data))
        return self._frames.popleft()

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise CallError(f"{self.address}: the connection has ended")
        self._socket.settimeout(self._remaining())
        return self._socket

    def _remaining(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _hint(self) -> str:
        head = self._splitter.peek(0, PREFIX_LENGTH)
        foreign = find_foreign_protocol(head)
        if foreign is not None and not isinstance(self._socket, ssl.SSLSocket):
            return f"; the first {PREFIX_LENGTH} bytes are {foreign.what}"
        if int.from_bytes(head, "big", signed=True) < 0:
            return ""
        return "; raise frame_limit (flexwire call: --answer-mib)"
