"""Records that a later record of the same key supersedes are found with any memory limit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest

from flexwire.columnar.batch_digests import KEYS_DTYPE, hash_of
from flexwire.storage.file_search import list_files
from flexwire.tables import log_rows
from flexwire.tables.log_rows import (
    PARTS,
    KeyRuns,
    KeyWork,
    SupersededCounts,
    last_of_each,
    superseded_between,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Key = tuple[int, int, int, int]


def expected(keys: Sequence[Key]) -> SupersededCounts:
    last: dict[tuple[int, int], Key] = {}
    gone: list[int] = []
    for one in keys:
        other = last.get(one[:2])
        last[one[:2]] = one if other is None or one[2] >= other[2] else other
        if other is not None:
            gone.append(min(one, other, key=lambda key: key[2])[3])
    return SupersededCounts(len(keys), len(gone), sum(gone))


def some(chance: random.Random, count: int, different: int) -> list[Key]:
    return [
        (*hash_of(b"%d" % chance.randrange(different), 1), offset, chance.randrange(10, 99))
        for offset in range(count)
    ]


def counted(keys: list[Key], place: Path, tasks: int, most: int) -> SupersededCounts:
    """Count in several tasks, and merge their results."""
    total, runs = SupersededCounts(), 0

    def spill(run: bytes) -> None:
        nonlocal runs
        (place / f"{runs:06d}").write_bytes(run)
        runs += 1

    with patch.object(log_rows, "MOST_HELD", most):
        each = -(-len(keys) // tasks)
        for start in range(0, len(keys), each):
            held = KeyRuns(spill)
            for first in range(start, min(start + each, len(keys)), 50):
                part = keys[first : min(first + 50, start + each)]
                held.add(np.array(part, KEYS_DTYPE))
            held.close(is_whole=tasks == 1)
            total = total.plus(held.superseded)
        found = list_files([place], lambda _: True, "is there") if runs else []
        for _, first, last in KeyWork.of(0, len(keys), 150):
            if runs > 1:
                total = total.plus(superseded_between(found, first, last))
    return total


@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize("most", [40, 200, 1 << 20])
@pytest.mark.parametrize("different", [3, 150, 10_000])
def test_exactly_what_is_superseded_is_counted(
    tmp_path: Path, different: int, most: int, tasks: int
) -> None:
    keys = some(random.Random(different), 900, different)
    assert counted(keys, tmp_path, tasks, most) == expected(keys)


def test_hashes_that_are_half_the_same_are_different_keys() -> None:
    keys = [(7, 1, 0, 10), (7, 2, 1, 20), (7, 1, 2, 30), (7, 2, 3, 40), (9, 1, 4, 50)]
    kept, superseded = last_of_each(np.array(keys, KEYS_DTYPE))
    assert kept.tolist() == [keys[2], keys[3], keys[4]]
    assert superseded == SupersededCounts(0, 2, 30)


def test_the_highest_offset_stays_where_offsets_go_back() -> None:
    keys = [(7, 1, 9, 10), (7, 1, 3, 20), (2**64 - 1, 5, 1, 1), (7, 1, 4, 40)]
    kept, superseded = last_of_each(np.array(keys, KEYS_DTYPE))
    assert kept.tolist() == [keys[0], keys[2]]
    assert superseded == SupersededCounts(0, 2, 60)


def test_hashes_that_differ_in_their_last_bits_alone_are_in_order() -> None:
    keys = [(2**40 + one, 0, offset, 1) for offset, one in enumerate([3, 1, 2, 1, 0])]
    kept, superseded = last_of_each(np.array(keys, KEYS_DTYPE))
    assert [one[:3:2] for one in kept.tolist()] == [
        (2**40 + one, offset) for one, offset in [(0, 4), (1, 3), (2, 2), (3, 0)]
    ]
    assert superseded.records == 1


def test_no_keys_are_nothing() -> None:
    nothing: Any = np.zeros(0, KEYS_DTYPE)
    assert last_of_each(nothing)[1] == SupersededCounts()
    assert [(one.first, one.last) for one in KeyWork.of(3, 1, 10)] == [(0, PARTS)]
    ends = [one.last for one in KeyWork.of(3, 1000, 10)]
    assert (len(ends), ends[-1], ends == sorted({*ends})) == (100, PARTS, True)
