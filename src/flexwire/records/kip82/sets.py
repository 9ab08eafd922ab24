"""Read, write and convert sets of KIP-82 messages, with wrapper messages as in magic 1.

"Message version migration would be handled as like in KIP-32": offsets, timestamps, their type and
the compression are preserved. Messages that need no conversion are returned unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.arguments import to_bytes, to_flag, to_int, to_kind, to_list
from flexwire.errors import EncodeError, RecordError, short
from flexwire.records.batch import MAX_INFLATED
from flexwire.records.compression import checked_level, deflate, inflate
from flexwire.records.decode import PartialBatch, decode_batches
from flexwire.records.encode import encode_batch
from flexwire.records.headers import Headers
from flexwire.records.kip82.message import (
    KNOWN_COMPRESSIONS,
    MAGIC,
    Kip82Entry,
    Kip82Message,
    read_entry,
    write_entry,
)
from flexwire.records.message_set import check_message_crc
from flexwire.records.record import (
    Compression,
    Record,
    TimestampType,
    checked_integer,
    checked_nullable_bytes,
    pack_attributes,
)
from flexwire.records.typed import TypedDialect
from flexwire.wire.batch_layout import ENTRY, LEAST_SIZES, MAGIC_AT, MESSAGE_SETS
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class DecodeOptions(NamedTuple):
    """The options for reading a message set, as `decode_message_set` describes them."""

    check_crc: bool = True
    max_inflated: int = MAX_INFLATED
    dialect: TypedDialect = TypedDialect.DOCUMENT


def to_decode_options(
    check_crc: bool,  # noqa: FBT001 - callers pass their own arguments
    max_inflated: int,
    dialect: TypedDialect = TypedDialect.DOCUMENT,
) -> DecodeOptions:
    """Return the options for reading a message set, from the arguments of a caller."""
    return DecodeOptions(
        to_flag(check_crc, "check_crc"),
        to_int(max_inflated, "max_inflated", least=0),
        to_kind(dialect, "dialect", TypedDialect),
    )


class DecodedEntry(NamedTuple):
    """An entry of a message set, of any magic, with its message or the messages that it wraps."""

    magic: int
    compression: Compression
    messages: list[Kip82Message]


class EntryIterator(Iterator[tuple[int, bytes]]):
    """Divide a message set into its entries, and return the start and the bytes of each entry.

    An impossible size raises `RecordError`, and ends the iteration.

    Attributes:
        position: where the next entry starts.
        partial: the entry that ``data`` cuts off, or None if no entry has been cut off so far.
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
            reason = f"message size {size - ENTRY.size} is less than the minimum message size"
            raise RecordError(reason, offset=start)
        if size > remaining:
            self.partial = PartialBatch(start, remaining, size)
            raise StopIteration
        self.position = start + size
        return start, self._data[start : self.position]


class MessageIterator(Iterator[Kip82Message]):
    """Return the messages of a message set in order, including those in wrappers."""

    def __init__(self, data: bytes, reading: DecodeOptions) -> None:
        self._entries = EntryIterator(data)
        self._reading = reading
        self._waiting: Iterator[Kip82Message] = iter(())

    @property
    def position(self) -> int:
        """The start of the next entry of the message set."""
        return self._entries.position

    @property
    def partial(self) -> PartialBatch | None:
        """The entry that is cut off at the end, or None if no entry has been cut off so far."""
        return self._entries.partial

    def __next__(self) -> Kip82Message:
        while (message := next(self._waiting, None)) is None:
            start, data = next(self._entries)
            self._waiting = iter(decode_entry(data, start, self._reading).messages)
        return message


def decode_message_set(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
    dialect: TypedDialect = TypedDialect.DOCUMENT,
) -> MessageIterator:
    """Iterate over the messages of a message set in which magic 2 means KIP-82.

    The set may also contain messages of magic 0 and 1, as in a log that is older than the document.
    Messages of magic 0 and 1 have no headers. If the data ends within a message, the iteration
    ends, and ``partial`` contains the beginning of that message. ``max_inflated`` limits the
    inflated bytes of one wrapper. ``dialect`` is the type table of the headers, which are read on
    request.

    A damaged message raises `RecordError`. If the size of this message is valid, the iteration can
    continue after the message. If the size is invalid, the iteration is over.
    """
    return MessageIterator(to_bytes(data), to_decode_options(check_crc, max_inflated, dialect))


