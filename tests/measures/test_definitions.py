"""Each condition for frames has the same meaning in Arrow and in SQL."""

from __future__ import annotations

import sqlite3

import pyarrow as pa
import pytest

from flexwire.capture.pairing.state import FAILED, NOT_KAFKA, TOKEN, UNPAIRED
from flexwire.measures.conditions import OF_KAFKA, READ, UNBROKEN, FrameOutcomes
from flexwire.tables.frames import DECODED, LENIENT

EVERY = (DECODED, LENIENT, FAILED, TOKEN, UNPAIRED, NOT_KAFKA)


@pytest.mark.parametrize(
    ("condition", "fitting"),
    [(OF_KAFKA, {*EVERY} - {NOT_KAFKA}), (READ, {DECODED, LENIENT}), (UNBROKEN, {DECODED})],
)
def test_a_condition_holds_for_the_same_frames_in_arrow_and_in_sql(
    condition: FrameOutcomes, fitting: set[str]
) -> None:
    told = [*EVERY, None]
    frames = pa.RecordBatch.from_pydict({"outcome": pa.array(told, pa.string())})
    expected = [one in fitting for one in told]
    assert condition.of(frames).to_pylist() == expected
    database = sqlite3.connect(":memory:")
    database.execute("create table frames (outcome text)")
    database.executemany("insert into frames values (?)", [(one,) for one in told])
    rows = database.execute(f"select outcome from frames where {condition.sql}").fetchall()  # noqa: S608 - a constant of ours
    assert {one for (one,) in rows} == fitting
    database.close()
