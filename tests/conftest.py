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
    # Importing PySpark takes a second.
    from flexwire.spark.analyze import SMALL_JAVA  # noqa: PLC0415 - see above
    from flexwire.spark.session import session  # noqa: PLC0415 - see above

    # The jobs of tests are small.
    started = session("flexwire tests", master="local[2]", memory="1g", conf=SMALL_JAVA)
    yield started
    started.stop()
