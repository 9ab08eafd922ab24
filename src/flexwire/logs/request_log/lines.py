"""The lines of request logs: plain, gzip'd, or in the JSON of containers.

A file is cut anywhere: a line belongs to the piece that it begins in. Those after it are given too,
to whom goes on, as what is told on two lines may be cut between them. One in envelopes is not cut,
as a line's parts are in several of them, nor is one that is gzip'd.

Both cut long lines into parts, each in an envelope of its own; they are joined again here.
"""

from __future__ import annotations

import re
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from flexwire.logs.request_log.times import Zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.storage.input_file import InputFile


LONGEST: Final = 16 << 20
"""So long a line may be, envelopes not counted; what is longer is cut."""

_CRI: Final = re.compile(
    rb"(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP])[^ ]* "
)
_DOCKER: Final = b'{"log":'
_ERRORS: Final = ("stderr", b"stderr")
_UTC: Final = Zone()


class _DockerEnvelope(msgspec.Struct):
    log: str
    stream: str = ""
    time: str = ""
    logtag: str = ""


_DECODER: Final = msgspec.json.Decoder(_DockerEnvelope)


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


def unwrap_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Give lines without their envelopes, parts joined; one without an envelope as it is."""
    # By stream: the parts of a line that has not ended.
    waiting: dict[bool, _LineParts] = {}
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
        parts = _LineParts(one) if before is None else before.add(one)
        if is_last:
            yield parts.line()
        else:
            waiting[is_error] = parts
    for parts in sorted(waiting.values(), key=lambda one: one.first.offset):
        parts.is_cut = True
        yield parts.line()


class _LineParts:
    """The parts of a line, joined once."""

    def __init__(self, first: Line) -> None:
        self.first = first
        self.is_cut = first.is_cut
        self._text = bytearray(first.text)

    def add(self, part: Line) -> _LineParts:
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


GZIP_MAGIC: Final = b"\x1f\x8b"
# Read at once.
_BLOCK: Final = 1 << 20
# Of what is gzip'd: what is left of it is copied after each of its parts, which may be tiny.
_PACKED: Final = 1 << 16
_GZIP: Final = zlib.MAX_WBITS | 16
# What a gzip'd log becomes, about, of its size.
_INFLATION: Final = 15


class RequestLogFile(NamedTuple):
    """A file, its number among all, and how it is to be read."""

    source: InputFile
    number: int
    is_server_log: bool = False
    is_gzipped: bool = False
    is_enveloped: bool = False

    @property
    def weight(self) -> int:
        """About how many bytes of lines it has."""
        return self.source.size * (_INFLATION if self.is_gzipped else 1)


class RequestLogPiece(NamedTuple):
    """The lines of a file that begin between two offsets; ``stop`` None is its end."""

    file: RequestLogFile
    start: int = 0
    stop: int | None = None

    @property
    def weight(self) -> int:
        """About how many bytes of lines it has."""
        whole = self.file.weight
        return (whole if self.stop is None else self.stop) - self.start


def pieces_of(files: Iterable[RequestLogFile], size: int) -> Iterator[RequestLogPiece]:
    """Cut files into pieces of about ``size`` bytes, as far as they can be cut."""
    for file in files:
        whole = file.is_gzipped or file.is_enveloped or file.is_server_log
        count = 1 if whole else max(1, round(file.source.size / max(size, 1)))
        cuts = [file.source.size * at // count for at in range(count)]
        for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
            yield RequestLogPiece(file, start, stop)


def read_lines(piece: RequestLogPiece) -> Iterator[Line]:
    """Give the lines of a piece without envelopes and empty ones, in order, and then the next ones.

    Raises `StorageError` where the file cannot be read. A gzip'd file that is damaged ends with a
    line that is cut.
    """
    lines = (one for one in _lines(piece) if one.text or one.is_cut or one.is_next)
    return unwrap_lines(lines) if piece.file.is_enveloped else lines


def _lines(piece: RequestLogPiece) -> Iterator[Line]:
    file, start, stop = piece
    # To know whether a line begins at ``start``, the byte before it is read.
    first = max(0, start - 1)
    with closing(file.source.open(first)) as raw:
        if not file.is_gzipped:
            yield from split(raw, first, start, stop)
            return
        try:
            yield from split(_GzipReader(raw), 0, 0, None)
        except (EOFError, zlib.error):
            yield Line(-1, b"", is_cut=True)


class _GzipReader:
    """What is in a gzip'd file: up to where it is damaged, unlike Python's own, all of it."""

    def __init__(self, raw: ByteReader) -> None:
        self._raw = raw
        self._inflating = zlib.decompressobj(_GZIP)

    def read(self, size: int, /) -> bytes:
        """Give so many bytes at the most. `EOFError` and `zlib.error` where it is damaged."""
        while True:
            if self._inflating.eof:
                rest = self._next()
                if not rest:
                    return b""
                self._inflating = zlib.decompressobj(_GZIP)
            else:
                rest = self._inflating.unconsumed_tail or self._raw.read(_PACKED)
                if not rest:
                    raise EOFError
            found = self._inflating.decompress(rest, size)
            if found:
                return found

    def _next(self) -> bytes:
        """What follows a part that is whole: another one, also after zeros that fill a block."""
        rest = self._inflating.unused_data or self._raw.read(_PACKED)
        while rest and not rest.strip(b"\0"):
            rest = self._raw.read(_PACKED)
        return rest.lstrip(b"\0")


class ByteReader(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Give so many bytes at the most; none at the end."""


def split(file: ByteReader, at: int, start: int, stop: int | None) -> Iterator[Line]:
    """Give the lines that begin from ``start`` on; from ``stop`` on they are the next piece's.

    ``at`` is where the file stands. A line of more than `LONGEST` bytes is cut, and its
    rest is not held.
    """
    # At the start of a file a line begins; anywhere else after the first end of one.
    is_skipping, held, begin = at < start, b"", at
    is_cut = False
    while True:
        block = file.read(_BLOCK)
        if not block:
            break
        lines = block.split(b"\n")
        if len(lines) == 1:
            at += len(block)
            if not is_skipping and not is_cut:
                held += block
                is_cut = len(held) > LONGEST
                held = held[:LONGEST] if is_cut else held
            continue
        for number, text in enumerate(lines[:-1]):
            if is_skipping:
                is_skipping = False
            else:
                is_next = stop is not None and begin >= stop
                whole = held + text if number == 0 and held else text
                is_long = is_cut or len(whole) > LONGEST
                yield Line(begin, whole[:LONGEST], None, is_long, is_next)
            at += len(text) + 1
            begin, held, is_cut = at, b"", False
        held = lines[-1]
        at += len(held)
    if held and not is_skipping:
        yield Line(begin, held, None, is_cut, stop is not None and begin >= stop)
