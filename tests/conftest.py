from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # `-m "not spark"` then leaves out exactly the tests that start the session.
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the run; it takes seconds to start, so only who asks pays."""
    from flexwire.spark.session import session  # noqa: PLC0415 - importing PySpark takes a second

    # One compiler, and a collector without threads of its own: the jobs of tests are small.
    small = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    started = session("flexwire tests", master="local[2]", memory="1g", conf=small)
    yield started
    started.stop()
