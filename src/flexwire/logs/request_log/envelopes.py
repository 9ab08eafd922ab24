"""What containers put around the lines that a broker prints: Docker's JSON, and CRI's prefix.

Both cut long lines into parts, each in an envelope of its own; they are joined again here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from flexwire.logs.request_log.times import Zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST: Final = 16 << 20
"""So long a line may be, envelopes not counted; what is longer is cut."""

_CRI: Final = re.compile(
    rb"(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP])[^ ]* "
)
_DOCKER: Final = b'{"log":'
_ERRORS: Final = ("stderr", b"stderr")
_UTC: Final = Zone()


class _Docker(msgspec.Struct):
    log: str
    stream: str = ""
    time: str = ""
    logtag: str = ""


_DECODER: Final = msgspec.json.Decoder(_Docker)


class Line(msgspec.Struct, gc=False):
    """A line as the broker printed it, where its file has it, and when its envelope says it was.

    ``is_cut``: it is longer than is read, and this is its beginning. ``is_next``: it is one
    of the next piece, which is given for what the lines before it began, and counts there.
    """

    offset: int
    text: bytes
    seen_us: int | None = None
    is_cut: bool = False
    is_next: bool = False


def is_enveloped(line: bytes) -> bool:
    """Whether a line of a file is in an envelope.

    >>> is_enveloped(b'2026-11-22T20:00:00.1Z stdout F [2026-11-22 20:00:00,100] DEBUG ...')
    True
    """
    return line.startswith(_DOCKER) or _CRI.match(line) is not None


def unwrapped(lines: Iterable[Line]) -> Iterator[Line]:
    """Give lines without their envelopes, parts joined; one without an envelope as it is."""
    # By stream: the parts of a line that has not ended.
    waiting: dict[bool, _Parts] = {}
    for line in lines:
        found = _part(line)
        if found is None:
            yield line
            continue
        stream, one, is_last = found
        # Of the two, that of errors: there are no others.
        is_error = stream in _ERRORS
        before = waiting.pop(is_error, None)
        if before is None and is_last:
            yield one
            continue
        parts = _Parts(one) if before is None else before.add(one)
        if is_last:
            yield parts.line()
        else:
            waiting[is_error] = parts
    for parts in sorted(waiting.values(), key=lambda one: one.first.offset):
        parts.is_cut = True
        yield parts.line()


class _Parts:
    """The parts of a line, joined once."""

    def __init__(self, first: Line) -> None:
        self.first = first
        self.is_cut = first.is_cut
        self._text = bytearray(first.text)

    def add(self, part: Line) -> _Parts:
        room = LONGEST - len(self._text)
        self._text += part.text[:room]
        self.is_cut = self.is_cut or part.is_cut or len(part.text) > room
        return self

    def line(self) -> Line:
        return Line(self.first.offset, bytes(self._text), self.first.seen_us, self.is_cut)


def _part(line: Line) -> tuple[bytes | str, Line, bool] | None:
    text = line.text
    if text.startswith(_DOCKER):
        try:
            one = _DECODER.decode(text)
            inner = one.log.encode()
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        is_last = one.log.endswith("\n") or one.logtag == "F" or line.is_cut
        seen = _UTC.moment(one.time.encode("utf-8", "replace"))
        return one.stream, Line(line.offset, inner.rstrip(b"\r\n"), seen, line.is_cut), is_last
    found = _CRI.match(text)
    if found is None:
        return None
    moment, stream, tag = found.groups()
    one_line = Line(line.offset, text[found.end() :], _UTC.moment(moment), line.is_cut)
    return stream, one_line, tag == b"F"
