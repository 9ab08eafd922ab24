"""The common settings of all tests: the one Spark session, and the tests that run in parallel."""

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
    searching,  # noqa: F401 - it loads the profile that every search has
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
LONG = ("slow", "guard")
SESSIONS = 2
"""How many processes of a run start a session of Spark. Each takes 2 GB, and half a minute of a
processor until its queries are fast."""
FEW_STAGES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    # Or PySpark asks Java for the session, and for the line that runs, with each column.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""What answers about small tables are asked with too: a query of a few rows is one job of one task
a stage, and takes half the time. Analyses on a cluster have Spark's own settings."""


def pytest_configure(config: pytest.Config) -> None:
    """Have every run end, and tests that change their process in one of their own."""
    config.pluginmanager.register(collecting)
    config.pluginmanager.register(ending)
    config.pluginmanager.register(own_process)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests that use Spark and do not say so; the longest files come first, whole."""
    ranks: dict[str, int] = {}
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and not is_spark(item):
            raise pytest.UsageError(f"{item.nodeid} uses Spark: mark it, or its module, as spark")
        if not is_spark(item):
            file = scope(item.nodeid)
            is_long = any(map(item.get_closest_marker, LONG))
            ranks[file] = min(ranks.get(file, 2), 1 if is_long else 2)
    # Nobody is left alone with a long file when all others are done.
    items.sort(key=lambda item: 0 if is_spark(item) else ranks[scope(item.nodeid)])


def is_spark(item: pytest.Item) -> bool:
    """Return whether a test starts Spark."""
    return item.get_closest_marker("spark") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process the tests of whole files, and few processes those that start Spark."""
    if config.getvalue("dist") != "loadfile":
        return None
    # It is here only if tests run beside each other.
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
    # In the order above, and not the files of most tests first.
    config.option.loadscopereorder = False
    config.stash[ending.WATCH].scheduler = scheduling
    return scheduling


def next_file(files: Iterable[str], *, is_full: bool) -> str:
    """Return the file that a process takes next. Where sessions are full it takes those last."""
    waiting = [*files]
    others = (one for one in waiting if not shares_spark(one))
    return next(others, waiting[0]) if is_full else waiting[0]


def scope(nodeid: str) -> str:
    """Return what tests have in common that run in one process: their file."""
    return nodeid.partition("::")[0]


@cache
def shares_spark(file: str) -> bool:
    """Return whether a file has a test that takes the session of its process."""
    path = ROOT / file
    # Sessions that a test runs have other files.
    return path.exists() and "spark: SparkSession" in path.read_text(encoding="utf-8")


def _remember_classes() -> None:
    """Ask Java once what a name stands for: PySpark asks it anew for each column."""
    from py4j.java_gateway import (  # noqa: PLC0415 - it takes a while
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
    """The one Spark session of the run; it takes seconds to start, so only who asks pays."""
    # Importing PySpark takes a second.
    from flexwire.spark.archive import with_archive  # noqa: PLC0415 - see above
    from flexwire.spark.session import session  # noqa: PLC0415 - see above
    from flexwire.spark.settings import SMALL_CONF, SMALL_JAVA  # noqa: PLC0415 - see above

    _remember_classes()
    # The jobs of tests are small, as those of an analysis that takes the same settings.
    conf = with_archive(SMALL_JAVA | SMALL_CONF | FEW_STAGES)
    java = os.environ.get("JAVA_HOME")
    started = session("flexwire tests", master="local[2]", memory="1g", conf=conf)
    # It says on which Java it is; processes of tests are to find theirs, and its archive.
    os.environ.pop("JAVA_HOME", None)
    if java is not None:
        os.environ["JAVA_HOME"] = java
    yield started
    started.stop()
