"""A kernel and Python objects count the same records, whatever the sizes of the records are."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from flexwire.columnar import record_sums
from flexwire.columnar.record_sums import RecordSizeSums, is_sums
from flexwire.columnar.records import RecordReader, RecordSelection
from flexwire.errors import RecordError
from flexwire.kernels import load_kernel
from flexwire.records import Compression, Record, decode_batches, encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.columnar.records import Mode

    Sums = Counter[tuple[Any, ...]]

GROUPS = ("key_size", "value_size", "producer_id", "compression")
COLUMNS = ("key", "value", "producer_id", "compression")


def batch(chance: random.Random, count: int, sizes: Iterable[int | None], first: int = 0) -> bytes:
    choices = [None if one is None else b"x" * one for one in sizes]
    headers: list[list[tuple[bytes, bytes | None]]] = [[], [], [(b"h", None), (b"i" * 70, b"j")]]
    records = [
        Record(
            first + at,
            1000 + at,
            chance.choice(choices),
            chance.choice(choices),
            chance.choice(headers),
        )
        for at in range(count)
    ]
    producer = chance.choice([-1, 7, 1 << 40])
    return encode_batch(records, compression=chance.choice([*Compression]), producer_id=producer)


def counted(
    data: bytes, groups: tuple[str, ...] = GROUPS, *, mode: Mode = "FAILFAST", **wanted: Any
) -> tuple[Sums, Sums, Sums, int]:
    """Count with the kernel; count refused batches by rows, and return how many rows those are."""
    sums = RecordSizeSums(groups)
    reader = RecordReader(data, RecordSelection(COLUMNS, **wanted), mode=mode)
    reader.count_into(sums)
    parts, rows = [], 0
    for one in reader:
        rows += 0 if is_sums(one) else len(one)
        parts.append(one if is_sums(one) else of_rows(one))
    records, keys, values = Counter[Any](), Counter[Any](), Counter[Any]()
    for one in (*parts, sums.take()):
        for row in one.to_pylist():
            group = tuple(row[name] for name in groups)
            assert row["records"] > 0
            records[group] += row["records"]
            keys[group] += row["key_bytes"]
            values[group] += row["value_bytes"]
    return records, keys, values, rows


def of_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.to_pylist()
    for row in rows:
        for name in ("key", "value"):
            row[f"{name}_size"] = None if row[name] is None else len(row[name])
            row[f"{name}_bytes"] = row[f"{name}_size"] or 0
        row["records"] = 1
    return pa.RecordBatch.from_pylist(rows)


def expected(data: bytes, groups: tuple[str, ...] = GROUPS, **wanted: Any) -> tuple[Sums, ...]:
    records, keys, values = Counter[Any](), Counter[Any](), Counter[Any]()
    ranges = RecordSelection(**wanted)
    for one in decode_batches(data):
        try:
            kept = [record for record in one.records if ranges.keeps(record)]
        except RecordError:
            continue
        for record in kept:
            key, value = record.key, record.value
            facts = {
                "key_size": None if key is None else len(key),
                "value_size": None if value is None else len(value),
                "producer_id": one.producer_id,
                "compression": str(one.compression),
            }
            group = tuple(facts[name] for name in groups)
            records[group] += 1
            keys[group] += len(key or b"")
            values[group] += len(value or b"")
    return records, keys, values


@pytest.mark.parametrize("seed", range(8))
def test_what_the_kernel_counts_objects_count(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [None, 0, 1, 63, 64, chance.randrange(9000)]
    data = b"".join(
        batch(chance, chance.randrange(1, 60), sizes, 100 * one)
        for one in range(chance.randint(1, 40))
    )
    groups = tuple(chance.sample(GROUPS, chance.randint(0, 4)))
    *found, rows = counted(data, groups)
    assert tuple(found) == expected(data, groups)
    assert rows == 0, "kernels refuse nothing that is sound"
    low, high = sorted(chance.choices(range(4000), k=2))
    ranges: list[dict[str, Any]] = [
        {"offsets": (low, high)},
        {"timestamps": (1010, 1010 + low % 40)},
    ]
    for wanted in ranges:
        *found, _ = counted(data, groups, **wanted)
        assert tuple(found) == expected(data, groups, **wanted)


def test_without_kernels_all_are_rows() -> None:
    data = batch(random.Random(1), 50, [None, 3])
    with patch("flexwire.columnar.records.load_kernel", return_value=None):
        *found, rows = counted(data)
    assert rows == 50
    assert tuple(found) == expected(data)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_batch_counts_for_nothing(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        parts = [
            batch(chance, chance.randrange(1, 30), [None, 0, 5, 90], 30 * one) for one in range(5)
        ]
        damaged = bytearray(parts[2])
        for _ in range(chance.choice([1, 1, 3])):
            damaged[chance.randrange(61, len(damaged))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        parts[2] = bytes(damaged)
        data = b"".join(parts)
        *found, _ = counted(data, mode="PERMISSIVE", check_crc=False)
        records, keys, values = Counter[Any](), Counter[Any](), Counter[Any]()
        for one in RecordReader(data, RecordSelection(COLUMNS, check_crc=False), mode="PERMISSIVE"):
            for row in of_rows(one).to_pylist():
                group = tuple(row[name] for name in GROUPS)
                records[group] += 1
                keys[group] += row["key_bytes"]
                values[group] += row["value_bytes"]
        assert tuple(found) == (records, keys, values)


@pytest.mark.parametrize("seed", range(4))
def test_sums_that_share_places_are_told_apart_by_what_their_batches_have_alike(seed: int) -> None:
    chance = random.Random(seed)
    # All sizes are in one table, which has room for twice as many.
    data = b"".join(batch(chance, 3, [5], 10 * one) for one in range(60))
    with room_for(16):
        *found, rows = counted(data)
    assert len(found[0]) == 15
    assert rows == 0
    assert tuple(found) == expected(data)


def test_a_batch_of_another_count_than_it_says_counts_for_nothing() -> None:
    part = encode_batch([Record(at, 1000, b"k", b"v" * 9, []) for at in range(5)])
    for count in (4, 6):
        wrong = part[:57] + count.to_bytes(4, "big") + part[61:]
        *found, rows = counted(part + wrong + part, mode="PERMISSIVE", check_crc=False)
        assert tuple(found) == expected(part + part)
        assert rows == 0


def test_a_batch_with_a_wrong_crc_counts_for_nothing() -> None:
    part = encode_batch([Record(at, 1000, b"k", b"v" * 9, []) for at in range(5)])
    at = part.index(b"vvv")
    wrong = part[:at] + b"w" + part[at + 1 :]
    *found, _ = counted(part + wrong + part, mode="PERMISSIVE")
    assert tuple(found) == expected(part + part)
    *found, _ = counted(part + wrong + part, check_crc=False)
    assert tuple(found) == expected(part * 3)


def room_for(most: int) -> Any:
    return patch.object(record_sums, "_MOST", most)


@pytest.mark.parametrize("most", [1, 2, 16, 64])
def test_more_sums_than_there_is_room_for_are_given_before(most: int) -> None:
    chance = random.Random(most)
    data = b"".join(batch(chance, 40, chance.sample(range(300), 3), 40 * one) for one in range(30))
    with room_for(most):
        *found, rows = counted(data)
    assert tuple(found) == expected(data)
    # A batch with up to nine pairs of sizes does not fit into a smaller table, but is still read.
    assert (rows > 0) == (most < 9)


def test_sizes_without_end_take_no_more_memory() -> None:
    chance = random.Random(5)
    data = b"".join(batch(chance, 100, range(100, 2000), 100 * one) for one in range(20))
    held = pa.total_allocated_bytes()
    with room_for(128):
        given = 0
        sums = RecordSizeSums(GROUPS)
        reader = RecordReader(data, RecordSelection(COLUMNS))
        reader.count_into(sums)
        for one in reader:
            assert is_sums(one)
            assert len(one) <= 128
            given += 1
    assert given > 10
    assert sums.take().num_rows <= 128
    del one
    assert pa.total_allocated_bytes() - held < 1 << 26


def test_the_kernel_is_there() -> None:
    assert load_kernel("record_sums") is not None, "kernels run on every machine that tests"
