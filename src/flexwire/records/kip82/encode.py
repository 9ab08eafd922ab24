"""Writing sets of KIP-82's messages, with wrapper messages as in magic 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.arguments import to_list
from flexwire.errors import EncodeError, short
from flexwire.records.attributes import Compression, TimestampType, pack_attributes
from flexwire.records.deflate import checked_level, deflate
from flexwire.records.headers import Headers
from flexwire.records.kip82.message import KNOWN_COMPRESSIONS, MAGIC, Message, write_entry
from flexwire.records.values import checked_integer, checked_nullable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def encode_message_set(
    messages: Iterable[Message],
    *,
    compression: Compression | str = Compression.NONE,
    level: int | None = None,
) -> bytes:
    """Write a message set: one entry for each message or, compressed, one wrapper message.

    A wrapper has one timestamp type for all that is in it and, with ``LogAppendTime``, one
    timestamp. ``level`` is that of `flexwire.records.encode_batch`. Raises `EncodeError`, with the
    message and the field, for what cannot be written.
    """
    try:
        return _encode(to_list(messages, "messages", "an iterable of Messages"), compression, level)
    except EncodeError as error:
        error.message = "KIP-82 message set"
        raise


def _encode(messages: Sequence[Any], compression: str, level: int | None) -> bytes:
    if not isinstance(compression, str) or compression not in KNOWN_COMPRESSIONS:
        raise EncodeError(f"KIP-82 does not have {short(compression)}", path="compression")
    for index, message in enumerate(messages):
        if not isinstance(message, Message):
            reason = f"expected a Message, got {short(message)}"
            raise EncodeError(reason, path=f"messages[{index}]")
    level = checked_level(Compression(compression), level)
    if compression == Compression.NONE or not messages:
        return _write_each(messages, 0)
    return _write_wrapper(messages, Compression(compression), level)


def _write_wrapper(
    messages: Sequence[Message], compression: Compression, level: int | None
) -> bytes:
    types = {str(message.timestamp_type) for message in messages}
    if len(types) > 1:
        reason = f"a wrapper message has one, got {' and '.join(sorted(types))}"
        raise EncodeError(reason, path="timestamp_type")
    # Offsets inside are relative, but where the last message's is 0, readers take them as they are.
    last_offset = checked_integer(messages[-1].offset, 64, f"messages[{len(messages) - 1}].offset")
    base_offset = checked_integer(messages[0].offset, 64, "messages[0].offset")
    inner = _write_each(messages, base_offset if last_offset else 0)
    timestamps = {message.timestamp for message in messages}
    if types == {TimestampType.LOG_APPEND_TIME} and len(timestamps) > 1:
        reason = f"a wrapper message with {TimestampType.LOG_APPEND_TIME} has one for all"
        raise EncodeError(reason, path="timestamp")
    return write_entry(
        last_offset,
        None,
        deflate(compression, inner, level=level, magic=MAGIC),
        attributes=pack_attributes(MAGIC, compression, types.pop(), {}),
        timestamp=max(timestamps),
        headers=b"",
    )


def _write_each(messages: Sequence[Message], base_offset: int) -> bytes:
    written = []
    for index, message in enumerate(messages):
        try:
            written.append(_write(message, base_offset))
        except EncodeError as error:
            error.path = f"messages[{index}].{error.path}".rstrip(".")
            raise
    return b"".join(written)


def _write(message: Message, base_offset: int) -> bytes:
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
