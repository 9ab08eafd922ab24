"""Message sets of the document's magic 2 for older consumers, and older ones as its magic 2.

"Message version migration would be handled as like in KIP-32": offsets, timestamps, their type and
the compression are kept, and messages that need no conversion come back as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.arguments import to_bytes
from flexwire.errors import EncodeError, RecordError
from flexwire.records.attributes import TimestampType
from flexwire.records.batch import MAX_INFLATED
from flexwire.records.encode import encode_batch
from flexwire.records.kip82.decode import Entries, Reading, Whole, checked_reading, read_whole
from flexwire.records.kip82.encode import encode_message_set
from flexwire.records.kip82.message import MAGIC
from flexwire.records.record import Record
from flexwire.wire.batch_layout import MAGIC_AT, MESSAGE_SETS

if TYPE_CHECKING:
    from collections.abc import Callable


def down_convert(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> bytes:
    """Give a message set for consumers that know magic 1 at most: headers are dropped.

    "older consumers simply would consume a message oblivious to there being any headers". Raises
    `RecordError` as `decode_message_set` does, and for a partial message at the end.
    """
    return _convert(data, checked_reading(check_crc, max_inflated), MESSAGE_SETS, _down)


def up_convert(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
) -> bytes:
    """Give a message set of magic 2 alone; messages of magic 0 and 1 become such without headers.

    "new consumer would simply get a message with empty headers". What was of magic 0 has the
    timestamp -1 and the type ``CreateTime``. Raises as `down_convert` does.
    """
    return _convert(data, checked_reading(check_crc, max_inflated), (MAGIC,), _up)


def _convert(
    data: bytes | bytearray | memoryview,
    reading: Reading,
    kept: tuple[int, ...],
    convert: Callable[[Whole], bytes],
) -> bytes:
    converted = []
    entries = Entries(to_bytes(data))
    for start, entry in entries:
        if entry[MAGIC_AT] in kept:
            converted.append(entry)
            continue
        try:
            converted.append(convert(read_whole(entry, start, reading)))
        except EncodeError as error:
            raise RecordError(f"cannot be converted: {error}", offset=start) from None
    if entries.partial:
        raise RecordError("ends within a message", offset=entries.partial.position)
    return b"".join(converted)


def _down(whole: Whole) -> bytes:
    return encode_batch(
        [Record(one.offset, one.timestamp, one.key, one.value, []) for one in whole.messages],
        magic=MESSAGE_SETS[-1],
        compression=whole.compression,
        timestamp_type=whole.messages[0].timestamp_type,
    )


def _up(whole: Whole) -> bytes:
    messages = whole.messages
    if whole.magic == 0:
        messages = [replace(one, timestamp_type=TimestampType.CREATE_TIME) for one in messages]
    return encode_message_set(messages, compression=whole.compression)
