"""On docs/vendor.md, a catalog with a vendor's own API decodes traffic that uses the API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flexwire
from flexwire.client import Broker
from flexwire.schema.catalog import use_catalog
from tests.house.test_readme import check_page
from tests.net.answering import Answers, answering
from tests.spark.traffic import Traffic, made
from tests.tables.test_reference import check

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "vendor.md").read_text(encoding="utf-8")
KEY = 12000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("vendor")
    check_page(PAGE, directory)
    return directory


@pytest.fixture
def _catalog(place: Path) -> Iterator[None]:
    use_catalog(place / "acme")
    yield
    use_catalog(None)


@pytest.mark.slow
@pytest.mark.usefixtures("_catalog")
def test_captured_traffic_is_that_of_the_reference(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "capture")
    connection = traffic.connect(("10.0.0.7", 7000))
    kinds = [flexwire.message(name) for name in ("PingRequest", "PingResponse")]
    for number in range(6):
        ping, pong = (kind(text=f"hello {number}") for kind in kinds)
        traffic.exchange(connection, ping, pong, number % 2, number)
    traffic.exchange(connection, made("MetadataRequest"), made("MetadataResponse"), 12, 9)
    traffic.close()
    tables = check(sorted(traffic.directory.iterdir()))
    names = [row["message"] for row in tables["frames"]]
    assert names.count("PingRequest") == names.count("PingResponse") == 6
    assert {row["outcome"] for row in tables["frames"]} == {"decoded"}
    texts = [row["body"]["text"] for row in tables["messages/PingResponse"]]
    assert sorted(texts) == [f"hello {number}" for number in range(6)]


@pytest.mark.usefixtures("_catalog")
def test_a_broker_is_called() -> None:
    broker = Answers({"ApiVersions": (0, 3), "Ping": (0, 1)}, Ping={"text": "pong"})
    with answering(broker) as (address, _), Broker.connect(str(address), timeout=5) as connected:
        answer = connected.call("Ping", {"text": "ping"})
        assert answer.response == flexwire.message("PingResponse")(text="pong")
