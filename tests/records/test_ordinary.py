"""The fast path without kernels produces the same result as the checked path, or refuses."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from flexwire.errors import EncodeError, RecordError
from flexwire.records.body import (
    Unusual,
    _read_checked,
    _write_checked,
    read_ordinary,
    read_records,
    write_ordinary,
    write_records,
)
from flexwire.records.record import Record
from flexwire.wire.batch_layout import LEAST_RECORD
from flexwire.wire.limits import INT64_MAX, INT64_MIN
from tests.each import each

# Values on both sides of each boundary at which a varint takes one more byte.
SIZES = [0, 1, 63, 64, 511, 512, 8191, 8192]
DELTAS = [0, 1, -1, 63, 64, -64, -65, 511, 512, 8191, 8192, 2**20 - 1, 2**20, 2**31 - 1, -(2**31)]
FAR = [2**31, -(2**31) - 1, 2**40, -(2**40)]


def some(seed: int) -> list[Record]:
    chance = random.Random(seed)

    def text() -> bytes | None:
        return None if chance.random() < 0.2 else bytes(chance.choice([0, 3, 9, 70]))

    return [
        Record(
            7 + chance.choice(DELTAS),
            9 + chance.choice(DELTAS),
            text(),
            text(),
            [(bytes(chance.choice([0, 5, 70])), text()) for _ in range(chance.choice([0, 0, 2]))],
        )
        for _ in range(chance.choice([0, 1, 3]))
    ]


def outcome(function: Any, *given: Any) -> Any:
    try:
        return function(*given)
    except (RecordError, EncodeError) as error:
        return str(error)


def read_alike(data: bytes, count: int, budget: int = 1000) -> bool:
    """Compare the paths, and return whether the bytes were ordinary."""
    expected = outcome(_read_checked, data, 0, count, 7, 9, budget)
    if count <= min(budget, len(data) // LEAST_RECORD):
        assert outcome(read_records, data, 0, count, 7, 9, budget, None) == expected
    try:
        found = read_ordinary(data, 0, count, 7, 9, budget - count)
    except (Unusual, IndexError):
        return False
    assert found == expected
    return True


@each("size", SIZES)
@each("delta", DELTAS)
def test_all_that_is_ordinary_is_taken(size: int, delta: int) -> None:
    records = [
        Record(7 + delta, 9 + delta, bytes(size), bytes(size), [(bytes(size), None)]),
        Record(7, 9 + delta, None, None, [(b"", bytes(size)), (b"a", b"")]),
        Record(7 + delta, 9, b"", b"", []),
    ]
    raw, newest = write_ordinary(records, 7, 9)
    assert (raw, newest) == _write_checked(records, 7, 9)
    assert read_ordinary(raw, 0, 3, 7, 9, 3) == records
    with pytest.raises(Unusual):
        read_ordinary(raw, 0, 3, 7, 9, 2)


@pytest.mark.long
@pytest.mark.slow
def test_damaged_records_are_read_alike_or_refused() -> None:
    ordinary = 0
    for seed in range(60):
        records = some(seed)
        raw, _ = _write_checked(records, 7, 9)
        assert read_alike(raw, len(records))
        assert not read_alike(raw + b"\x00", len(records))
        chance = random.Random(seed)
        for at in range(min(len(raw), 200)):
            read_alike(raw[:at], len(records))
            for byte in (0, 1, 3, 127, 128, 255, raw[at] ^ 1, raw[at] + 2 & 255, raw[at] - 2 & 255):
                damaged = raw[:at] + bytes([byte]) + raw[at + 1 :]
                ordinary += read_alike(damaged, len(records), chance.choice([3, 1000]))
                read_alike(damaged, len(records) + 1)
    assert ordinary > 100


@each("base", [INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX])
@each("delta", [*DELTAS, *FAR])
def test_numbers_that_leave_64_bits_are_refused(base: int, delta: int) -> None:
    for other in (0, delta):
        records = [Record(base + other, base + delta, None, b"")]
        expected = outcome(_write_checked, records, base, base)
        assert outcome(write_records, records, base, base) == expected
        if isinstance(expected, str):
            with pytest.raises(Unusual):
                write_ordinary(records, base, base)
            continue
        assert read_records(expected[0], 0, 1, base, base, 9, None) == records
    raw, _ = (
        _write_checked([Record(delta, delta, None, b"")], 0, 0) if delta not in FAR else (b"", 0)
    )
    if raw:
        expected = outcome(_read_checked, raw, 0, 1, base, base, 9)
        assert outcome(read_records, raw, 0, 1, base, base, 9, None) == expected


class Text(bytes):
    """The data is an instance of a subclass of `bytes`."""


WRONG: list[Any] = [None, True, 1.5, "7", b"k", [], (), bytearray(b"k"), Text(b"k"), [b"k"], 2**63]


@each("field", ["offset", "timestamp", "key", "value", "headers", "header"])
@each("wrong", WRONG)
def test_what_is_not_ordinary_is_judged_by_the_checked_way(field: str, wrong: Any) -> None:
    for index, good in itertools.product((0, 1), ((b"a", b"b"), (b"a", None))):
        records = [Record(0, 0, None, b""), Record(1, 1, None, b"", [good])]
        if field == "header":
            for header in (
                wrong,
                (wrong, b""),
                (b"", wrong),
                [b"a", b"b"],
                (b"a", b"b", b"c"),
                "ab",
            ):
                records[1].headers = [good, header]  # type: ignore[list-item]
                expected = outcome(_write_checked, records, 0, 0)
                assert outcome(write_records, records, 0, 0) == expected
        else:
            setattr(records[index], field, wrong)
            assert outcome(write_records, records, 0, 0) == outcome(_write_checked, records, 0, 0)


def test_what_is_no_record_is_refused() -> None:
    class Other(Record):
        pass

    others: list[Any] = [None, {}, Other(0, 0, None, b"")]
    for one in others:
        assert outcome(write_records, [one], 0, 0) == outcome(_write_checked, [one], 0, 0)
        with pytest.raises((Unusual, AttributeError)):
            write_ordinary([one], 0, 0)
