"""If a release has its own layout of a version, bytes captured from it are read in that layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from flexwire.spark.analyze import analyze
from flexwire.tables.message_schema import body_type, class_of
from tests.spark.traffic import Traffic, request, response

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

RELEASES = ("3.6.2", "4.0.2")


def laid_out_anew(release: str) -> list[tuple[str, int]]:
    """Return a release's requests and responses whose layout differs in the newest release."""
    found = []
    for name in catalog().names():
        entry = catalog().entry(name)
        if entry.type.is_api:
            found += [
                (name, version)
                for version in entry.releases.get(release, ())
                if class_of(name, version, release) is not message(name)
            ]
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_laid_out_anew_is_a_row_of_its_release_s_fields(
    spark: SparkSession, tmp_path: Path, release: str
) -> None:
    traffic = Traffic(tmp_path / "capture")
    sent: dict[tuple[str, int], Any] = {}
    for number, (name, version) in enumerate(laid_out_anew(release)):
        connection = traffic.connect(("10.0.0.7", 7000 + number))
        made = class_of(name, version, release)
        value = sent[name, version] = random_message(made, version, number)
        api = made.entry.api_key  # type: ignore[attr-defined] # requests and responses have one
        asked = catalog().by_api_key(api, MessageType.REQUEST, version).name
        if asked == name:
            traffic.send(connection, "request", request(value, version, 1))
        else:
            ask = class_of(asked, version, release)
            traffic.send(
                connection, "request", request(random_message(ask, version, 1), version, 1)
            )
            traffic.send(connection, "response", response(value, version, 1))
    traffic.close()
    assert sent
    analysis = analyze(
        [traffic.directory], tmp_path / "out", spark=spark, captured_release=release, ports=[9092]
    )
    for (name, version), value in sent.items():
        table = spark.read.parquet(str(analysis.tables.message(name)))
        rows = table.where("error is null").collect()
        assert any(_same(row.body, value) for row in rows), (name, version)
    failed = spark.read.parquet(str(analysis.tables.frames)).where("outcome = 'failed'").count()
    assert failed == 0


def _same(row: Row, value: Any) -> bool:
    """Return whether the row has all fields of the object. It may have fields of other releases."""
    for name in value.__struct_fields__:
        here, there = row[name], getattr(value, name)
        if isinstance(there, str | int | bool) and here != there:
            return False
        if isinstance(there, list) and len(here or []) != len(there):
            return False
    return True


def test_without_it_the_newest_layout_is_read() -> None:
    assert laid_out_anew(catalog().newest_release) == []
    for name in catalog().names():
        assert body_type(name, None) == body_type(name, catalog().newest_release)
