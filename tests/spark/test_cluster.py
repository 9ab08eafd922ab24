"""A whole analysis on a standalone cluster equals one on one machine, even if processes die."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.spark.publishing.local import PREFIX
from tests.capture.interleaved import EVERYTHING
from tests.spark.cluster import Cluster, Driver
from tests.spark.equality import assert_equal_analyses
from tests.spark.faulty import wait_for
from tests.spark.on_cluster import HIDDEN, WAITING
from tests.spark.published import found

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

# Every process has a working directory with this name, but containing different files.
UNSEEN = "/proc/self/cwd"
SHAPE = EVERYTHING
ANALYZED = "tests.spark.on_cluster:analyzed"


@pytest.fixture(scope="module")
def driver(standalone: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Run a driver with a working directory and HOME different from those of the workers."""
    made = Driver(standalone.url, tmp_path_factory.mktemp("driver"), worker_memory="2g")
    yield made
    made.close()


def test_a_cluster_gives_the_analysis_of_one_machine(
    driver: Driver, shaped: list[str], here: Path, tmp_path: Path
) -> None:
    assert driver.ask("tests.spark.on_cluster:address_space") == 2 << 30
    heard = driver.ask(ANALYZED, shaped, str(tmp_path / "out"))
    assert not isinstance(heard, str), heard
    assert heard["Decoding captures"] > 2, heard
    assert len(list((tmp_path / "out/tables/frames").glob("*.parquet"))) > 2
    assert_equal_analyses(tmp_path / "out", here)


def test_a_task_that_is_killed_after_it_wrote_counts_once(
    driver: Driver, shaped: list[str], here: Path, tmp_path: Path, flags: Path
) -> None:
    out = tmp_path / "out"
    driver.ask(ANALYZED, shaped, str(out), "task_killed", str(flags))
    # In one of the actions, a task was started twice.
    assert any(len(list(action.iterdir())) > 1 for action in flags.iterdir())
    assert_equal_analyses(out, here)
    assert not list(out.glob(f"{PREFIX}*"))


def test_a_worker_that_ends_in_the_middle_is_made_up_for(
    standalone: Cluster,
    driver: Driver,
    shaped: list[str],
    here: Path,
    tmp_path: Path,
    flags: Path,
) -> None:
    out = tmp_path / "out"
    driver.tell(ANALYZED, shaped, str(out), "worker_killed", str(flags))
    wait_for((flags / WAITING).exists)
    waiting = (flags / WAITING).read_text()
    (number,) = (n for n in range(len(standalone.workers)) if f"/worker{n}/" in waiting)
    standalone.workers[number].kill()
    standalone.start_worker()
    assert found(out) == set()
    (flags / "go").touch()
    driver.answer()
    assert_equal_analyses(out, here)


def test_an_output_that_only_the_driver_sees_is_an_error(driver: Driver, shaped: list[str]) -> None:
    told = driver.ask(ANALYZED, shaped, f"{UNSEEN}/out")
    assert told.startswith(f"AnalysisError: Decoding captures: {UNSEEN}/out/{PREFIX}"), told
    assert "does not exist; an output must be on a file system that the driver and every" in told
    assert not (driver.home / "out").exists()


def test_a_capture_that_only_the_driver_sees_is_an_error(
    driver: Driver, shaped: list[str], tmp_path: Path
) -> None:
    hidden, out = tmp_path / "tap9-00009.pcapng", tmp_path / "out"
    hidden.write_bytes(Path(shaped[-1]).read_bytes())
    told = driver.ask(ANALYZED, [*shaped[:-1], str(hidden)], str(out), HIDDEN)
    assert told.startswith(f"AnalysisError: Decoding captures: {hidden}: "), told
    assert "or only the driver can see the file" in told
    assert not out.exists()
