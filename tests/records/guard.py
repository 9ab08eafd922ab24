"""Read records that end at a protected page; when run as a program, this may crash.

``python -m tests.records.guard ROUNDS [--batches] [--lie]``: with ``--batches``, the kernels read
whole batches; with ``--lie``, the kernel is told that there is one more byte. The crash shows that
the page guards the memory.
"""

from __future__ import annotations

import random
import sys

from tests.kernels.guard import Guarded
from tests.records.batches import batch, record
from tests.records.kernels import REFUSED, batch_functions, functions, read_ahead

_BYTES = [0, 1, 2, 3, 0x7F, 0x80, 0xFF]
RECORDS = [
    record(),
    record(1, 5, b"key", b"value", [(b"a", b"1"), (b"a", None)]),
    record(70, 9000, b"k" * 70, b"v" * 200, [(b"a", b"2"), (b"b", b""), (b"", None)]),
    record(-5, 2**62, b"", None, [(b"h" * 64, b"w" * 64)] * 3),
]


def main(rounds: int, *, lie: bool) -> None:
    """Read damaged records; the result contains at most as many bytes as the input."""
    read = functions()[0]
    guarded = Guarded()
    source = random.Random(rounds)
    sound = 0
    for _ in range(rounds):
        chosen = source.choices(RECORDS, k=source.randrange(4))
        raw = bytearray(b"".join(chosen))
        for _ in range(source.choice([0, 1, 1, 2])):
            if raw:
                raw[source.randrange(len(raw))] = source.choice([*_BYTES, source.randrange(256)])
        data = bytes(raw[: source.randint(0, len(raw))] if source.random() < 0.5 else raw)
        count = source.choice([len(chosen), len(chosen), len(data) // 7, -1])
        given = guarded.put_bytes(data, lie=lie)
        found = read(given, 0, count, 0, 0, len(data), None)
        # This object must be freed before the memory that holds its data.
        del given
        if found is not REFUSED:
            parts = [part for one in found for part in (one.key, one.value) if part]
            assert sum(map(len, parts)) <= len(data)
            sound += 1
    print(f"{rounds} rounds, {sound} read")  # noqa: T201 - the test reads this output


def main_batches(rounds: int, *, lie: bool) -> None:
    """Read damaged batches, both headers and records, without checking CRCs."""
    read_fetch, read_batch, _ = batch_functions()
    guarded = Guarded()
    source = random.Random(rounds)
    sound = 0
    for _ in range(rounds):
        bodies = [
            source.choices(RECORDS, k=source.randrange(4)) for _ in range(source.randint(1, 3))
        ]
        raw = bytearray(b"".join(batch(b"".join(one), len(one)) for one in bodies))
        for _ in range(source.choice([0, 1, 1, 2])):
            raw[source.randrange(len(raw))] = source.choice([*_BYTES, source.randrange(256)])
        data = bytes(raw[: source.randint(1, len(raw))] if source.random() < 0.3 else raw)
        given = guarded.put_bytes(data, lie=lie)
        found, end = read_fetch(given, 0, False)
        parts = [part for one in found for part in (one.key, one.value) if part]
        assert sum(map(len, parts)) <= end <= len(data)
        ahead = read_ahead(given, 0, False, 1000)
        for one in ahead:
            # A value that consists of all the data is the guarded memory itself.
            sound += read_batch(one) is not REFUSED
            one.data = b""
        del ahead, given
    print(f"{rounds} rounds, {sound} read")  # noqa: T201 - the test reads this output


if __name__ == "__main__":
    (main_batches if "--batches" in sys.argv else main)(int(sys.argv[1]), lie="--lie" in sys.argv)
