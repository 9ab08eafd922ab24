"""Every message has a type that Spark takes, and goes there in batches of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.columnar.types import message_type
from flexwire.schema.catalog import catalog
from flexwire.spark.tables import record_batches, row_tuples
from flexwire.tables.spec_places import RECORDS_FIELDS
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    import pytest


def test_every_message_has_a_type_that_spark_takes() -> None:
    for name in catalog().names():
        schema = pa.schema([("body", message_type(name))])
        assert spark_schema(schema)["body"].nullable


def test_every_field_of_records_is_read_or_left_out_for_a_reason() -> None:
    # These hold parts of files, which begin and end within a batch.
    left_out = {("FetchSnapshotResponse", "unaligned_records")}
    read = {(one.message, one.records) for one in RECORDS_FIELDS}
    found = {
        (name, field.attribute)
        for name in catalog().names()
        for spec, _ in catalog().entry(name).specs()
        for field in spec.walk()
        if field.type.name == "records"
    }
    assert found == read | left_out


def test_batches_are_bounded_by_bytes_and_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.spark.tables.BATCH_BYTES", 10)
    monkeypatch.setattr("flexwire.spark.tables.BATCH_ROWS", 3)
    schema = pa.schema([("n", pa.int64())])
    sizes = [4, 6, 1, 100, 0, 0, 0, 0]
    batches = list(record_batches(schema, (((n,), size) for n, size in enumerate(sizes))))
    assert [batch.num_rows for batch in batches] == [2, 1, 1, 3, 1]
    assert [row[0] for row in row_tuples(batches)] == list(range(len(sizes)))
