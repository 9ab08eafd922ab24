"""Settings for all tests: the shared Spark session, and how tests run in parallel."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import (
    collecting,
    ending,
    own_process,
    searching,  # noqa: F401 - it loads the profile that every search uses
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
LONG = ("slow", "guard")
SESSIONS = 1 if (os.cpu_count() or 1) <= 2 else 2
"""How many processes of a run start a Spark session.

Each session takes 2 GB, and half a minute of CPU time until its queries are fast. On two
processors, a run with two sessions takes longer than a run with one.
"""
FEW_STAGES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    # Without this, PySpark asks Java for the session, and for the line that runs, for each column.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""These settings are used in addition to those for answers about small tables.

A query of a few rows then runs as one job with one task per stage, and takes half the time.
Analyses on a cluster use Spark's own settings.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Make sure that every run ends, and run tests that change their process in a separate one."""
    config.pluginmanager.register(collecting)
    config.pluginmanager.register(ending)
    config.pluginmanager.register(own_process)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests that use Spark without its marker, and run the longest files first."""
    ranks: dict[str, int] = {}
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and not is_spark(item):
            raise pytest.UsageError(f"{item.nodeid} uses Spark: mark it, or its module, as spark")
        if not is_spark(item):
            file = scope(item.nodeid)
            is_long = any(map(item.get_closest_marker, LONG))
            ranks[file] = min(ranks.get(file, 2), 1 if is_long else 2)
    # The longest files come first, so that no process still runs one when all others are done.
    items.sort(key=lambda item: 0 if is_spark(item) else ranks[scope(item.nodeid)])


def is_spark(item: pytest.Item) -> bool:
    """Return whether a test starts Spark."""
    return item.get_closest_marker("spark") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign whole files to each process, and files that use Spark to only a few processes."""
    if config.getvalue("dist") != "loadfile":
        return None
    # pytest-xdist is imported only if tests run in parallel.
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 - see above

    with_session: set[Any] = set()

    class FewSessions(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
        def _assign_work_unit(self, node: Any) -> None:
            is_full = node not in with_session and len(with_session) >= SESSIONS
            file = next_file(self.workqueue, is_full=is_full)
            self.workqueue.move_to_end(file, last=False)
            if shares_spark(file):
                with_session.add(node)
            super()._assign_work_unit(node)

    scheduling = FewSessions(config, log)
    # Files keep the order above; by default, xdist sorts them by their number of tests.
    config.option.loadscopereorder = False
    config.stash[ending.WATCH].scheduler = scheduling
    return scheduling


def next_file(files: Iterable[str], *, is_full: bool) -> str:
    """Return the file that a process runs next.

    With ``is_full``, the process may start no Spark session, so Spark files come last.
    """
    waiting = [*files]
    others = (one for one in waiting if not shares_spark(one))
    return next(others, waiting[0]) if is_full else waiting[0]


def scope(nodeid: str) -> str:
    """Return the file that contains a test; all tests of a file run in one process."""
    return nodeid.partition("::")[0]


@cache
def shares_spark(file: str) -> bool:
    """Return whether a file contains a test that uses the session of its process."""
    path = ROOT / file
    # If a test runs pytest itself, the files of that run may not exist here.
    return path.exists() and "spark: SparkSession" in path.read_text(encoding="utf-8")


def _remember_classes() -> None:
    """Ask Java only once what a name means; by default, PySpark asks again for each column."""
    from py4j.java_gateway import (  # noqa: PLC0415 - the import takes a while
        JavaClass,
        JavaMember,
        JVMView,
    )

    for kind, kept in ((JVMView, JavaClass), (JavaClass, JavaMember)):

        def find(self: Any, name: str, ask: Any = kind.__getattr__, kept: Any = kept) -> Any:
            found = ask(self, name)
            if isinstance(found, kept):
                vars(self)[name] = found
            return found

        kind.__getattr__ = find


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Yield the only Spark session of the run; only tests that use it wait for its start."""
    # Importing PySpark takes a second.
    from flexwire.spark.archive import with_archive  # noqa: PLC0415 - see above
    from flexwire.spark.session import session  # noqa: PLC0415 - see above
    from flexwire.spark.settings import SMALL_CONF, SMALL_JAVA  # noqa: PLC0415 - see above

    _remember_classes()
    # Python's proxies for Java objects refer to themselves, so only garbage collection frees them.
    # Collected as rarely as in other processes, these proxies would fill Java's heap.
    collecting.collect_as_usual()
    # Tests run small jobs, as analyses do, and use the same settings.
    conf = with_archive(SMALL_JAVA | SMALL_CONF | FEW_STAGES)
    java = os.environ.get("JAVA_HOME")
    started = session("flexwire tests", master="local[2]", memory="1g", conf=conf)
    # The archive depends on the Java version, so each test process must find its own Java and
    # archive.
    os.environ.pop("JAVA_HOME", None)
    if java is not None:
        os.environ["JAVA_HOME"] = java
    yield started
    started.stop()
