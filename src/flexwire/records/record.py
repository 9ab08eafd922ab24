"""A record: one key and value of a partition, with its record headers."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

RecordHeader: TypeAlias = tuple[bytes, bytes | None]


class Record(msgspec.Struct, gc=False):
    """One record of a record batch or message set.

    ``timestamp`` is in milliseconds since the epoch, -1 where there is none (magic 0). ``headers``
    keep their order, duplicates, empty keys and null values; keys are bytes, because nothing on
    the wire makes them UTF-8.

    >>> record = Record(7, 1700000000000, None, b"paid", [(b"trace", b"a1"), (b"trace", None)])
    >>> record.offset, record.headers[1]
    (7, (b'trace', None))
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[RecordHeader] = []
