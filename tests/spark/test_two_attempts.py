"""If two attempts of a task run at the same time, only one counts, so each row occurs once.

Spark starts a second attempt at a slow task, and does not wait for the attempt that lost. In this
test, the losing attempt begins first, and the other attempt does all its work before the first one
ends.
"""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.errors import FlexwireError
from flexwire.measures.analysis import AnalysisSums
from flexwire.spark.capture_job import keep_sums, merged_sums
from flexwire.spark.delta import layout as delta_place
from flexwire.spark.inputs import begin_output
from flexwire.spark.publishing.commit import _TaskJob
from flexwire.spark.publishing.manifest import CommittedTask, part_name, settle
from flexwire.spark.publishing.output import OutputOptions
from flexwire.storage.input_file import InputFile
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.schema import FRAMES_TABLE
from tests.searching import in_make_long
from tests.spark.faulty import DIGEST
from tests.storage.servers import s3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.spark.publishing.task_output import TaskOutput

ROWS = 3
WHERE = {"here": "parquet", "store": "parquet", "delta here": "delta", "delta in a store": "delta"}
BEFORE_SETTLING, BEFORE_PUBLISHING, AFTERWARDS = "settle", "publish", "end"


@pytest.fixture(params=WHERE)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[OutputDirectory, str]]:
    if "store" not in request.param:
        yield OutputDirectory(str(tmp_path / "out")), WHERE[request.param]
        return
    with s3() as bucket:
        yield OutputDirectory(f"{bucket}/{tmp_path.name}"), WHERE[request.param]


def work(meanwhile: Callable[[], None], number: int, task_output: TaskOutput) -> int:
    """Write a table's file and the sums of its rows, as a range's task does."""
    local = task_output.scratch / "frames.parquet"
    rows = [{"frame_index": row} for row in range(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows, FRAMES_TABLE), local)
    meanwhile()
    task_output.put(local, "frames", part_name(DIGEST, number, 0))
    keep_sums(task_output.directory, number, AnalysisSums(7))
    return ROWS


def nothing() -> None:
    """Do nothing, in place of the other attempt."""


@pytest.mark.slow
@pytest.mark.parametrize("moment", [BEFORE_PUBLISHING, *in_make_long(BEFORE_SETTLING, AFTERWARDS)])
def test_what_two_attempts_wrote_is_there_once(
    where: tuple[OutputDirectory, str], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, kind = where
    monkeypatch.setattr(delta_place, "possible_tables", lambda: [*delta_place.ALWAYS])
    told: list[CommittedTask[Any]] = []
    steps: list[Callable[[], None]] = []

    def until(step: str) -> None:
        """Do what Spark's other attempt and the driver do, up to a given step."""
        while steps and steps[0].__name__ != step:
            steps.pop(0)()

    with begin_output(
        out, [InputFile("/a.pcap", 5, "1")], OutputOptions(kind, append=False)
    ) as writing:
        task_output = writing.task_output

        def other() -> None:
            job = _TaskJob(None, partial(work, nothing), task_output.directory, b"")
            told.append(pickle.loads(job.run(0)))  # noqa: S301 - our own

        def settle_them() -> None:
            merged_sums(task_output.directory, 7, 1)
            settle(writing.files, task_output.count_files(told[0].files))

        def publish() -> None:
            writing.mark(["/a.pcap"])
            writing.publish()

        settle_them.__name__, publish.__name__ = BEFORE_SETTLING, BEFORE_PUBLISHING
        steps += [other, settle_them, publish]
        slow = _TaskJob(None, partial(work, partial(until, moment)), task_output.directory, b"")
        if moment == AFTERWARDS:
            until(AFTERWARDS)
        slow.run(0)
        until(AFTERWARDS)
        output = writing.published
    if moment == AFTERWARDS and kind == "parquet" and out.path is not None:
        with pytest.raises(FlexwireError, match="does not exist"):
            slow.run(0)
        with pytest.raises(FlexwireError, match="does not exist"):
            keep_sums(task_output.directory, 0, AnalysisSums(7))
        assert {one.name for one in out.path.iterdir()} == {"tables"}
    assert output.table("frames").num_rows == told[0].value == ROWS
    if moment != AFTERWARDS:
        left = [one.name for one in out.entries() if "/_" in one.name.replace("/_delta_log", "")]
        assert {name.rpartition("/")[2] for name in left} <= {"_flexwire.json", "_SUCCESS"}
