"""The lines of request logs: plain, gzip-compressed, or in the JSON that containers write.

A plain file can be divided anywhere: each line belongs to the piece in which it begins. A reader
also receives the lines after its piece, because two lines that describe one event may be in
different pieces. A file with envelopes is not divided, because one line may be spread over several
envelopes. A gzip-compressed file is not divided either.

Docker and CRI split long lines into parts, each in its own envelope. This module joins the parts
again.
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
"""The length of the longest line that is read, without its envelopes. A longer line is cut off."""

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
    """A line as the broker printed it, with its place in the file and the time in its envelope.

    ``is_cut`` is true if the line is longer than the limit. In that case, the object contains only
    the beginning of the line. ``is_next`` is true if the line belongs to the next piece, which then
    counts it. In this piece, it only completes earlier lines.
    """

    offset: int
    text: bytes
    seen_us: int | None = None
    is_cut: bool = False
    is_next: bool = False


def is_enveloped(line: bytes) -> bool:
    """Return whether a line in a file is in an envelope.

    >>> is_enveloped(b'2026-11-22T20:00:00.1Z stdout F [2026-11-22 20:00:00,100] DEBUG ...')
    True
    """
    return line.startswith(_DOCKER) or _CRI.match(line) is not None


def unwrap_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines without their envelopes, with their parts joined; yield other lines unchanged."""
    unwrapper = LineUnwrapper()
    for line in lines:
        whole = unwrapper.unwrap(line)
        if whole is not None:
            yield whole
    yield from unwrapper.finish()


class LineUnwrapper:
    """Remove the envelopes of lines, one after another, and join the parts of lines."""

    def __init__(self) -> None:
        # The parts of an unfinished line in each of the two streams. The key is true for the error
        # stream.
        self._waiting: dict[bool, _LineParts] = {}

    def unwrap(self, line: Line) -> Line | None:
        """Return a line without its envelope, or None until the line's last part has arrived."""
        part = _part(line)
        if part is None:
            return line
        stream, text_line, is_last = part
        is_error = stream in _ERRORS
        before = self._waiting.pop(is_error, None)
        if before is None and is_last:
            return text_line
        parts = _LineParts(text_line) if before is None else before.add(text_line)
        if is_last:
            return parts.line()
        self._waiting[is_error] = parts
        return None

    def finish(self) -> Iterator[Line]:
        """Yield the lines whose last part did not arrive. They are marked as cut off."""
        for parts in sorted(self._waiting.values(), key=lambda parts: parts.first.offset):
            parts.is_cut = True
            yield parts.line()
        self._waiting.clear()


class _LineParts:
    """The parts of a line. The parts are joined only once."""

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
            envelope = _DECODER.decode(text)
            inner = envelope.log.encode()
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        is_last = envelope.log.endswith("\n") or envelope.logtag == "F" or line.is_cut
        seen_us = _UTC.moment(envelope.time.encode("utf-8", "replace"))
        return (
            envelope.stream,
            Line(line.offset, inner.rstrip(b"\r\n"), seen_us, line.is_cut),
            is_last,
        )
    match = _CRI.match(text)
    if match is None:
        return None
    moment, stream, tag = match.groups()
    one_line = Line(line.offset, text[match.end() :], _UTC.moment(moment), line.is_cut)
    return stream, one_line, tag == b"F"


GZIP_MAGIC: Final = b"\x1f\x8b"
# The number of bytes that are read in one step.
_BLOCK: Final = 1 << 20
# The number of bytes that are read from a gzip file in one step. The remaining bytes are copied
# after each gzip member, and members may be tiny.
_PACKED: Final = 1 << 16
_GZIP: Final = zlib.MAX_WBITS | 16
# The approximate factor by which a compressed log grows when it is decompressed.
_INFLATION: Final = 15


class RequestLogFile(NamedTuple):
    """A file, its number among all files, and the way to read it.

    Only the lines between the offsets ``start`` and ``end`` are read; if ``end`` is None, all lines
    up to the end of the file. Offsets are counted in the file's decompressed content. If
    ``waits_at`` is an offset, the first line may complete the line at this offset, which has
    already been read.
    """

    source: InputFile
    number: int
    is_server_log: bool = False
    is_gzipped: bool = False
    is_enveloped: bool = False
    start: int = 0
    end: int | None = None
    waits_at: int | None = None

    @property
    def weight(self) -> int:
        """The approximate size of the lines, in bytes."""
        if self.end is not None:
            return self.end - self.start
        return self.source.size * (_INFLATION if self.is_gzipped else 1)


