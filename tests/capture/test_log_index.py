"""Offset and time indexes are checked: whole, damaged, and inconsistent with their log."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest

from flexwire.logs.segments import (
    Damage,
    OffsetEntry,
    TimeEntry,
    open_log,
    read_offset_index,
    read_time_index,
)
from tests.capture.log_vectors import BASE, data_of, write

if TYPE_CHECKING:
    from pathlib import Path

LOG, INDEX, TIME_INDEX = (f"orders-none-0/{BASE}.{kind}" for kind in ("log", "index", "timeindex"))


def offsets(root: Path, data: bytes, base_offset: int = 0) -> list[OffsetEntry | Damage]:
    with open_log(write(root, LOG)) as log, open_log(write(root, INDEX, data)) as index:
        return list(read_offset_index(index, base_offset, log))


def times(root: Path, data: bytes, base_offset: int = 0) -> list[TimeEntry | Damage]:
    with open_log(write(root, LOG)) as log, open_log(write(root, TIME_INDEX, data)) as index:
        return list(read_time_index(index, base_offset, log))


def reasons(found: list[OffsetEntry | Damage] | list[TimeEntry | Damage]) -> list[tuple[int, str]]:
    return [(one.position, one.reason) for one in found if isinstance(one, Damage)]


def offset_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def test_offsets_are_relative_to_the_base_offset(tmp_path: Path) -> None:
    with open_log(write(tmp_path, INDEX)) as index:
        assert list(read_offset_index(index, 2**40, None)) == [
            OffsetEntry(2**40 + 20, 738),
            OffsetEntry(2**40 + 39, 1389),
            OffsetEntry(2**40 + 40, 2669),
        ]
    with open_log(write(tmp_path, TIME_INDEX)) as index:
        assert next(read_time_index(index, 2**40, None)) == TimeEntry(1700000020000, 2**40 + 20)


def test_what_a_broker_wrote_has_nothing_wrong_with_it(tmp_path: Path) -> None:
    assert reasons(offsets(tmp_path, data_of(INDEX))) == []
    assert reasons(times(tmp_path, data_of(TIME_INDEX))) == []


@pytest.mark.parametrize("entries", [1, 2, 1000, 2**18])
def test_zeros_after_the_entries_are_room_for_more(tmp_path: Path, entries: int) -> None:
    whole = offsets(tmp_path, data_of(INDEX))
    assert offsets(tmp_path, data_of(INDEX) + bytes(8 * entries)) == whole
    assert offsets(tmp_path, bytes(8 * entries)) == []
    assert times(tmp_path, bytes(12 * entries)) == []


def test_zeros_before_more_entries_are_damage(tmp_path: Path) -> None:
    found = offsets(tmp_path, data_of(INDEX) + bytes(16) + offset_index((41, 2744)))
    assert reasons(found) == [(24, "an entry of zeros, but other bytes follow")]


def test_the_first_record_of_all_may_be_at_time_zero(tmp_path: Path) -> None:
    found = times(tmp_path, time_index((0, 0), (1700000020000, 20)))
    assert found[0] == TimeEntry(0, 0)
    assert reasons(found) == [(0, "no batch ends at offset 0; the next batch ends at 10")]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            [(20, 738), (20, 1389)],
            ["offset 20 after 20", "the entry has offset 20, but the batch at 1389 ends"],
        ),
        ([(39, 1389), (20, 738)], ["offset 20 after 39", "position 738 after 1389"]),
        (
            [(-1, 738)],
            ["offset -1 after -1", "the entry has offset -1, but the batch at 738 ends with 20"],
        ),
        ([(20, 739)], ["no batch at position 739 of the log"]),
        ([(20, 5818)], ["position 5818 is not within the 5818 bytes of the log"]),
        ([(20, -738)], ["position -738 after -1", "position -738 is not within"]),
        ([(21, 738)], ["the entry has offset 21, but the batch at 738 ends with 20"]),
    ],
)
def test_an_offset_index_at_odds_with_its_log(
    tmp_path: Path, entries: list[tuple[int, int]], expected: list[str]
) -> None:
    found = [reason for _, reason in reasons(offsets(tmp_path, offset_index(*entries)))]
    assert len(found) == len(expected)
    for reason, start in zip(found, expected, strict=True):
        assert reason.startswith(start)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            [(1700000020001, 20)],
            ["the entry has timestamp 1700000020001, but the batch that ends at"],
        ),
        ([(1700000020000, 19)], ["no batch ends at offset 19; the next batch ends at 20"]),
        ([(1700000999999, 42)], ["offset 42 is beyond the end of the log"]),
        # The same batch may occur twice, the second time with a later timestamp.
        (
            [(1700000020000, 20), (1700000020001, 20)],
            ["the entry has timestamp 1700000020001, but the batch that ends at 20 has timestamp"],
        ),
        # The descending entry is not compared with the log. Later entries are compared.
        (
            [(1700000039000, 39), (1700000020000, 20), (1700000100001, 40)],
            [
                "timestamp 1700000020000 after",
                "offset 20 after 39",
                "the entry has timestamp 1700000100001, but",
            ],
        ),
    ],
)
def test_a_time_index_at_odds_with_its_log(
    tmp_path: Path, entries: list[tuple[int, int]], expected: list[str]
) -> None:
    found = [reason for _, reason in reasons(times(tmp_path, time_index(*entries)))]
    assert len(found) == len(expected)
    for reason, start in zip(found, expected, strict=True):
        assert reason.startswith(start)


@pytest.mark.parametrize("kind", [INDEX, TIME_INDEX])
def test_half_an_entry_is_told(tmp_path: Path, kind: str) -> None:
    data = data_of(kind)
    size = 8 if kind == INDEX else 12
    read = offsets if kind == INDEX else times
    for cut in range(len(data)):
        found = read(tmp_path, data[:cut])
        whole = cut - cut % size
        assert len([one for one in found if not isinstance(one, Damage)]) == whole // size
        assert [position for position, _ in reasons(found)] == ([whole] if cut % size else [])


def test_any_bytes_are_read_to_their_end(tmp_path: Path) -> None:
    picked = random.Random(11)
    for size in range(0, 200, 3):
        data = picked.randbytes(size)
        assert len(offsets(tmp_path, data, -5)) >= size // 8
        assert len(times(tmp_path, data, 2**62)) >= size // 12
