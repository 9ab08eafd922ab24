"""Read record batches into columns; all buffers end at protected pages.

``python -m tests.columnar.record_guard ROUNDS [--lie input|output]``: with a lie, the kernel is
told that there is one more byte, or gets columns that are too small. The crash shows that the
protected pages work.
"""

from __future__ import annotations

import ctypes
import random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from flexwire.columnar import record_columns, record_sums, records
from flexwire.columnar.record_columns import RECORD_COLUMNS
from flexwire.columnar.record_sums import RecordSizeSums
from flexwire.columnar.records import Inflater, RecordReader, RecordSelection
from flexwire.records import Record, encode_batch
from tests.guard_arguments import asked
from tests.kernels.guard import Guarded

# A column of bytes has this many writable bytes beyond its capacity.
SPARE = 64
# Offsets and flags of a column take the most memory: four bytes for every two bytes of the data.
LONGEST = 40_000
_BYTES = [0, 1, 2, 3, 0x7F, 0x80, 0xFF]


class Rooms:
    """Buffers that end at a protected page. One read uses several; then the first is reused."""

    def __init__(self, *, short: int) -> None:
        self.pages = [Guarded() for _ in range(16)]
        self.short = short
        self.taken = 0

    def take(self, size: int) -> Any:
        """Return a buffer that ends, except for alignment, at its guard."""
        return _array(self._next(size), size)

    def take_buffer(self, size: int) -> pa.Buffer:
        """Return the buffer as a pyarrow buffer."""
        return pa.foreign_buffer(self._next(size), size, self)

    def _next(self, size: int) -> int:
        pages = self.pages[self.taken % len(self.pages)]
        self.taken += 1
        return pages.end - size + self.short


def _array(address: int, size: int) -> Any:
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(memory, np.uint8)


def batches(source: random.Random) -> list[bytes]:
    """Return valid batches with all kinds of records."""
    return [
        encode_batch(
            [
                Record(
                    number,
                    source.randrange(10**6),
                    source.choice([None, b"", b"k" * source.randrange(20)]),
                    source.choice([None, b"", b"v" * source.randrange(300)]),
                    [(b"h" * source.randrange(20), source.choice([None, b"w" * 15]))]
                    * source.choice([0, 0, 1, 3]),
                )
                for number in range(source.choice([1, 5, 20]))
            ]
        )
        for _ in range(20)
    ]


def main(rounds: int, lie: str | None) -> None:
    """Read damaged batches; the result never has more rows than bytes."""
    source = random.Random(rounds)
    sound = batches(source)
    data = Guarded()
    rooms = Rooms(short=SPARE + 1 if lie == "output" else 0)
    read = count = 0
    for _ in range(rounds):
        raw = bytearray(b"".join(source.choices(sound, k=source.choice([1, 1, 2]))))[:LONGEST]
        for _ in range(source.choice([0, 1, 1, 2, 4])):
            raw[source.randrange(len(raw))] = source.choice([*_BYTES, source.randrange(256)])
        cut = len(raw) if source.random() < 0.7 else source.randrange(1, len(raw))
        begin = data.put(bytes(raw[:cut]))
        given = _array(begin, cut + (1 if lie == "input" else 0))
        columns = tuple(name for name in RECORD_COLUMNS if source.random() < 0.8) or ("offset",)
        wanted = RecordSelection(columns=columns, check_crc=False)
        inflater = source.choice([Inflater, _Elsewhere])
        with (
            patch.object(record_columns, "allocate_room", rooms.take_buffer),
            # Even small buffers have a guard.
            patch.object(record_columns, "_SMALL", -1),
            patch.object(record_sums, "allocate", rooms.take),
            patch.object(records, "Inflater", inflater),
        ):
            rows = sum(len(batch) for batch in RecordReader(given, wanted))
            sums = RecordSizeSums(["key_size", "value_size", "producer_id"])
            reader = RecordReader(given, wanted)
            reader.count_into(sums)
            taken = [*reader, sums.take()]
        counted = sum(sum(one["records"].to_pylist()) for one in taken)
        # Records that do not fit into empty sums are left to Python objects, which are not used
        # here.
        assert counted <= rows
        count += counted
        assert rows <= cut
        read += rows
    print(f"{rounds} rounds, {read} records read, {count} counted")  # noqa: T201 - the test reads this output


class _Elsewhere(Inflater):
    """Stand in for inflating: move the records of a group's last batch to the end of a buffer."""

    def __init__(self, data: Any, max_inflated: int, ratio: int | None = None) -> None:
        super().__init__(data, max_inflated, ratio)
        self._pages = Guarded()

    def inflate_group(self, table: Any, enough: int) -> int:
        last = super().inflate_group(table, enough)
        batch = table[last - 1]
        start, end = int(batch["start"]), int(batch["end"])
        if start < end:
            begin = self._pages.put(ctypes.string_at(start, end - start))
            batch["start"], batch["end"] = begin, begin + end - start
        return last


def _skip(reader: RecordReader) -> None:
    """Stand in for reading with Python objects."""
    reader.position = len(reader._data)
    reader._found = reader._found[:0]


if __name__ == "__main__":
    # Only kernels are guarded; refused batches are not read. The table of sums has room for only 8
    # entries.
    with patch.object(RecordReader, "_read_one", _skip), patch.object(record_sums, "_MOST", 8):
        main(*asked(__doc__, "input", "output"))
