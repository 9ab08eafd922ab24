"""The rows of `flexwire records dump --dialect kip82`: a log of the messages of KIP-82's document.

One entry of the log is read at a time. It is a message, or a wrapper of compressed ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.capture.log_segment import Damage
from flexwire.cli.records_dump_records import RecordRows, finding
from flexwire.errors import CodecError, RecordError
from flexwire.records import Record
from flexwire.records.conventions import CONVENTIONS
from flexwire.records.kip82 import decode_message_set
from flexwire.wire.batch_layout import ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.log_segment import LogFile
    from flexwire.cli.records_dump_options import DumpOptions
    from flexwire.cli.records_dump_records import Row

_KIP_82 = CONVENTIONS["kip-82"]


def kip82_rows(log: LogFile, options: DumpOptions) -> Iterator[Row]:
    """Give a row for each message, and a finding for each entry that is damaged.

    What follows an entry whose size cannot be is not looked at: its bytes do not say where the next
    one begins.
    """
    position = 0
    records = RecordRows(log.path, replace(options, convention=options.convention or _KIP_82))
    while position < log.size:
        if options.max_bytes is not None and position >= options.max_bytes:
            return
        options.hear(log.path, position, log.size)
        left = log.size - position
        head = log.read(position, ENTRY.size)
        size = ENTRY.size + ENTRY.unpack(head)[1] if len(head) == ENTRY.size else 0
        if not ENTRY.size < size <= left:
            reason = f"an entry of {size} bytes, but {left} are left" if size else "an entry is cut"
            yield finding(Damage(position, left, reason))
            return
        yield from _entry_rows(log.read(position, size), position, options, records)
        position += size
    options.hear(log.path, log.size, log.size)


def _entry_rows(
    data: bytes, position: int, options: DumpOptions, records: RecordRows
) -> Iterator[Row]:
    try:
        messages = [*decode_message_set(data)]
    except RecordError as error:
        yield finding(Damage(position, len(data), error.reason))
        return
    for message in messages:
        if not options.has_record(message.offset, message.timestamp):
            continue
        try:
            pairs = [(key.encode(), value) for key, value in message.headers.to_pairs()]
        except CodecError as error:
            pairs = []
            yield finding(Damage(position, len(data), f"offset {message.offset}: {error}"))
        record = Record(message.offset, message.timestamp, message.key, message.value, pairs)
        yield records.plain_row(record)
