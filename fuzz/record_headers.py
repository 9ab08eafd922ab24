"""Laws about record headers: of KIP-82's messages, and of the conventions.

Inputs for KIP-82's targets begin with a byte that says whether checksums are checked. Inputs for
conventions are record headers in sequence: a length and a key, a length and a value. Each length is
one byte, and 255 is a null value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.errors import DecodeError, RecordError, RecordHeaderError
from flexwire.records.conventions import CONVENTIONS, detect, read_headers, write_headers
from flexwire.records.kip82 import decode_message_set, down_convert, up_convert
from flexwire.records.typed import TypedDialect
from fuzz.law import LawBrokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flexwire.records.kip82 import Kip82Message

_MOST_INFLATED = 1 << 18
_DIALECTS = tuple(TypedDialect)
_NULL = 0xFF
_NO_TIMESTAMP = -1


def kip82(data: bytes) -> None:
    """Any bytes are messages of KIP-82 or are refused; converting them keeps their content."""
    check_crc, raw = data[:1] > b"\x7f", data[1:]
    dialect = _DIALECTS[sum(data[:1]) % len(_DIALECTS)]
    messages = _read(raw, check_crc=check_crc, dialect=dialect)
    for convert, same in ((down_convert, _body), (up_convert, _all)):
        converted = _converted(convert, raw, check_crc=check_crc)
        if converted is None:
            continue
        # A message that needs no conversion is returned without being read, and is refused as
        # before.
        again = _read(converted, check_crc=check_crc, dialect=dialect)
        if [same(one) for one in again] != [same(one) for one in messages]:
            raise LawBrokenError(f"{convert.__name__} says otherwise: {raw.hex()}")


def _read(raw: bytes, *, check_crc: bool, dialect: TypedDialect) -> list[Kip82Message]:
    """Continue to read behind every error."""
    found = decode_message_set(
        raw, check_crc=check_crc, max_inflated=_MOST_INFLATED, dialect=dialect
    )
    messages: list[Kip82Message] = []
    position = -1
    while position < len(raw):
        if found.position <= position:
            raise LawBrokenError(f"reading does not go on from byte {position}: {raw.hex()}")
        position = found.position
        try:
            for message in found:
                messages.append(message)
                _read_headers(message)
            break
        except RecordError as error:
            if not 0 <= error.offset <= len(raw):
                raise LawBrokenError(f"an error outside the data: {raw.hex()}") from error
    return messages


def _read_headers(message: Kip82Message) -> None:
    raw = message.headers.as_bytes()
    try:
        items = list(message.headers)
    except DecodeError:
        return
    for key, typed in items:
        if typed not in message.headers.get_typed(key) and typed == typed:  # noqa: PLR0124 - NaN
            raise LawBrokenError(f"{key!r} is lost: {raw.hex()}")


def _converted(convert: Callable[..., bytes], raw: bytes, *, check_crc: bool) -> bytes | None:
    try:
        return convert(raw, check_crc=check_crc, max_inflated=_MOST_INFLATED)
    except RecordError:
        return None


def _body(message: Kip82Message) -> tuple[Any, ...]:
    return message.offset, message.timestamp, message.key, message.value


def _all(message: Kip82Message) -> tuple[Any, ...]:
    return *_body(message), message.headers.as_bytes()


def conventions(data: bytes) -> None:
    """Every convention reads any headers or refuses them, and reads back what it writes."""
    headers = list(split(data))
    candidates = detect(headers)
    if {one.convention for one in candidates} != CONVENTIONS.keys():
        raise LawBrokenError(f"not every convention is judged: {data.hex()}")
    for name in CONVENTIONS:
        lax = read_headers(headers, name, lenient=True)
        try:
            strict = read_headers(headers, name)
        except RecordHeaderError:
            _write(lax, name, data)
            continue
        if repr(lax) != repr(strict):
            raise LawBrokenError(f"{name}: lenient reads otherwise: {data.hex()}")
        _write(strict, name, data)


def _write(values: list[tuple[Any, Any]], name: str, data: bytes) -> None:
    """Check that values are read back after they are written.

    Connect's numbers get the type that fits their text. So they may lose digits, but only once.
    """
    again = _written_and_read(values, name)
    if again is None:
        return
    if name == "connect":
        values, again = again, _written_and_read(again, name)
    if repr(again) != repr(values):
        told = f"  read     {again}\n  expected {values}"
        raise LawBrokenError(f"{name}: written and read again: {data.hex()}\n{told}")


def _written_and_read(values: list[tuple[Any, Any]], name: str) -> list[tuple[Any, Any]] | None:
    try:
        written = write_headers(values, name)
    except RecordHeaderError:
        return None
    return read_headers(written, name)


def split(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Cut bytes into record headers; the last one may be cut off."""
    position = 0

    def take(size: int) -> bytes:
        nonlocal position
        position += size
        return data[position - size : position]

    while position < len(data):
        key = take(sum(take(1)))
        size = sum(take(1))
        yield key, None if size == _NULL else take(size)


def join(headers: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    """Return the bytes that `split` cuts in this way.

    Raises `OverflowError` for a key or value of more than 254 bytes.
    """
    joined = b""
    for key, value in headers:
        for part in (key, value):
            size = _NULL if part is None else len(part)
            if part is not None and size >= _NULL:
                raise OverflowError(f"{size} bytes")
            joined += bytes([size]) + (part or b"")
    return joined