class RequestLogPiece(NamedTuple):
    """The lines of a file that begin between two offsets; ``stop`` is None for the file's end."""

    file: RequestLogFile
    start: int = 0
    stop: int | None = None

    @property
    def weight(self) -> int:
        """The approximate size of the lines, in bytes."""
        if self.stop is not None:
            return self.stop - self.start
        return self.file.start + self.file.weight - self.start


def pieces_of(files: Iterable[RequestLogFile], size: int) -> Iterator[RequestLogPiece]:
    """Divide files into pieces of about ``size`` bytes, if this is possible."""
    for file in files:
        whole = file.is_gzipped or file.is_enveloped or file.is_server_log
        count = 1 if whole else max(1, round(file.weight / max(size, 1)))
        cuts = [file.start + file.weight * at // count for at in range(count)]
        for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
            yield RequestLogPiece(file, start, stop)


def read_lines(piece: RequestLogPiece) -> Iterator[Line]:
    """Return a piece's nonempty lines without envelopes, and then the lines that complete them.

    Raises `StorageError` if the file cannot be read. A damaged gzip file ends with a line that is
    cut off.
    """
    lines = (line for line in _lines(piece) if line.text or line.is_cut or line.is_next)
    return unwrap_lines(lines) if piece.file.is_enveloped else lines


def _lines(piece: RequestLogPiece) -> Iterator[Line]:
    file, start, stop = piece
    # The byte before ``start`` shows whether a line begins at ``start``.
    first = max(0, start - 1)
    if not file.is_gzipped:
        with closing(file.source.open(first, file.end)) as raw:
            yield from split(raw, first, start, stop)
        return
    with closing(file.source.open()) as raw:
        try:
            inflated = GzipReader(raw, file.end)
            inflated.skip(first)
            yield from split(inflated, first, start, stop)
        except (EOFError, zlib.error):
            yield Line(-1, b"", is_cut=True)


class GzipReader:
    """Reads a gzip file up to its damage; Python's own reader loses the data before the damage.

    If ``most`` is a number, at most this many bytes are read.
    """

    def __init__(self, raw: ByteReader, most: int | None = None) -> None:
        self._raw = raw
        self._inflating = zlib.decompressobj(_GZIP)
        self._left = most

    def skip(self, size: int) -> None:
        """Read ``size`` bytes and discard them."""
        while size and (data := self.read(min(size, _BLOCK))):
            size -= len(data)

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes. Raises `EOFError` or `zlib.error` for damaged data."""
        if self._left is not None:
            size = min(size, self._left)
            if not size:
                return b""
        data = self._read(size)
        if self._left is not None:
            self._left -= len(data)
        return data

    def _read(self, size: int) -> bytes:
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
            data = self._inflating.decompress(rest, size)
            if data:
                return data

    def _next(self) -> bytes:
        """Return the bytes that follow a complete gzip member, which may be another member."""
        rest = self._inflating.unused_data or self._raw.read(_PACKED)
        while rest and not rest.strip(b"\0"):
            rest = self._raw.read(_PACKED)
        return rest.lstrip(b"\0")


class ByteReader(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, and no bytes at the end."""


def split(file: ByteReader, at: int, start: int, stop: int | None) -> Iterator[Line]:
    """Yield the lines that begin at or after ``start``.

    ``at`` is the file's current position. Lines at or after ``stop`` have ``is_next`` set. A line
    longer than `LONGEST` bytes is cut off, and its remaining bytes are not stored.
    """
    # A line begins at the start of a file. Elsewhere, the first line begins after the first line
    # end.
    is_skipping, begun, begin = at < start, b"", at
    is_cut = False
    while True:
        block = file.read(_BLOCK)
        if not block:
            break
        lines = block.split(b"\n")
        if len(lines) == 1:
            at += len(block)
            if not is_skipping and not is_cut:
                begun += block
                is_cut = len(begun) > LONGEST
                begun = begun[:LONGEST] if is_cut else begun
            continue
        for number, text in enumerate(lines[:-1]):
            if is_skipping:
                is_skipping = False
            else:
                is_next = stop is not None and begin >= stop
                whole = begun + text if number == 0 and begun else text
                is_long = is_cut or len(whole) > LONGEST
                yield Line(begin, whole[:LONGEST], None, is_long, is_next)
            at += len(text) + 1
            begin, begun, is_cut = at, b"", False
        begun = lines[-1]
        at += len(begun)
    if begun and not is_skipping:
        yield Line(begin, begun, None, is_cut, stop is not None and begin >= stop)
