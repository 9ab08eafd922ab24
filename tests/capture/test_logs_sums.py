"""Sums computed while logs are read equal the sums of the records."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.logs import LogQuery, plan, read_piece
from flexwire.logs.records import GROUPS, LOG_COLUMNS, SUM_COLUMNS, LogRows, LogSums
from tests.capture.log_vectors import vectors, write

if TYPE_CHECKING:
    from pathlib import Path

SUMS = ["records", "key_bytes", "value_bytes"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("logs")
    for path in vectors():
        if path.startswith(("orders-", "tx-", "old-", "compacted-", "append-")):
            write(root, path)
    return root


@pytest.fixture(scope="module")
def rows(logs: Path) -> list[dict[str, Any]]:
    made = LogRows(pa.schema(LOG_COLUMNS.items()))
    found = []
    for piece in (piece for task in plan([logs], LogQuery()) for piece in task):
        for batch in read_piece(piece, made.read):
            assert isinstance(batch, pa.RecordBatch)
            found += made.records(piece, batch).to_pylist()
    for row in found:
        for name in ("key", "value"):
            row[f"{name}_size"] = None if row[name] is None else len(row[name])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("by_kernel", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_sums_are_those_of_the_records(
    logs: Path, rows: list[dict[str, Any]], seed: int, *, by_kernel: bool
) -> None:
    chance = random.Random(seed)
    groups = tuple(chance.sample(GROUPS, chance.randint(1, 4)))
    sums = chance.sample(SUMS, chance.randint(1, 3))
    schema = pa.schema([(name, SUM_COLUMNS[name]) for name in (*sums, *groups)])
    counting = LogSums(schema, groups)
    found: dict[str, Counter[Any]] = {name: Counter() for name in sums}
    for piece in (piece for task in plan([logs], LogQuery(piece_bytes=500)) for piece in task):
        sums_of_kernel = counting.counted if by_kernel else None
        for batch in read_piece(piece, counting.read, sums=sums_of_kernel):
            assert isinstance(batch, pa.RecordBatch)
            # The object reader counts message sets with magic 0 and 1.
            assert not by_kernel or piece.partition.topic.startswith("old-")
            counting.add(batch)
        taken = counting.take(piece)
        assert taken.schema == schema
        for row in taken.to_pylist():
            for name in sums:
                found[name][tuple(row[one] for one in groups)] += row[name]
    expected: dict[str, Counter[Any]] = {name: Counter() for name in sums}
    for row in rows:
        added = {
            "records": 1,
            "key_bytes": row["key_size"] or 0,
            "value_bytes": row["value_size"] or 0,
        }
        for name in sums:
            expected[name][tuple(row[one] for one in groups)] += added[name]
    assert found == expected


def test_a_piece_without_records_has_no_sums(logs: Path) -> None:
    schema = pa.schema([("topic", pa.string()), ("records", pa.int64())])
    counting = LogSums(schema, ("topic",))
    [[piece, *_], *_] = plan([logs], LogQuery())
    assert counting.take(piece).num_rows == 0
    # Counting copies neither keys nor values.
    assert counting.read == ("magic",)
