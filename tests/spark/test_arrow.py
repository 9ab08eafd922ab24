"""Spark accepts the type of every message, and messages are sent in batches of bounded size."""

from __future__ import annotations

import pyarrow as pa

from flexwire.columnar.types import message_type
from flexwire.schema.catalog import catalog
from flexwire.tables.spec_places import RECORDS_FIELDS
from flexwire.tasks import spark_schema


def test_every_message_has_a_type_that_spark_takes() -> None:
    for name in catalog().names():
        schema = pa.schema([("body", message_type(name))])
        assert spark_schema(schema)["body"].nullable


def test_every_field_of_records_is_read_or_left_out_for_a_reason() -> None:
    # These fields hold parts of files, which begin and end within a batch.
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
