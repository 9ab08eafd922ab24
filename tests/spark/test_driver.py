"""The driver's memory grows only slightly with the output of its tasks."""

from __future__ import annotations

import json
import pickle
import zlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.errors import AnalysisError
from flexwire.facts.audit import Audit
from flexwire.facts.facts import SOURCES_SHOWN, Facts
from flexwire.measures.analysis import AnalysisSums, facts_of
from flexwire.report import render
from flexwire.report.tables import ROW_LIMIT
from flexwire.spark.capture_job import MOST_CLUSTER_RANGE_BYTES, range_bytes_for
from flexwire.spark.publishing import commit
from flexwire.spark.publishing.commit import LARGEST_WORK, LeftWork
from flexwire.spark.publishing.compaction import compact
from flexwire.spark.publishing.manifest import (
    PARTS,
    TABLES,
    CommittedTask,
    WrittenFile,
    WrittenFiles,
    part_name,
    settle,
)
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.spark.tables import mark_place
from flexwire.storage.output_directory import OutputDirectory
from flexwire.storage.store_listing import FileEntry
from flexwire.tables.output import SUCCESS
from tests.spark.faulty import DIGEST, Store
from tests.traced import traced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# A task writes 62 files; with an object for each file, there would be 30,000 objects.
MOST_OF_A_TASK = 6_000


def written(number: int) -> Iterator[WrittenFile]:
    """Yield a range's files for many tables: two are large enough, and all others are small."""
    for place, table in enumerate(["records", "frames", *map("messages/M{}".format, range(60))]):
        folder, size = (TABLES, 200 << 20) if place < 2 else (PARTS, 1000 * (place + number))
        name = f"{folder}/{table}/{part_name(DIGEST, number, 0)}"
        yield WrittenFile(name, table, size, size // 10, zlib.crc32(name.encode()))


class Listed(Store):
    """A store that answers only list requests, which are the driver's final requests."""

    def entries(self, prefix: str = "") -> Iterator[FileEntry]:
        """Yield the names of the files in the tables."""
        for one in vars(self).get("found", []):
            assert one.name.startswith(prefix)
            yield FileEntry(one.name, one.size, None, "")  # type: ignore[arg-type]  # nobody asks


def peak(work: Callable[[], object]) -> int:
    with traced() as memory:
        work()
    return memory.most


def driven(place: Store, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do everything that a driver does with the results of tasks."""
    found = (
        (number, pickle.dumps(CommittedTask(number, WrittenFiles(written(number)), None)))
        for number in range(count)
    )
    committed = commit._check_tasks(found, count)
    monkeypatch.setattr("flexwire.spark.publishing.compaction.run_tasks", lambda *_: [])
    files = list(compact(None, committed, TaskOutput(place)))  # type: ignore[arg-type]  # it is not touched
    assert len(files) == 2 * count
    listed = Listed(place.url)
    vars(listed)["found"] = files
    settle(listed, files)


@pytest.mark.long
@pytest.mark.slow
def test_the_driver_holds_little_of_each_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = 100, 300
    driven(Store(tmp_path / "first"), few, monkeypatch)
    one = peak(partial(driven, Store(tmp_path / "few"), few, monkeypatch))
    other = peak(partial(driven, Store(tmp_path / "many"), many, monkeypatch))
    assert (other - one) / (many - few) < MOST_OF_A_TASK


GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "tasks_at_once", "expected"),
    [
        (1000, 2, 64 << 20),
        (GIB, 2, GIB // 2),  # with only two rounds, small files would remain
        (4 * GIB, 2, GIB),
        (16 * GIB, 2, 4 * GIB),
        (100 * GIB, 2, 4 * GIB),
        (100 * GIB, 200, GIB // 2),
        (1000 * GIB, 200, 5 * GIB // 2),
        (20_000 * 5 * GIB, 200, 5 * GIB),  # no more than 20,000 tasks
    ],
)
def test_ranges_are_as_large_as_leaves_work_for_all(
    total: int, tasks_at_once: int, expected: int
) -> None:
    assert range_bytes_for(total, tasks_at_once) == expected


def test_ranges_of_a_cluster_leave_work_for_executors_that_come_later() -> None:
    """With dynamic allocation, two tasks may run at first, and 200 a minute later."""
    at_first = range_bytes_for(100 * GIB, 2, MOST_CLUSTER_RANGE_BYTES)
    assert at_first == GIB // 2
    assert range_bytes_for(GIB, 200, MOST_CLUSTER_RANGE_BYTES) == 64 << 20
    # No more than 20,000 tasks.
    assert range_bytes_for(20_000 * 5 * GIB, 200, MOST_CLUSTER_RANGE_BYTES) == 5 * GIB


def sized(data: bytes, number: int, _task_output: TaskOutput) -> int:
    return len(data) + number


@pytest.mark.parametrize("size", [0, LARGEST_WORK])
def test_work_that_is_large_lies_in_a_file_and_does_not_travel(tmp_path: Path, size: int) -> None:
    place = Store(tmp_path / "store")
    work: Callable[[int, TaskOutput], Any] = partial(sized, bytes(size))
    job = commit._TaskJob(None, work, place, bytes(32)).with_work_in_file()
    assert isinstance(job.work, LeftWork) is (size > 0)
    assert len(commit._pickled(job)) < LARGEST_WORK / 100
    assert [one.name for one in place.entries("")] == [job.work_file] * (size > 0)
    assert job.work(5, TaskOutput(place)) == size + 5


def test_only_the_work_that_was_left_is_done(tmp_path: Path) -> None:
    place = Store(tmp_path)
    work = LeftWork.leave(pickle.dumps(sized), place, "work")
    place.write("work", pickle.dumps(written))
    with pytest.raises(AnalysisError, match="work was changed after the driver wrote it"):
        work(0, TaskOutput(place))


def test_files_are_packed_and_the_same_again() -> None:
    files = WrittenFiles(written(7))
    assert list(files) == list(written(7))
    assert (len(files), files[1], files[-2:]) == (62, list(written(7))[1], list(written(7))[-2:])
    assert len(pickle.dumps(files)) < 25 * len(files)
    again = pickle.loads(pickle.dumps(files))  # noqa: S301 - this line also pickled the data
    assert again == files == WrittenFiles(written(7)) != WrittenFiles(written(8))
    assert hash(again) == hash(files)


def test_facts_mark_and_report_name_some_of_many_files_and_count_all(tmp_path: Path) -> None:
    names = [f"s3://captures/{number:05d}.pcapng" for number in range(SOURCES_SHOWN + 500)]
    sums = AnalysisSums(0)
    sums._packets = dict.fromkeys(reversed(names), 3)
    told = facts_of(sums.parts(BrokerEnds()), Audit(), title="", made_at_us=0)
    assert [one.path for one in told.sources] == names[:SOURCES_SHOWN]
    assert told.source_files == len(names)
    assert Facts.from_json(told.to_json()) == told
    page = render(replace(told, unreadable_files=7))
    assert f'given">{len(names) - 7:,} files</span>' in page
    assert f"and {len(names) - ROW_LIMIT:,} more rows" in page
    mark_place(OutputDirectory(str(tmp_path)), names)
    mark = json.loads((tmp_path / SUCCESS).read_text())
    assert (mark["files"], mark["sources"]) == (len(names), names[:SOURCES_SHOWN])
