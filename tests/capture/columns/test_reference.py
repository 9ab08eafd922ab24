"""The reference of paired frames is what the pipeline's joins make of the same frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pytest

from flexwire.spark.by_objects.frames import CONNECTION, FRAME, FRAMES
from flexwire.spark.by_objects.pairs import pair_frames, with_payloads
from flexwire.tasks import record_batch
from tests.capture.columns.conversing import conversations, judged
from tests.capture.columns.reference import COLUMNS, paired_rows, read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexwire.capture.reassembly.connections import CapturedConnection

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("show", [False, True])
def test_plain_python_pairs_frames_as_spark_does(spark: SparkSession, *, show: bool) -> None:
    frames = conversations(3, 1200, 10)
    given = [("a.pcapng", one) for one in frames]
    connections = judged(frames, 3)
    rows = [{"kind": FRAME, **one} for one in read_rows(given, show_credentials=show)]
    rows += map(facts_row, connections)
    batch = record_batch(FRAMES, [tuple(one.get(name) for name in FRAMES.names) for one in rows])
    wire = spark.createDataFrame(pa.Table.from_batches([batch]))
    joined = with_payloads(pair_frames(wire), wire, show_credentials=show)
    columns = [
        f"unix_micros({name}) AS {name}" if name == "time" else f"`{name}`" for name in COLUMNS
    ]
    found = [row.asDict(recursive=True) for row in joined.selectExpr(*columns).collect()]
    for row in found:
        row["payload"] = None if row["payload"] is None else bytes(row["payload"])
        for one in row["header_unknown_tagged_fields"] or []:
            one["data"] = bytes(one["data"])
    expected = paired_rows(given, connections, show_credentials=show)
    assert sorted(found, key=place) == sorted(expected, key=place)


def facts_row(connection: CapturedConnection) -> dict[str, Any]:
    facts = msgspec.structs.asdict(connection)
    facts["first_time"], facts["last_time"] = facts.pop("first_us"), facts.pop("last_us")
    return {"kind": CONNECTION, "connection": facts.pop("connection"), "facts": facts}


def place(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["connection"], row["direction"], row["frame_index"]
