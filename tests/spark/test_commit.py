"""Each valid file that tasks write exists exactly once, whatever other attempts did."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.errors import AnalysisError, ArgumentError
from flexwire.schema.catalog import catalog, use_catalog
from flexwire.spark.publishing import commit
from flexwire.spark.publishing.commit import LARGEST_VALUE, run_tasks
from flexwire.spark.publishing.manifest import CommittedTask, WrittenFile, part_name, settle
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.storage.output_directory import OutputDirectory
from tests.schema.own import own_catalog
from tests.spark import faulty
from tests.spark.faulty import Full, Store, names, write
from tests.spark.published import found, run
from tests.spark.test_staging import tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def returns(value: object, number: int, task_output: TaskOutput) -> object:
    assert task_output.scratch.stat().st_mode & 0o777 == 0o700
    return value if number else None


def nothing(number: int, task_output: TaskOutput) -> int:
    assert not task_output.files
    return number


def keeps_memory(number: int, task_output: TaskOutput) -> str | None:
    del number, task_output
    return os.environ.get("MIMALLOC_PURGE_DELAY")


def api_keys(number: int, task_output: TaskOutput) -> int:
    del number, task_output
    return len(catalog().api_keys())


def runs_out_of_memory(number: int, task_output: TaskOutput) -> int:
    kept = [bytes(1000), number, task_output]
    raise MemoryError(f"nothing left for {len(kept)}")


@pytest.fixture(params=["job of an RDD", "writer of a data source"])
def either(
    request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> SparkSession:
    """Return a session that runs tasks in one of two ways. Spark Connect has only the second."""
    if request.param != "job of an RDD":
        monkeypatch.setattr(commit, "is_connect", lambda _: True)
    return spark


def test_every_task_is_run_once_and_its_files_and_value_are_told(
    either: SparkSession, tmp_path: Path
) -> None:
    place = OutputDirectory(str(tmp_path))
    committed = run_tasks(either, 5, write, TaskOutput(place))
    assert [(one.number, one.value) for one in committed] == [(n, n * n) for n in range(5)]
    told = [file for one in committed for file in one.files]
    assert {one.name for one in told} == names(5)
    for file in told:
        data = (tmp_path / file.name).read_bytes()
        assert (len(data), google_crc32c.value(data)) == (file.size, file.crc32c)
        assert file.name.startswith(f"tables/{file.table}/")
        assert pq.read_metadata(tmp_path / file.name).num_rows == file.rows == faulty.ROWS
        assert (tmp_path / file.name).stat().st_mode & 0o777 == 0o600
    # No other files remain, whether unfinished files or files for the driver.
    assert {name for name, (_, data) in tree(tmp_path).items() if data} == names(5)


def test_the_same_work_gives_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    trees = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        place = OutputDirectory(str(tmp_path / name))
        first = run_tasks(spark, 3, write, TaskOutput(place))
        trees.append(tree(tmp_path / name))
        # The files have the same names, so a task that runs again overwrites its files.
        assert run_tasks(spark, 3, write, TaskOutput(place)) == first
        assert tree(tmp_path / name) == trees[-1]
    assert trees[0] == trees[1]


def test_no_tasks_are_no_action(tmp_path: Path) -> None:
    assert run_tasks(None, 0, write, TaskOutput(OutputDirectory(str(tmp_path)))) == []  # type: ignore[arg-type]  # it is not touched


def test_what_an_object_store_gets_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    local = run_tasks(spark, 3, write, TaskOutput(OutputDirectory(str(tmp_path / "local"))))
    assert run_tasks(spark, 3, write, TaskOutput(Store(tmp_path / "store"))) == local
    assert {
        path.relative_to(tmp_path / "store").as_posix(): path.read_bytes()
        for path in (tmp_path / "store").rglob("*")
        if path.is_file()
    } == {name: (tmp_path / "local" / name).read_bytes() for name in names(3)}


def test_a_value_is_at_most_a_mebibyte(either: SparkSession, tmp_path: Path) -> None:
    small, large = b"x" * (LARGEST_VALUE - 1000), b"x" * (LARGEST_VALUE + 1)
    committed = run_tasks(
        either, 2, partial(returns, small), TaskOutput(OutputDirectory(str(tmp_path)))
    )
    assert [one.value for one in committed] == [None, small]
    with pytest.raises(
        Exception, match=r"task 1 returned a value of 10\d+ bytes, but at most 1048576"
    ):
        run_tasks(either, 2, partial(returns, large), TaskOutput(OutputDirectory(str(tmp_path))))


@pytest.mark.long
def test_tasks_have_the_catalog_of_the_process(spark: SparkSession, tmp_path: Path) -> None:
    bundled = len(catalog().api_keys())
    place = tmp_path / "place"
    place.mkdir()
    use_catalog(own_catalog(tmp_path))
    try:
        own = run_tasks(spark, 2, api_keys, TaskOutput(OutputDirectory(str(place))))
        assert {one.value for one in own} == {len(catalog().api_keys())} != {bundled}
    finally:
        use_catalog(None)
    again = run_tasks(spark, 2, api_keys, TaskOutput(OutputDirectory(str(place))))
    assert {one.value for one in again} == {bundled}


@pytest.mark.long
def test_tasks_keep_memory_unless_their_user_says_otherwise(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = spark.sparkContext.environment
    place = TaskOutput(OutputDirectory(str(tmp_path)))
    monkeypatch.setattr(spark.sparkContext, "environment", {**environment})
    monkeypatch.delitem(spark.sparkContext.environment, "MIMALLOC_PURGE_DELAY", raising=False)
    assert [one.value for one in run_tasks(spark, 1, keeps_memory, place)] == ["-1"]
    spark.sparkContext.environment["MIMALLOC_PURGE_DELAY"] = "7"
    assert [one.value for one in run_tasks(spark, 1, keeps_memory, place)] == ["7"]


def test_two_at_once_in_one_session(either: SparkSession, tmp_path: Path) -> None:
    values: dict[str, list[int]] = {}

    def one(name: str, count: int) -> None:
        values[name] = run(either, tmp_path / name, count, write)

    threads = [threading.Thread(target=one, args=(f"out{count}", count)) for count in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == {f"out{count}": [n * n for n in range(count)] for count in (3, 4)}
    for count in (3, 4):
        assert found(tmp_path / f"out{count}") == names(count)


@pytest.mark.long
def test_a_disk_that_is_full_leaves_the_output_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert run(spark, out, 2, write) == [0, 1]
    before = tree(out)
    monkeypatch.setattr("flexwire.spark.publishing.local.OutputDirectory", Full)
    with pytest.raises(
        AnalysisError,
        match=r"^Writing: a disk is full: the output's disk, or the disk of .* left on device$",
    ):
        run(spark, out, 3, write)
    assert tree(out) == before
    with pytest.raises(AnalysisError, match="a disk is full"):
        run(spark, tmp_path / "new", 3, write)
    assert not (tmp_path / "new").exists()


@pytest.mark.long
def test_a_place_that_an_executor_does_not_see_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"elsewhere does not exist; an output must be on a file"):
        run_tasks(spark, 1, nothing, TaskOutput(OutputDirectory(str(tmp_path / "elsewhere"))))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.long
def test_work_that_runs_out_of_memory_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        AnalysisError,
        match=r"Writing: a Python worker ran out of memory; run fewer tasks at the same time",
    ):
        run(spark, tmp_path / "out", 1, runs_out_of_memory)


@pytest.mark.long
def test_a_worker_that_is_killed_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "flags").mkdir()
    with pytest.raises(
        AnalysisError, match=r"Writing: a Python worker was killed, which the operating"
    ):
        run(spark, tmp_path / "out", 2, partial(faulty.killed_after_put, tmp_path / "flags"))
    # A local master makes only one attempt.
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("table", ["../frames", "_frames", "messages//X", "", ".x"])
def test_names_stay_below_the_tables(tmp_path: Path, table: str) -> None:
    local = tmp_path / "x"
    local.touch()
    with pytest.raises(ArgumentError, match="begins with a dot or an underscore, got"):
        TaskOutput(OutputDirectory(str(tmp_path))).put(local, table, "a.parquet", rows=0)
    assert local.exists()


def test_a_name_is_handed_over_once(tmp_path: Path) -> None:
    task_output = TaskOutput(OutputDirectory(str(tmp_path)))
    for _ in range(2):
        (tmp_path / "x").write_bytes(b"1")
        if not task_output.files:
            task_output.put(tmp_path / "x", "frames", "a", rows=1)
    with pytest.raises(ArgumentError, match="tables/frames/a already exists"):
        task_output.put(tmp_path / "x", "frames", "a", rows=1)


def test_a_file_that_is_not_finished_is_not_placed(tmp_path: Path) -> None:
    task_output = TaskOutput(OutputDirectory(str(tmp_path)))
    writer = pq.ParquetWriter(tmp_path / "x.parquet", pa.schema({"n": pa.int64()}))
    writer.write_table(pa.table({"n": [1]}))
    with pytest.raises(pa.ArrowInvalid, match="Parquet"):
        task_output.put(tmp_path / "x.parquet", "frames", "a.parquet")
    assert not task_output.files
    assert not (tmp_path / "tables").exists()
    writer.close()
    task_output.put(tmp_path / "x.parquet", "frames", "a.parquet")
    assert [one.rows for one in task_output.files] == [1]


def test_scratch_is_where_spark_removes_it_when_the_output_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/nowhere")
    with TaskOutput(Store(tmp_path / "store")).open_attempt(7) as task_output:
        assert task_output.scratch.parent == tmp_path
        (task_output.scratch / "payload").touch()
    assert list(tmp_path.iterdir()) == []


def committed(number: int, *files: WrittenFile) -> tuple[int, bytes]:
    return number, pickle.dumps(CommittedTask(number, files, None))


room: Any = import_module("flexwire.kernels")


def asks_for_a_kernel(number: int, task_output: TaskOutput) -> bool:
    del number, task_output
    return room.load_kernel("packets") is not None


@pytest.mark.parametrize("there", ["there", "off", "missing"])
def test_that_there_are_no_kernels_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    there: str,
) -> None:
    monkeypatch.setattr(room, "_MISSING", set())
    monkeypatch.setattr(room, "load_kernel", cache(room.load_kernel.__wrapped__))
    if there == "off":
        monkeypatch.setenv("FLEXWIRE_KERNELS", "off")
    if there == "missing":
        monkeypatch.setitem(sys.modules, "flexwire.kernels.packets", None)
    place = OutputDirectory(str(tmp_path))
    (tmp_path / "tables").mkdir()
    jobs = [commit._TaskJob(None, work, place, b"") for work in (nothing, asks_for_a_kernel)]
    done = commit._check_tasks(((number, job.run(number)) for number, job in enumerate(jobs)), 2)
    assert [one.value for one in done] == [0, there == "there"]
    commit._warn_of_missing_kernels(done)
    if there == "missing":
        assert caplog.messages[0].startswith("1 of 2 tasks ran without kernels, and were")
    else:
        assert caplog.messages == []


def test_what_is_committed_twice_or_not_at_all_is_refused() -> None:
    file = WrittenFile("tables/frames/a", "frames", 1, 1, 0)
    for found_tasks, told in (
        ([committed(0), committed(0)], "task 0 was committed twice"),
        ([committed(1)], "1 of 2 tasks were committed"),
        ([committed(0), committed(1), committed(2)], "3 of 2 tasks were committed"),
        (
            [committed(0, file), committed(1, file)],
            "tasks 0 and 1 both wrote tables/frames/a",
        ),
    ):
        with pytest.raises(AnalysisError, match=told):
            commit._check_tasks(found_tasks, 2)
    assert len(commit._check_tasks([committed(1, file), committed(0)], 2)) == 2


def test_only_what_this_action_committed_is_unpickled(tmp_path: Path) -> None:
    place = OutputDirectory(str(tmp_path))
    ours, others = (commit._TaskJob(None, write, place, os.urandom(32)) for _ in range(2))
    ours.leave([(0, b"abc"), (1, b"")])
    data = place.read(ours.results)
    assert list(ours.read_results(data)) == [(0, b"abc"), (1, b"")]
    for damaged in (data[:-1], b"\x00" + data[1:], data + b"\x00", b""):
        with pytest.raises(AnalysisError, match="was not written by the tasks of this run"):
            list(ours.read_results(damaged))
    with pytest.raises(AnalysisError, match="was not written by the tasks of this run"):
        list(others.read_results(data))


def test_what_no_manifest_names_is_removed_before_it_is_published(tmp_path: Path) -> None:
    place = OutputDirectory(str(tmp_path))
    kept = [WrittenFile(f"tables/{table}/a", table, 1, 1, 0) for table in ("frames", "messages/X")]
    for name in (
        *(one.name for one in kept),
        "tables/frames/orphan",
        "tables/messages/Y/orphan",
        "tables/_SUCCESS",
        "tables/audit/spark",
        "tables/frames/_a.1234",
        "tables/frames/.flexwire-1234-a",
        "report.html",
    ):
        place.write(name, b"1")
    settle(place, kept, other_tables=["audit"])
    assert {one.name for one in place.entries("")} == {
        *(one.name for one in kept),
        "tables/_SUCCESS",
        "tables/audit/spark",
        "report.html",
    }
    # A half-written file also contains payloads.
    assert not (tmp_path / "tables/frames/.flexwire-1234-a").exists()
    place.write(kept[1].name, b"22")
    with pytest.raises(AnalysisError, match=r"messages/X/a has 2 bytes, but the task .* counted 1"):
        settle(place, kept)
    place.remove([kept[1].name])
    with pytest.raises(
        AnalysisError, match="a task wrote tables/messages/X/a, but the output does not contain it"
    ):
        settle(place, kept)


def test_names_follow_from_the_input(tmp_path: Path) -> None:
    parts = [part_name("ab" * 32, number, part) for number in range(2) for part in range(2)]
    assert sorted(set(parts)) == parts
    assert part_name("ac" * 32, 0, 0) not in parts
    assert not list(tmp_path.iterdir())


def test_a_file_appears_whole_from_another_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, out = tmp_path / "x", tmp_path / "out"
    out.mkdir()
    local.write_bytes(b"12")
    real = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        told = list(real(path, follow_symlinks=follow_symlinks))
        told[2] += path == local  # the device
        return os.stat_result(told)

    OutputDirectory(str(out)).write("deep/a", b"old")
    monkeypatch.setattr(Path, "stat", stat)
    with (out / "deep" / "a").open("rb") as reader:
        OutputDirectory(str(out)).put(local, "deep/a")
        # A reader that has opened the previous file keeps reading that file.
        assert reader.read() == b"old"
    assert not local.exists()
    assert tree(out) == {"deep": (0o40700, b""), "deep/a": (0o100600, b"12")}