def decode_entry(data: bytes, start: int, reading: DecodeOptions) -> DecodedEntry:
    """Return the entry at ``start``. Raises `RecordError` with an offset relative to the entry."""
    magic = data[MAGIC_AT]
    try:
        return _read_new(data, reading) if magic == MAGIC else _read_old(data, magic, reading)
    except RecordError as error:
        raise RecordError(error.reason, offset=start + error.offset) from None


def _read_old(data: bytes, magic: int, reading: DecodeOptions) -> DecodedEntry:
    [batch] = decode_batches(data, check_crc=reading.check_crc, max_inflated=reading.max_inflated)
    messages = [
        Kip82Message(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            Headers(dialect=reading.dialect),
            batch.timestamp_type,
        )
        for record in batch.records
    ]
    return DecodedEntry(magic, batch.compression, messages)


def _read_new(data: bytes, reading: DecodeOptions) -> DecodedEntry:
    entry = _read_checked(data, reading)
    if entry.compression is Compression.NONE:
        return DecodedEntry(
            MAGIC, entry.compression, [_message(entry, entry.offset, entry, reading)]
        )
    if entry.key is not None or entry.headers or entry.value is None:
        raise RecordError("a wrapper message must have a value, but no key and no headers")
    inner = inflate(entry.compression, entry.value, magic=MAGIC, limit=reading.max_inflated)
    try:
        return DecodedEntry(MAGIC, entry.compression, _read_inner(inner, entry, reading))
    except RecordError as error:
        reason = f"{error.reason} (at byte {error.offset} of the inflated messages)"
        raise RecordError(reason) from None


def _read_inner(data: bytes, wrapper: Kip82Entry, reading: DecodeOptions) -> list[Kip82Message]:
    inner: list[Kip82Entry] = []
    entries = EntryIterator(data)
    for start, data_of_entry in entries:
        if data_of_entry[MAGIC_AT] != MAGIC:
            reason = (
                f"a message with magic value {data_of_entry[MAGIC_AT]} is inside a wrapper message "
                f"with magic value {MAGIC}"
            )
            raise RecordError(reason, offset=start)
        try:
            entry = _read_checked(data_of_entry, reading)
        except RecordError as error:
            raise RecordError(error.reason, offset=start + error.offset) from None
        if entry.compression is not Compression.NONE:
            raise RecordError(
                "a message inside a wrapper message is itself compressed", offset=start
            )
        inner.append(entry)
    if entries.partial:
        raise RecordError("an inner message is cut off", offset=entries.partial.position)
    if not inner:
        raise RecordError("a wrapper message has no inner messages")
    # As in magic 1, offsets are relative. A wrapper with offset 0 has no assigned offsets yet.
    base = wrapper.offset - inner[-1].offset if wrapper.offset else 0
    messages = [_message(entry, base + entry.offset, wrapper, reading) for entry in inner]
    if not all(INT64_MIN <= message.offset <= INT64_MAX for message in messages):
        raise RecordError("the offset of a message does not fit in 64 bits")
    return messages


def _read_checked(data: bytes, reading: DecodeOptions) -> Kip82Entry:
    entry = read_entry(data)
    if reading.check_crc:
        check_message_crc(data, entry.crc, 0)
    return entry


def _message(
    entry: Kip82Entry, offset: int, outer: Kip82Entry, reading: DecodeOptions
) -> Kip82Message:
    """Return the message. ``outer``, a wrapper or the entry, determines the timestamp type."""
    append = outer.timestamp_type is TimestampType.LOG_APPEND_TIME
    return Kip82Message(
        offset,
        outer.timestamp if append else entry.timestamp,
        entry.key,
        entry.value,
        Headers(entry.headers, dialect=reading.dialect),
        outer.timestamp_type,
    )


def encode_message_set(
    messages: Iterable[Kip82Message],
    *,
    compression: Compression | str = Compression.NONE,
    level: int | None = None,
) -> bytes:
    """Write a message set: one entry for each message or, with compression, one wrapper message.

    In a wrapper, all messages have the same timestamp type and, with ``LogAppendTime``, the same
    timestamp. ``level`` is the same as in `flexwire.records.encode_batch`. Raises `EncodeError`,
    with the message and the field, for values that cannot be written.
    """
    try:
        return _encode(to_list(messages, "messages", "an iterable of Messages"), compression, level)
    except EncodeError as error:
        error.message = "KIP-82 message set"
        raise


def _encode(messages: Sequence[Any], compression: str, level: int | None) -> bytes:
    if not isinstance(compression, str) or compression not in KNOWN_COMPRESSIONS:
        raise EncodeError(f"KIP-82 does not define {short(compression)}", path="compression")
    for index, message in enumerate(messages):
        if not isinstance(message, Kip82Message):
            reason = f"expected a Message, got {short(message)}"
            raise EncodeError(reason, path=f"messages[{index}]")
    level = checked_level(Compression(compression), level)
    if compression == Compression.NONE or not messages:
        return _write_each(messages, 0)
    return _write_wrapper(messages, Compression(compression), level)


