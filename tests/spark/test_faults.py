"""If tasks, workers or the driver die during an analysis, the published output is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.spark.publishing.local import PREFIX, local_staging
from tests.spark import faulty
from tests.spark.cluster import Cluster, Driver
from tests.spark.faulty import attempts, names, wait_for
from tests.spark.published import found
from tests.spark.test_staging import tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FAULTY = "tests.spark.published:run_faulty"
COUNT = 4


@pytest.fixture(scope="module")
def driver(standalone: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Yield a driver on the cluster that starts speculative attempts as soon as possible."""
    conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "2s",
    }
    made = Driver(standalone.url, tmp_path_factory.mktemp("driver"), **conf)
    yield made
    made.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Yield a driver that retries tasks even without a cluster."""
    made = Driver("local[2,4]", tmp_path_factory.mktemp("alone"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Yield a driver whose workers can use only little memory. The last test kills the driver."""
    # Spark divides this memory by this number of cores.
    conf = {"spark.executor.cores": "2"}
    made = Driver("local[2]", tmp_path_factory.mktemp("bounded"), worker_memory="1g", **conf)
    yield made
    made.kill()


@pytest.mark.long
@pytest.mark.parametrize("fault", ["raises", "killed_mid_file", "killed_after_put"])
def test_a_task_that_runs_again_counts_once(
    alone: Driver, tmp_path: Path, flags: Path, fault: str
) -> None:
    assert_counted_once(alone, tmp_path, flags, fault)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "fault", ["raises", "killed_mid_file", "killed_after_put", "executor_killed", "slow"]
)
def test_a_task_that_runs_again_elsewhere_counts_once(
    driver: Driver, tmp_path: Path, flags: Path, fault: str
) -> None:
    assert_counted_once(driver, tmp_path, flags, fault)


def assert_counted_once(driver: Driver, tmp_path: Path, flags: Path, fault: str) -> None:
    out = tmp_path / "out"
    told = driver.ask(FAULTY, str(out), str(flags), COUNT, fault)
    assert told == [n * n for n in range(COUNT)]
    failing = 3 if fault == "slow" else 1
    assert attempts(flags, failing) > 1
    assert (flags / "beside").exists() is (fault == "slow")
    assert found(out) == names(COUNT)
    # The bytes are the same as without failures, and there are no additional files.
    same = tmp_path / "same"
    driver.ask(FAULTY, str(same), str(flags), COUNT, fault)
    whole = {name: data for name, data in tree(out).items() if name in names(COUNT)}
    assert whole == {name: data for name, data in tree(same).items() if name in names(COUNT)}
    assert not list(out.glob(f"{PREFIX}*"))


@pytest.mark.long
def test_files_are_joined_once_where_a_task_that_joins_them_is_ended(
    alone: Driver, tmp_path: Path, flags: Path
) -> None:
    trees = []
    for name in ("out", "same"):
        (tmp_path / name).mkdir()
        told = alone.ask("tests.spark.parts:run_joining", str(tmp_path / name), str(flags), COUNT)
        assert attempts(flags, 0) > 1
        assert attempts(flags, 1) > 1
        trees.append(tree(tmp_path / name / "tables"))
        assert {f"tables/{file}" for file, (_, data) in trees[-1].items() if data} == set(told)
    # In the second run, nothing fails.
    assert trees[0] == trees[1]
    assert any("-000000-000003-" in file for file in trees[0])


@pytest.mark.cluster
def test_a_worker_that_ends_for_good_is_made_up_for(
    standalone: Cluster, driver: Driver, tmp_path: Path, flags: Path
) -> None:
    out = tmp_path / "out"
    driver.tell(FAULTY, str(out), str(flags), COUNT, "waits")
    wait_for(lambda: attempts(flags, 0) and attempts(flags, 1))
    standalone.workers[-1].kill()
    (flags / "go").touch()
    assert driver.answer() == [n * n for n in range(COUNT)]
    assert found(out) == names(COUNT)
    standalone.start_worker()


@pytest.mark.long
def test_a_worker_has_the_memory_that_it_was_given_and_no_more(
    bounded: Driver, tmp_path: Path, flags: Path
) -> None:
    assert bounded.ask("tests.spark.on_cluster:address_space") == 1 << 30
    out = tmp_path / "out"
    assert bounded.ask(FAULTY, str(out), str(flags), 2, "greedy", "512m", "1g") == (
        "AnalysisError: Writing: a Python worker ran out of memory; the limit was 1g: use "
        '--worker-memory 2g, or worker_memory="2g" in Python'
    )
    # Java continues, and tasks that need less memory succeed.
    assert bounded.ask(FAULTY, str(out), str(flags), 2, "raises") == [0, 1]


@pytest.mark.long
def test_a_driver_that_is_killed_publishes_nothing_and_the_next_one_sweeps(
    bounded: Driver, tmp_path: Path, flags: Path
) -> None:
    out, killed = tmp_path / "out", bounded
    assert killed.ask(FAULTY, str(out), str(flags), 1, "raises") == [0]
    before = tree(out)
    killed.tell(FAULTY, str(out), str(flags), COUNT, "waits")
    wait_for(lambda: len(list(out.glob(f"{PREFIX}*/new/tables/*/*.parquet"))) == 2)
    killed.kill()
    (flags / "go").touch()
    # A reader finds the earlier output, and nothing from the dead analysis.
    assert found(out) == names(1)
    # Java lives a moment longer than the driver, and its tasks continue to write.
    wait_for(killed.is_gone)
    assert found(out) == names(1)
    assert {name: one for name, one in tree(out).items() if not name.startswith("_")} == before
    with local_staging(out) as place:
        assert [one for one in out.glob(f"{PREFIX}*") if one != place.directory] == []
    assert tree(out) == before


# test_staging.py checks this without Spark.
@pytest.mark.cluster
def test_without_an_output_before_there_is_none(tmp_path: Path, flags: Path) -> None:
    out = tmp_path / "out"
    killed = Driver("local[2]", tmp_path / "home")
    killed.tell(FAULTY, str(out), str(flags), COUNT, "waits")
    wait_for(lambda: list(out.glob(f"{PREFIX}*/new/tables/{faulty.TABLES[0]}/*.parquet")))
    killed.kill()
    assert found(out) == set()
    assert not (out / "tables").exists()
