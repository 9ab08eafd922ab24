"""Find the next record batch after damage, in a file or in memory.

Only batches of magic 2 can be found, because their crc proves that they are batches. A damaged
length is useless, so every possible beginning of a batch is tried. A limit on the total work
protects against hostile data.
"""

from __future__ import annotations

import re
from typing import Protocol

from flexwire.errors import RecordError
from flexwire.records.batch import MAX_INFLATED
from flexwire.records.decode import decode_batches
from flexwire.wire.batch_layout import ENTRY, HEADER_SIZE

MAX_BATCH_BYTES = MAX_INFLATED
"""The largest size of a batch, in bytes. A longer batch counts as damage. By default, a broker
accepts 1 MiB.
"""

_READ_AHEAD = 1024 * 1024
# The possible beginning of a batch of magic 2: an offset below 2^56, a length below 2^31, and the
# magic.
_LIKELY_BATCH = re.compile(rb"(?=\x00.{7}[\x00-\x7f].{7}\x02.{4}\x00[\x00-\x7f])", re.DOTALL)
# The number of likely places that one search may try without success, and the number of bytes that
# the search may read for these places.
_MOST_TRIES = 100_000
_MOST_TRIED_BYTES = 2 * MAX_BATCH_BYTES


class ByteSource(Protocol):
    """The bytes to search, in a file or in memory."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end."""


class BatchSearch:
    """Find batches after damage, with a limit on the total work for hostile data."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._tries = _MOST_TRIES
        self._bytes = _MOST_TRIED_BYTES

    def next_batch(self, start: int) -> int:
        """Return the start of the next whole batch with a correct crc, or the end of the data."""
        source = self._source
        while start < source.size:
            # Pieces overlap by the size of a header, so that every header is completely in one
            # piece.
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