def _write_wrapper(
    messages: Sequence[Kip82Message], compression: Compression, level: int | None
) -> bytes:
    types = {str(message.timestamp_type) for message in messages}
    if len(types) > 1:
        reason = (
            "a wrapper message must have a single timestamp type, got "
            f"{' and '.join(sorted(types))}"
        )
        raise EncodeError(reason, path="timestamp_type")
    # The offsets in the wrapper are relative. If the offset of the last message is 0, readers do
    # not change the offsets.
    last_offset = checked_integer(messages[-1].offset, 64, f"messages[{len(messages) - 1}].offset")
    base_offset = checked_integer(messages[0].offset, 64, "messages[0].offset")
    inner = _write_each(messages, base_offset if last_offset else 0)
    timestamps = {message.timestamp for message in messages}
    if types == {TimestampType.LOG_APPEND_TIME} and len(timestamps) > 1:
        reason = f"with {TimestampType.LOG_APPEND_TIME}, all messages must have the same timestamp"
        raise EncodeError(reason, path="timestamp")
    return write_entry(
        last_offset,
        None,
        deflate(compression, inner, level=level, magic=MAGIC),
        attributes=pack_attributes(MAGIC, compression, types.pop(), {}),
        timestamp=max(timestamps),
        headers=b"",
    )


def _write_each(messages: Sequence[Kip82Message], base_offset: int) -> bytes:
    written = []
    for index, message in enumerate(messages):
        try:
            written.append(_write(message, base_offset))
        except EncodeError as error:
            error.path = f"messages[{index}].{error.path}".rstrip(".")
            raise
    return b"".join(written)


def _write(message: Kip82Message, base_offset: int) -> bytes:
    if not isinstance(message.headers, Headers):
        raise EncodeError(f"expected Headers, got {short(message.headers)}", path="headers")
    offset = checked_integer(message.offset, 64, "offset")
    return write_entry(
        checked_integer(offset - base_offset, 64, "offset"),
        checked_nullable_bytes(message.key, "key"),
        checked_nullable_bytes(message.value, "value"),
        attributes=pack_attributes(MAGIC, Compression.NONE, message.timestamp_type, {}),
        timestamp=checked_integer(message.timestamp, 64, "timestamp"),
        headers=message.headers.as_bytes(),
    )


def down_convert(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> bytes:
    """Return a message set for consumers that know only magic 0 and 1, without headers.

    "older consumers simply would consume a message oblivious to there being any headers". Raises
    `RecordError` as `decode_message_set` does, and for a partial message at the end.
    """
    return _convert(data, to_decode_options(check_crc, max_inflated), MESSAGE_SETS, _down)


def up_convert(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> bytes:
    """Return a message set in which all messages have magic 2, with empty headers if necessary.

    "new consumer would simply get a message with empty headers". A message of magic 0 gets the
    timestamp -1 and the type ``CreateTime``. Raises as `down_convert` does.
    """
    return _convert(data, to_decode_options(check_crc, max_inflated), (MAGIC,), _up)


def _convert(
    data: bytes | bytearray | memoryview,
    reading: DecodeOptions,
    magics: tuple[int, ...],
    convert: Callable[[DecodedEntry], bytes],
) -> bytes:
    converted = []
    entries = EntryIterator(to_bytes(data))
    for start, entry in entries:
        if entry[MAGIC_AT] in magics:
            converted.append(entry)
            continue
        try:
            converted.append(convert(decode_entry(entry, start, reading)))
        except EncodeError as error:
            raise RecordError(f"cannot be converted: {error}", offset=start) from None
    if entries.partial:
        raise RecordError("the data ends within a message", offset=entries.partial.position)
    return b"".join(converted)


def _down(whole: DecodedEntry) -> bytes:
    return encode_batch(
        [
            Record(message.offset, message.timestamp, message.key, message.value, [])
            for message in whole.messages
        ],
        magic=MESSAGE_SETS[-1],
        compression=whole.compression,
        timestamp_type=whole.messages[0].timestamp_type,
    )


def _up(whole: DecodedEntry) -> bytes:
    messages = whole.messages
    if whole.magic == 0:
        messages = [
            replace(message, timestamp_type=TimestampType.CREATE_TIME) for message in messages
        ]
    return encode_message_set(messages, compression=whole.compression)
