"""Small files of a table are merged: the same rows remain, and at most a third is written twice."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.errors import AnalysisError
from flexwire.spark.publishing.compaction import compact
from flexwire.spark.publishing.manifest import (
    PARTS,
    TABLES,
    CommittedTask,
    WrittenFile,
    WrittenFiles,
    part_name,
)
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.storage.output_directory import OutputDirectory
from tests.spark import faulty
from tests.spark.faulty import Store
from tests.spark.parts import ROWS, WHOLE, here, joined, rows_of, write_parts
from tests.spark.test_staging import tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


COUNT = 24


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count smaller files as large, and run tasks in this process."""
    monkeypatch.setattr("flexwire.spark.publishing.table_files.WHOLE_BYTES", WHOLE)
    monkeypatch.setattr("flexwire.spark.publishing.compaction.TASK_BYTES", 8 * WHOLE)
    monkeypatch.setattr("flexwire.spark.publishing.compaction.run_tasks", here)
    monkeypatch.setattr("flexwire.spark.publishing.compaction.LEAST_PARTS", 2)
    # Files grow by whole row groups.
    monkeypatch.setattr("flexwire.tables.parquet.ROW_GROUP_BYTES", WHOLE // 3)


@pytest.fixture
def place(tmp_path: Path) -> OutputDirectory:
    (tmp_path / "out").mkdir()
    return OutputDirectory(str(tmp_path / "out"))


def directory(place: OutputDirectory) -> Path:
    assert place.path is not None
    return place.path


def files_of(place: OutputDirectory, names: list[str]) -> dict[str, list[Path]]:
    found = defaultdict(list)
    for name in names:
        table = name.removeprefix(f"{TABLES}/").rpartition("/")[0]
        found[table].append(directory(place) / name)
    return found


@pytest.mark.long
@pytest.mark.slow
def test_every_row_is_there_once_in_the_order_of_ranges(place: OutputDirectory) -> None:
    files = files_of(place, joined(place, COUNT, here))
    assert files.keys() == ROWS.keys()
    for table, some in files.items():
        rows = pa.concat_tables(pq.read_table(one) for one in some).to_pylist()
        assert rows == [
            row for number in range(COUNT) for row in rows_of(table, number).to_pylist()
        ]
    # Neither parts nor plans remain.
    there = tree(directory(place))
    assert {name.split("/")[0] for name, (_, data) in there.items() if data} == {TABLES}


@pytest.mark.slow
def test_joined_files_are_large_enough_but_for_the_last(
    place: OutputDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexwire.spark.publishing.compaction._REWRITTEN", 1)
    files = files_of(place, joined(place, COUNT, here))
    for table, some in files.items():
        sizes = [one.stat().st_size for one in some]
        assert all(WHOLE <= size < 2.5 * WHOLE for size in sizes[:-1]), table
    assert len(files["messages/Heartbeat"]) == 1
    assert 2 < len(files["frames"]) < COUNT / 2
    assert len(files["records"]) == COUNT
    metadata = pq.read_metadata(files["frames"][0])
    assert metadata.num_row_groups < 8
    as_it_was = pq.read_schema(files["records"][0])
    assert all(pq.read_schema(one).equals(as_it_was) for some in files.values() for one in some)


@pytest.mark.long
@pytest.mark.slow
def test_the_same_parts_give_the_same_bytes_wherever_they_are(
    place: OutputDirectory, tmp_path: Path
) -> None:
    names = joined(place, COUNT, here)
    first = {name: (directory(place) / name).read_bytes() for name in names}
    (tmp_path / "again").mkdir()
    again = OutputDirectory(str(tmp_path / "again"))
    store = Store(tmp_path / "store")
    for other in (again, store):
        assert joined(other, COUNT, here) == names
        assert {name: other.read(name) for name in names} == first
        assert {one.name for one in other.entries("")} == set(names)


def test_at_most_a_third_of_all_bytes_is_written_again_and_the_smallest_first(
    place: OutputDirectory,
) -> None:
    before = here(None, COUNT, write_parts, TaskOutput(place))
    sizes = {file.name: file.size for one in before for file in one.files}
    written = list(compact(None, before, TaskOutput(place)))  # type: ignore[arg-type]  # it is not touched
    stay = {name.rpartition("/")[2] for name in sizes}
    tables = defaultdict(set)
    for one in written:
        tables[one.table].add(one.name.rpartition("/")[2] in stay)
    assert tables["messages/Heartbeat"] == {False}
    assert tables["records"] == {True}
    new = sum(one.size for one in written if one.name.rpartition("/")[2] not in stay)
    assert 0 < new <= sum(sizes.values()) / 3
    # At the sizes in between, only some of the runs are merged. At one size, all of them fit
    # exactly.
    assert tables["frames"] | tables["day/2026"] == {False, True}


def test_only_parts_of_one_directory_become_one_file(place: OutputDirectory) -> None:
    def days(number: int, task_output: TaskOutput) -> None:
        for day in range(2):
            local = task_output.scratch / str(day)
            pq.write_table(pa.table({"day": [day] * 5, "range": [number] * 5}), local)
            name = f"day={day}/{part_name(faulty.DIGEST, number, day)}"
            task_output.put(local, "frames", name, folder=PARTS)
        large = task_output.scratch / "large"
        pq.write_table(pa.table({"n": list(range(20_000))}), large)
        task_output.put(large, "records", part_name(faulty.DIGEST, number, 0))

    written = list(compact(None, here(None, 5, days, TaskOutput(place)), TaskOutput(place)))  # type: ignore[arg-type]  # it is not touched
    frames = [one for one in written if one.table == "frames"]
    assert [one.name.split("/")[:3] for one in frames] == [
        ["tables", "frames", f"day={day}"] for day in range(2)
    ]
    for day, one in enumerate(frames):
        assert pq.read_table(directory(place) / one.name).to_pylist() == [
            {"day": day, "range": number} for number in range(5) for _ in range(5)
        ]


@pytest.mark.parametrize("count", [0, 1])
def test_where_nothing_is_to_be_joined_no_task_runs(
    place: OutputDirectory, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def refuse(_spark: object, count: int, *_: object) -> list[Any]:
        assert count == 0
        return []

    monkeypatch.setattr("flexwire.spark.publishing.compaction.run_tasks", refuse)
    names = joined(place, count, here)
    assert len(names) == count * len(ROWS)


def test_few_files_stay_as_they_are(
    place: OutputDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(count: int) -> dict[str, list[Path]]:
        names = joined(place, count, here)
        return {t: some for t, some in files_of(place, names).items() if t.startswith("messages/")}

    monkeypatch.setattr("flexwire.spark.publishing.compaction.LEAST_PARTS", 8)
    few, many = small(7), small(8)
    assert {len(some) for some in few.values()} == {7}
    assert min(len(some) for some in many.values()) < 8


@pytest.mark.parametrize("kind", [lambda root: OutputDirectory(str(root)), Store])
@pytest.mark.parametrize("is_short", [False, True])
def test_a_part_with_other_bytes_is_refused(
    tmp_path: Path, kind: Callable[[Path], OutputDirectory | Store], *, is_short: bool
) -> None:
    (tmp_path / "out").mkdir()
    place: OutputDirectory | Store = kind(tmp_path / "out")
    parts = here(None, 4, write_parts, TaskOutput(place))
    name = next(one.name for one in parts[2].files if one.table == "messages/Heartbeat")
    data = place.read(name)
    flipped = data[:50] + bytes([data[50] ^ 1]) + data[51:]
    place.write(name, data[:-1] if is_short else flipped)
    with pytest.raises(AnalysisError, match=rf"{name} differs from the bytes that its task"):
        list(compact(None, parts, TaskOutput(place)))  # type: ignore[arg-type]  # it is not touched


def test_rows_that_a_task_counted_otherwise_are_refused(place: OutputDirectory) -> None:
    parts = here(None, 4, write_parts, TaskOutput(place))
    first = [
        WrittenFile(one.name, one.table, one.size, one.rows + 1, one.crc32c)
        for one in parts[0].files
    ]
    parts[0] = CommittedTask(0, WrittenFiles(first), None)
    with pytest.raises(AnalysisError, match=r"Heartbeat: expected 13 rows in its parts, got 12"):
        list(compact(None, parts, TaskOutput(place)))  # type: ignore[arg-type]  # it is not touched
