"""Rows in run form equal the rows they stand for, regardless of how they are divided and summed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from flexwire.measures.failures import record_failures
from flexwire.measures.headers import RecordHeaderSums
from flexwire.measures.records import TopicSums
from flexwire.tables import parquet
from flexwire.tables.parquet import TableWriter
from flexwire.tables.records import RunRows, record_runs
from tests.searching import in_make_long
from tests.tables.carrying import PRODUCE, Carrier, Topic, message_rows
from tests.tables.test_records import BAD_CRC, CONTROL, DOCUMENTS, EMPTY, PARTIAL, some_batch

if TYPE_CHECKING:
    from pathlib import Path

DATA = [
    *DOCUMENTS,
    BAD_CRC,
    CONTROL,
    EMPTY,
    some_batch(40) + some_batch(30) + PARTIAL,
    some_batch(9),
]
MESSAGES = message_rows(
    PRODUCE, [Carrier(at, [Topic(f"t{at % 5}", None, [(0, one)])]) for at, one in enumerate(DATA)]
)


@pytest.fixture
def runs() -> RunRows:
    found = RunRows.joined([*record_runs(MESSAGES, PRODUCE)])
    assert len(found) > len(found.counts) > 10
    return found


@pytest.mark.long
@pytest.mark.slow
def test_a_slice_is_that_of_the_rows(runs: RunRows) -> None:
    rows = runs.to_pylist()
    chance = np.random.default_rng(1)
    for _ in range(50):
        start, stop = np.sort(chance.integers(0, len(rows) + 1, 2)).tolist()
        if start == stop:
            continue
        part = runs.slice(start, stop - start)
        assert len(part) == part.counts.sum() == stop - start
        assert part.counts.min() > 0
        assert part.to_pylist() == rows[start:stop]
    assert runs.slice(7).to_pylist() == rows[7:]


def told(rows: Any) -> list[Any]:
    sums, headers = TopicSums(), RecordHeaderSums()
    for part in rows:
        sums.add(part)
        headers.add(part)
    failures = [one for part in rows for one in record_failures(part).to_pylist()]
    return [sums.facts(), sums.undecodable, headers.facts(), failures]


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 1000, *in_make_long(1, 33)])
def test_sums_are_those_of_the_rows(runs: RunRows, size: int) -> None:
    starts = range(0, len(runs), size)
    # Rows of all kinds are at both ends. Each part takes ten milliseconds.
    some = starts if size > 7 else [*starts[:120], *starts[-120:]]
    parts = [runs.slice(at, size) for at in some]
    assert told(parts) == told([one.batch() for one in parts])
    assert told(parts)[1] > 0


@pytest.mark.long
@pytest.mark.slow
def test_a_file_has_the_rows(
    runs: RunRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 50)
    with TableWriter(tmp_path / "r", runs.schema) as table:
        for at in range(0, len(runs), 40):
            table.write(runs.slice(at, 40))
    assert table.rows == len(runs)
    assert pq.read_table(tmp_path / "r").to_pylist() == runs.to_pylist()
