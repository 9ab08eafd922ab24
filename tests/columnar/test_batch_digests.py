"""The kernel's digest of a batch equals the digest from Python objects."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest

from flexwire.columnar import batch_digests
from flexwire.columnar.batch_digests import (
    KEYS_DTYPE,
    SIZES,
    BatchDigests,
    class_of,
    hash_of,
    least_of,
)
from flexwire.columnar.records import RecordReader, RecordSelection
from flexwire.kernels import load_kernel
from flexwire.records import Compression, Record, encode_batch
from flexwire.records.decode import extents

if TYPE_CHECKING:
    import pyarrow as pa

SEED = 0xFEDC_BA98_7654_3210


def log(chance: random.Random, batches: int = 30) -> bytes:
    keys = [None, b"", b"k", b"key of 8", b"longer than 8", b"\xff" * 500]
    values = [None, b"", b"v" * chance.randrange(9000), b"v"]
    parts = []
    for number in range(batches):
        records = [
            Record(
                1000 * number + at,
                chance.choice([-1, 5, 1_700_000_000_000 + at]),
                chance.choice(keys),
                chance.choice(values),
                chance.choice([[], [(b"h", None), (b"i" * 70, b"j")]]),
            )
            for at in range(chance.randrange(1, 40))
        ]
        parts.append(
            encode_batch(
                records,
                compression=chance.choice([*Compression]),
                timestamp_type=chance.choice(["CreateTime", "LogAppendTime"]),
                producer_id=chance.choice([-1, 7]),
                is_control=chance.random() < 0.1,
            )
        )
    return b"".join(parts)


def digested(data: bytes, **wanted: Any) -> tuple[list[dict[str, Any]], list[Any], list[int], int]:
    keys: list[np.ndarray[Any, Any]] = [np.zeros(0, KEYS_DTYPE)]
    digests = BatchDigests(lambda some: keys.append(some.copy()), SEED)
    digests.at = 5
    reader = RecordReader(data, RecordSelection(("magic",), **wanted), mode="PERMISSIVE")
    reader.count_into(digests)
    found: list[pa.RecordBatch] = [*reader, digests.take()]
    digests.finish()
    rows = [row for one in found for row in one.to_pylist()]
    return rows, np.concatenate(keys).tolist(), digests.sizes.tolist(), len(reader.errors)


def by_objects(data: bytes, **wanted: Any) -> Any:
    with patch("flexwire.columnar.records.load_kernel", return_value=None):
        return digested(data, **wanted)


@pytest.mark.parametrize("seed", range(6))
def test_the_kernel_gives_what_objects_give(seed: int) -> None:
    data = log(random.Random(seed))
    assert digested(data) == by_objects(data)
    assert digested(data, offsets=(3005, 9010)) == by_objects(data, offsets=(3005, 9010))


@pytest.mark.parametrize("seed", range(3))
def test_damage_is_digested_by_neither(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(9):
        data = bytearray(log(chance, 6))
        for _ in range(chance.choice([1, 2, 9])):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        for checks in (True, False):
            assert digested(bytes(data), check_crc=checks) == by_objects(
                bytes(data), check_crc=checks
            )


def test_what_a_batch_comes_to_counted_by_hand() -> None:
    records = [
        Record(7, 3000, b"a", b"12345", []),
        Record(8, 1000, None, b"1", [(b"x", b"y")]),
        Record(9, 2000, b"bb", None, []),
    ]
    data = encode_batch(records, compression="zstd", producer_id=4)
    (row,), keys, sizes, errors = digested(data)
    plain = len(encode_batch(records))
    assert (row["position"], row["size"], row["uncompressed_size"]) == (5, len(data), plain)
    assert (row["records"], row["base_offset"], row["last_offset"]) == (3, 7, 9)
    assert (row["key_bytes"], row["value_bytes"], row["record_headers"]) == (3, 6, 1)
    assert (row["null_keys"], row["tombstones"]) == (1, 1)
    assert (row["oldest"], row["newest"], row["producer_id"], errors) == (1000, 3000, 4, 0)
    # Length, attributes, two deltas, two lengths and the count; deltas of -2000 take two bytes.
    each = [7 + 1 + 5, 7 + 1 + 1 + 4, 7 + 1 + 2]
    assert [size for size, count in enumerate(sizes) for _ in range(count)] == sorted(each)
    assert keys == [(*hash_of(b"a", SEED), 7, each[0]), (*hash_of(b"bb", SEED), 9, each[2])]
    assert extents(next(iter(decoded(data)))) == (plain, each)


def decoded(data: bytes) -> Any:
    from flexwire.records import decode_batches  # noqa: PLC0415 - only one test needs it

    return decode_batches(data)


@pytest.mark.parametrize("most", [1, 3, 64])
def test_more_keys_than_there_is_room_for_are_handed_over_before(most: int) -> None:
    data = log(random.Random(most))
    expected = digested(data)
    with patch.object(batch_digests, "MOST_KEYS", most):
        assert digested(data) == expected


@pytest.mark.parametrize("most", [1, 5])
def test_more_batches_than_are_held_are_given_before(most: int) -> None:
    data = log(random.Random(most))
    expected = digested(data)
    with patch.object(batch_digests, "_MOST_BATCHES", most):
        assert digested(data) == expected


def test_a_class_of_sizes_begins_with_its_least() -> None:
    sizes = [*range(5000), (1 << 20) - 1, 1 << 20, (1 << 31) - 1]
    for size in sizes:
        least = least_of(class_of(size))
        assert least <= size < least * (1 + 1 / 64) + 1
        assert class_of(least) == class_of(size)
    classes = [*map(class_of, sizes[:5000])]
    assert classes == sorted(classes)
    assert class_of(sizes[-1]) < SIZES


def test_the_kernel_is_there() -> None:
    assert load_kernel("record_sums") is not None, (
        "kernels run on every machine that runs the tests"
    )
