"""The rows of `flexwire records dump` for logs whose magic 2 is KIP-82's message.

The bytes do not say which of the two they are, so ``--dialect`` does. Messages of magic 0 and 1 may
stand among them. Rows are those of records, with headers that have their types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.capture.log_segment import Damage
from flexwire.cli.records_dump_records import finding, show_bytes, typed_value
from flexwire.errors import DecodeError, RecordError
from flexwire.records.kip82 import Message, decode_message_set
from flexwire.records.typed import TypedDialect
from flexwire.wire.batch_layout import ENTRY, LEAST_SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.log_segment import LogFile
    from flexwire.cli.records_dump_options import DumpOptions
    from flexwire.cli.records_dump_records import Row


def kip82_rows(log: LogFile, options: DumpOptions) -> Iterator[Row]:
    """The rows of a log, message by message; after a damaged one, a finding, the next follows."""
    dialect = TypedDialect(options.dialect)
    at = 0
    while at < log.size and (options.max_bytes is None or at < options.max_bytes):
        options.hear(log.path, at, log.size)
        head = log.read(at, ENTRY.size)
        size = ENTRY.size + ENTRY.unpack(head)[1] if len(head) == ENTRY.size else 0
        if not LEAST_SIZES[0] <= size <= log.size - at:
            reason = "no message begins here, or the log ends within it"
            yield finding(Damage(at, log.size - at, reason))
            return
        try:
            data, most = log.read(at, size), options.most_inflated
            messages = list(decode_message_set(data, max_inflated=most, dialect=dialect))
        except RecordError as error:
            yield finding(Damage(at, size, error.reason))
        else:
            for message in messages:
                if options.has_record(message.offset, message.timestamp):
                    yield from _message_rows(message, at, size, options)
        at += size
    options.hear(log.path, log.size, log.size)


def _message_rows(message: Message, at: int, size: int, options: DumpOptions) -> Iterator[Row]:
    row = {
        "type": "record",
        "offset": message.offset,
        "timestamp": message.timestamp,
        "sequence": -1,
        "keySize": -1 if message.key is None else len(message.key),
        "valueSize": -1 if message.value is None else len(message.value),
        "key": show_bytes(message.key, options.key_notation),
        "value": show_bytes(message.value, options.value_notation),
    }
    try:
        headers = [typed_value(key, typed) for key, typed in message.headers]
    except DecodeError as error:
        yield {**row, "headers": []}
        yield finding(Damage(at, size, f"offset {message.offset}: {error}"))
        return
    yield {**row, "headers": headers}
