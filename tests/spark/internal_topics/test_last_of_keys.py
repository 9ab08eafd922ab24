"""Only rows that a later row with the same key replaces are left out."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from flexwire.answers.state import records as module
from flexwire.answers.state.records import last_of_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 5_000
LIVING = 0.9


def rows_of(keys: int, chance: random.Random) -> list[dict[str, object]]:
    return [
        {
            "key": b"%d" % chance.randrange(keys),
            "value": chance.randbytes(9) if chance.random() < LIVING else None,
            "at": at,
        }
        for at in range(ROWS)
    ]


def batches_of(rows: list[dict[str, object]], chance: random.Random) -> Iterator[pa.RecordBatch]:
    schema = pa.schema({"key": pa.binary(), "value": pa.binary(), "at": pa.int64()})
    first = 0
    while first < len(rows):
        end = first + chance.randrange(400)
        yield pa.RecordBatch.from_pylist(rows[first:end], schema)
        first = end


@pytest.mark.parametrize("most_bytes", [200, 3_000, 1 << 20])
@pytest.mark.parametrize("first_rows", [1, 700, 1 << 20])
@pytest.mark.parametrize("keys", [1, 30, 1_000, 10**9])
def test_each_key_keeps_its_last_row_and_tombstone_and_all_stay_in_order(
    keys: int, first_rows: int, most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_ROWS", first_rows)
    monkeypatch.setattr(module, "MOST_BYTES", most_bytes)
    monkeypatch.setattr(module, "_GIVEN_ROWS", 64)
    chance = random.Random(f"{keys} {first_rows} {most_bytes}")
    rows = rows_of(keys, chance)
    given = last_of_keys(batches_of(rows, chance), "key", "value")
    left = [row for batch in given for row in batch.to_pylist()]
    assert [one["at"] for one in left] == sorted({one["at"] for one in left})
    assert all(row == rows[row["at"]] for row in left)
    last = {one["key"]: one["at"] for one in rows}
    deleted = {one["key"]: one["at"] for one in rows if one["value"] is None}
    kept = {*last.values(), *deleted.values()}
    assert kept <= {one["at"] for one in left}
    if most_bytes == 1 << 20:
        # The memory is large enough for all keys, so no replaced row remains.
        assert kept == {one["at"] for one in left}


def test_large_rows_are_looked_at_before_it_is_said_that_none_can_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1 << 16)
    row = {"key": b"one", "value": bytes(1 << 10)}
    batches = (pa.RecordBatch.from_pylist([row | {"at": at}]) for at in range(200))
    assert [one["at"].to_pylist() for one in last_of_keys(batches, "key", "value")] == [[199]]


def test_no_more_is_held_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1 << 16)
    chance, came, gone = random.Random(1), 0, 0
    most = 0

    def coming() -> Iterator[pa.RecordBatch]:
        nonlocal came, most
        for batch in batches_of(rows_of(10**9, chance) * 4, chance):
            came += batch.nbytes
            most = max(most, came - gone)
            yield batch

    for batch in last_of_keys(coming(), "key", "value"):
        gone += batch.nbytes
    assert came > 4 << 16
    assert most < 3 << 16
