"""A command that answers each line on its standard input with a line on its standard output.

`ask` always returns, either with a line or with the fault that ended the command. One selector
handles input, output and errors, so neither side can block the other.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from flexwire.arguments import refuse
from flexwire.errors import FlexwireError, VectorsError
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_CHUNK: Final = 65_536
_KEPT: Final = 200
"""The number of bytes at the start and at the end of standard error that are kept for the
description of a fault.
"""
_MOST_WAIT: Final = 2.0
"""The maximum number of seconds that a process may take to exit after it has closed its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecLimits:
    """The limits for a codec. Times are in seconds, and the length of a line is in bytes."""

    case_seconds: float = 5.0
    """The time limit for one answer."""
    start_seconds: float = 60.0
    """The time limit for the first answer after a start; some languages start slowly."""
    line_bytes: int = 16 * 1024 * 1024
    starts: int = 20
    """The maximum number of times that the command is started."""

    def __post_init__(self) -> None:
        for name in ("case_seconds", "start_seconds", "line_bytes", "starts"):
            if not getattr(self, name) > 0:
                raise refuse(name, "a number above 0", getattr(self, name))


class CodecFaultError(FlexwireError):
    """The codec crashed, was silent, or did not write exactly one line per line of input."""


class CodecProcess:
    """A command that is started at the first request, and again after a fault."""

    def __init__(self, command: Sequence[str], limits: CodecLimits) -> None:
        self._command = [*command]
        self._limits = limits
        self._running: _Running | None = None
        self.starts = 0

    @property
    def is_spent(self) -> bool:
        """True if the command has ended and has reached the limit on starts."""
        return self._running is None and self.starts >= self._limits.starts

    def ask(self, line: bytes) -> bytes:
        """Return the line with which the command answers a line. Both lines end with a line feed.

        Raises `CodecFaultError` for a fault, after which the command has ended. Raises
        `VectorsError` if the command cannot be started.
        """
        seconds = self._limits.case_seconds
        if self._running is None:
            self._running = _Running(self._command, self._limits.line_bytes)
            self.starts += 1
            seconds = self._limits.start_seconds
        try:
            return self._running.ask(line, seconds)
        except CodecFaultError:
            self.close()
            raise

    def close(self) -> None:
        """End the command and all processes in its process group."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Running:
    """One run of a command."""

    def __init__(self, command: list[str], line_bytes: int) -> None:
        self._line_bytes = line_bytes
        if not command:
            raise refuse("command", "a program and its arguments", command)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command is chosen by the caller
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or str(error)
            raise VectorsError(f"{printable(command[0])}: cannot start: {reason}") from None
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._errors = (pipe.fileno() for pipe in pipes if pipe is not None)
        self._selector = selectors.DefaultSelector()
        for pipe in (self._in, self._out, self._errors):
            os.set_blocking(pipe, False)
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._errors, selectors.EVENT_READ)
        self._got = bytearray()
        self._said = bytearray()

    def ask(self, line: bytes, seconds: float) -> bytes:
        end = time.monotonic() + seconds
        if self._got:
            raise self._fault("the codec wrote more than one line for the previous case")
        left = memoryview(line)
        self._selector.register(self._in, selectors.EVENT_WRITE)
        searched = 0
        while True:
            found = self._got.find(b"\n", searched)
            if found >= 0:
                break
            searched = len(self._got)
            if searched > self._line_bytes:
                raise self._fault(f"the answer is longer than {self._line_bytes} bytes")
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise self._fault(f"no answer within {seconds:g} s")
            for key, _ in self._selector.select(remaining):
                if key.fd == self._in:
                    left = self._write(left)
                else:
                    self._read(key.fd)
        if left:
            raise self._fault("the codec answered before it read the whole line")
        answer = bytes(self._got[: found + 1])
        del self._got[: found + 1]
        return answer

    def _write(self, left: memoryview) -> memoryview:
        try:
            left = left[os.write(self._in, left[:_CHUNK]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            # The command has ended or is silent; its output shows which is the case.
            left = left[:0]
        if not left:
            self._selector.unregister(self._in)
        return left

    def _read(self, pipe: int) -> None:
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return
        if pipe == self._errors:
            self._hear(data)
            if not data:
                self._selector.unregister(pipe)
        elif data:
            self._got += data
        else:
            raise self._fault(self._ending())

    def _ending(self) -> str:
        try:
            status = self._process.wait(_MOST_WAIT)
        except subprocess.TimeoutExpired:
            return "the codec closed its standard output"
        if status < 0:
            return f"the codec was terminated by {signal.Signals(-status).name}"
        return f"the codec exited with status {status}"

    def _fault(self, reason: str) -> CodecFaultError:
        with contextlib.suppress(BlockingIOError, OSError):
            self._hear(os.read(self._errors, _CHUNK))
        said = printable(self._said.decode(errors="replace").strip())
        return CodecFaultError(f"{reason}; its standard error: {said}" if said else reason)

    def _hear(self, data: bytes) -> None:
        """Keep the first and the last bytes of standard error."""
        self._said += data
        if len(self._said) > 2 * _KEPT:
            self._said[_KEPT:-_KEPT] = b""

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
