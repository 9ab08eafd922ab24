"""Finding the next record batch after damage, in a file or in memory.

Only magic 2 can be found: its crc proves that a candidate is a batch. A damaged length says
nothing, so every possible beginning of a batch is tried, within a limit on the total cost of
hostile data.
"""

from __future__ import annotations

import re
from typing import Protocol

from flexwire.errors import RecordError
from flexwire.records.batch import MAX_INFLATED
from flexwire.records.decode import decode_batches
from flexwire.wire.batch_layout import ENTRY, HEADER_SIZE

MAX_BATCH_BYTES = MAX_INFLATED
"""A longer batch is damage; by default a broker takes 1 MiB."""

_READ_AHEAD = 1024 * 1024
# The possible beginning of a batch of magic 2: offset below 2^56, length below 2^31, magic,
_LIKELY_BATCH = re.compile(rb"(?=\x00.{7}[\x00-\x7f].{7}\x02.{4}\x00[\x00-\x7f])", re.DOTALL)
# The most likely places that one search tries in vain, and the most bytes that it reads for them.
_MOST_TRIES = 100_000
_MOST_TRIED_BYTES = 2 * MAX_BATCH_BYTES


class ByteSource(Protocol):
    """The bytes to search: a file, or bytes in memory."""

    @property
    def size(self) -> int:
        """How many bytes there are."""

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes, or as many as there are."""


class BatchSearch:
    """Finds batches after damage, within a limit on the total cost of hostile data."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._tries = _MOST_TRIES
        self._bytes = _MOST_TRIED_BYTES

    def next_batch(self, start: int) -> int:
        """Find where a whole batch with a correct crc begins, or the end of the data."""
        source = self._source
        while start < source.size:
            # Pieces overlap by a header, so that every header is whole in one of them.
            piece = source.read(start, _READ_AHEAD + HEADER_SIZE)
            for match in _LIKELY_BATCH.finditer(piece):
                if self._tries < 0 or self._bytes < 0:
                    return source.size
                if self._is_batch(start + match.start()):
                    return start + match.start()
            start += _READ_AHEAD
        return source.size

    def _is_batch(self, position: int) -> bool:
        head = self._source.read(position, ENTRY.size)
        size = ENTRY.size + ENTRY.unpack(head)[1] if len(head) == ENTRY.size else 0
        fits = HEADER_SIZE <= size <= min(MAX_BATCH_BYTES, self._source.size - position)
        try:
            if fits and next(decode_batches(self._source.read(position, size)), None):
                return True
        except RecordError:
            pass
        self._tries -= 1
        self._bytes -= size if fits else HEADER_SIZE
        return False
