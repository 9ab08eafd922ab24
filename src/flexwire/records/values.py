"""What the fields of a record may hold when they are written: checked, with the field's path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from flexwire.errors import EncodeError, short
from flexwire.records.record import Record
from flexwire.wire.limits import LONGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST = {bits: (1 << (bits - 1)) - 1 for bits in (16, 32, 64)}
_Written = TypeVar("_Written")


def checked_integer(value: Any, bits: int, path: str) -> int:
    """Give a value that must be an integer of 16, 32 or 64 bits, its sign among them."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise EncodeError(f"expected an integer, got {short(value)}", path=path)
    most = _MOST[bits]
    if not -most - 1 <= value <= most:
        raise EncodeError(f"{short(value)} does not fit in {bits} bits", path=path)
    return value


def checked_bytes(value: Any, path: str) -> bytes:
    """Give a value that must be bytes; a subclass, bytearray or memoryview is copied."""
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise EncodeError(f"expected bytes, got {short(value)}", path=path)


def checked_nullable_bytes(value: Any, path: str) -> bytes | None:
    """Give a value that must be bytes or None."""
    return None if value is None else checked_bytes(value, path)


def checked_record(value: Any, path: str) -> Record:
    """Give what must be a record."""
    if isinstance(value, Record):
        return value
    raise EncodeError(f"expected a Record, got {short(value)}", path=path)


def check_size(size: int, path: str) -> None:
    """Refuse what is larger than a batch length or message size can say."""
    if size > LONGEST:
        raise EncodeError(f"{size} bytes are more than the {LONGEST} of an int32", path=path)


def write_each(records: Sequence[Any], write: Callable[[Record], _Written]) -> list[_Written]:
    """Write one record after the other; an `EncodeError` then names which it was."""
    written = []
    for index, record in enumerate(records):
        try:
            written.append(write(checked_record(record, "")))
        except EncodeError as error:
            error.path = f"records[{index}].{error.path}".rstrip(".")
            raise
    return written
