"""Reading sets of KIP-82's messages, with wrapper messages as in magic 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flexwire.arguments import to_bytes, to_flag, to_int, to_kind
from flexwire.errors import RecordError
from flexwire.records.attributes import Compression, TimestampType
from flexwire.records.batch import MAX_INFLATED
from flexwire.records.decode import PartialBatch, decode_batches
from flexwire.records.headers import Headers
from flexwire.records.inflate import inflate
from flexwire.records.kip82.message import MAGIC, Entry, Message, read_entry
from flexwire.records.message_set import check_message_crc
from flexwire.records.typed import TypedDialect
from flexwire.wire.batch_layout import ENTRY, LEAST_SIZES, MAGIC_AT
from flexwire.wire.limits import INT64_MAX, INT64_MIN


class Reading(NamedTuple):
    """How a message set is read; see `decode_message_set`."""

    check_crc: bool = True
    max_inflated: int = MAX_INFLATED
    dialect: TypedDialect = TypedDialect.DOCUMENT


def checked_reading(
    check_crc: bool,  # noqa: FBT001 - callers pass on what they were given
    max_inflated: int,
    dialect: TypedDialect = TypedDialect.DOCUMENT,
) -> Reading:
    """Say how a message set is read, from what a caller gave."""
    return Reading(
        to_flag(check_crc, "check_crc"),
        to_int(max_inflated, "max_inflated", least=0),
        to_kind(dialect, "dialect", TypedDialect),
    )


class Whole(NamedTuple):
    """A message set's entry of any magic, with the message that it is or those that it wraps."""

    magic: int
    compression: Compression
    messages: list[Message]


class Entries(Iterator[tuple[int, bytes]]):
    """Cuts a message set into its entries; gives where each starts, and its bytes.

    A size that cannot be one raises `RecordError`, and then the iteration is over.

    Attributes:
        position: where the next entry starts.
        partial: the entry that ``data`` ends within; None if it is whole or the end not reached.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self.partial: PartialBatch | None = None

    def __next__(self) -> tuple[int, bytes]:
        start = self.position
        remaining = len(self._data) - start
        self.position = len(self._data)
        if not remaining:
            raise StopIteration
        if remaining < ENTRY.size:
            self.partial = PartialBatch(start, remaining, None)
            raise StopIteration
        size = ENTRY.size + ENTRY.unpack_from(self._data, start)[1]
        if size < LEAST_SIZES[0]:
            reason = f"message size {size - ENTRY.size} is less than every message takes"
            raise RecordError(reason, offset=start)
        if size > remaining:
            self.partial = PartialBatch(start, remaining, size)
            raise StopIteration
        self.position = start + size
        return start, self._data[start : self.position]


class MessageIterator(Iterator[Message]):
    """Gives the messages of a message set in order, those inside wrappers too."""

    def __init__(self, data: bytes, reading: Reading) -> None:
        self._entries = Entries(data)
        self._reading = reading
        self._waiting: Iterator[Message] = iter(())

    @property
    def position(self) -> int:
        """Where the next entry of the message set starts."""
        return self._entries.position

    @property
    def partial(self) -> PartialBatch | None:
        """The entry that the data ends within; None if it is whole or the end not reached."""
        return self._entries.partial

    def __next__(self) -> Message:
        while (message := next(self._waiting, None)) is None:
            start, data = next(self._entries)
            self._waiting = iter(read_whole(data, start, self._reading).messages)
        return message


def decode_message_set(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
    dialect: TypedDialect = TypedDialect.DOCUMENT,
) -> MessageIterator:
    """Iterate over the messages of a message set whose magic 2 is the document's.

    Messages of magic 0 and 1 may be among them, as in a log that is older than the document; they
    have no headers. Where the data ends within a message, the iteration ends and ``partial`` says
    so. ``max_inflated`` bounds the bytes that one wrapper may inflate to. ``dialect`` is that of
    the headers, which are read when they are asked for.

    A damaged message raises `RecordError`; if its size is sound the iteration can go on after it,
    otherwise it is over.
    """
    return MessageIterator(to_bytes(data), checked_reading(check_crc, max_inflated, dialect))


def read_whole(data: bytes, start: int, reading: Reading) -> Whole:
    """Read an entry that stands at ``start``; raises `RecordError` with an offset from there."""
    magic = data[MAGIC_AT]
    try:
        return _read_new(data, reading) if magic == MAGIC else _read_old(data, magic, reading)
    except RecordError as error:
        raise RecordError(error.reason, offset=start + error.offset) from None


def _read_old(data: bytes, magic: int, reading: Reading) -> Whole:
    [batch] = decode_batches(data, check_crc=reading.check_crc, max_inflated=reading.max_inflated)
    messages = [
        Message(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            Headers(dialect=reading.dialect),
            batch.timestamp_type,
        )
        for record in batch.records
    ]
    return Whole(magic, batch.compression, messages)


def _read_new(data: bytes, reading: Reading) -> Whole:
    entry = _read_checked(data, reading)
    if entry.compression is Compression.NONE:
        return Whole(MAGIC, entry.compression, [_message(entry, entry.offset, entry, reading)])
    if entry.key is not None or entry.headers or entry.value is None:
        raise RecordError("a wrapper message has a value, no key and no headers")
    inner = inflate(entry.compression, entry.value, magic=MAGIC, limit=reading.max_inflated)
    try:
        return Whole(MAGIC, entry.compression, _read_inner(inner, entry, reading))
    except RecordError as error:
        reason = f"{error.reason} (at byte {error.offset} of the inflated messages)"
        raise RecordError(reason) from None


def _read_inner(data: bytes, wrapper: Entry, reading: Reading) -> list[Message]:
    found: list[Entry] = []
    entries = Entries(data)
    for start, one in entries:
        if one[MAGIC_AT] != MAGIC:
            reason = f"magic {one[MAGIC_AT]} inside a wrapper of magic {MAGIC}"
            raise RecordError(reason, offset=start)
        try:
            entry = _read_checked(one, reading)
        except RecordError as error:
            raise RecordError(error.reason, offset=start + error.offset) from None
        if entry.compression is not Compression.NONE:
            raise RecordError("a compressed message inside a wrapper", offset=start)
        found.append(entry)
    if entries.partial:
        raise RecordError("an inner message is cut off", offset=entries.partial.position)
    if not found:
        raise RecordError("a wrapper message without inner messages")
    # As in magic 1: relative offsets, and nothing assigned yet where the wrapper is at 0.
    base = wrapper.offset - found[-1].offset if wrapper.offset else 0
    messages = [_message(entry, base + entry.offset, wrapper, reading) for entry in found]
    if not all(INT64_MIN <= message.offset <= INT64_MAX for message in messages):
        raise RecordError("the offset of a message does not fit in 64 bits")
    return messages


def _read_checked(data: bytes, reading: Reading) -> Entry:
    entry = read_entry(data)
    if reading.check_crc:
        check_message_crc(data, entry.crc, 0)
    return entry


def _message(entry: Entry, offset: int, outer: Entry, reading: Reading) -> Message:
    """``outer`` is the wrapper, or the entry itself: it says whose the timestamps are."""
    append = outer.timestamp_type is TimestampType.LOG_APPEND_TIME
    return Message(
        offset,
        outer.timestamp if append else entry.timestamp,
        entry.key,
        entry.value,
        Headers(entry.headers, dialect=reading.dialect),
        outer.timestamp_type,
    )
