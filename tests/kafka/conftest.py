"""Start real brokers and Spark with its own Kafka source, and write topics of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kafka.filling import Broker, fill
from tools.broker import VERSIONS, broker
from tools.maven import Jars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# The connector of the newest Spark on Maven Central; it also runs on Spark 4.3, for which there is
# no connector.
CONNECTOR = "4.2.0"
# PySpark already has these jars, and the class path must not contain another Spark's.
OF_SPARK = ("hadoop-client-runtime", "hadoop-client-api", "scala-library", "slf4j-api", "jsr305")
# Old records are kept, and the cleaner runs immediately.
SETTINGS = {
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.threads": "1",
    # How often log start offsets are written; the default is a minute.
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Yield a session with the connector, which must exist when Java starts."""
    from flexwire.spark.session import session  # noqa: PLC0415 - see above
    from flexwire.spark.settings import SMALL_JAVA  # noqa: PLC0415 - it imports PySpark

    wanted = (f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR}",)
    found = Jars(f"spark-kafka-{CONNECTOR}", wanted).bring()
    jars = [str(jar) for jar in found.iterdir() if not jar.name.startswith(OF_SPARK)]
    conf = {**SMALL_JAVA, "spark.jars": ",".join(sorted(jars))}
    started = session("flexwire and a broker", master="local[2]", memory="1g", conf=conf)
    yield started
    started.stop()


@pytest.fixture(scope="session", params=VERSIONS)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """Start a broker of each release, with all topics."""
    directory = tmp_path_factory.mktemp(f"kafka-{request.param}")
    with broker(request.param, directory, SETTINGS) as address:
        yield fill(Broker(address, directory / "data"))
