"""docs/tables.md contains a line for every column of every table, and the schemas agree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.pairing.rows import PAIRED
from flexwire.report.audit_files import COLUMNS
from flexwire.spark.tables import TABLES as DIRECTORIES
from flexwire.tables.keys import FRAME_KEY
from flexwire.tables.log_schema import LOG_SCHEMAS, LOG_TABLES
from flexwire.tables.schema import (
    AUDIT_TABLE,
    CONNECTIONS_TABLE,
    FORWARDED_TABLE,
    FRAMES_TABLE,
    GROWN_TABLES,
    OUTCOMES,
    PACKETS_TABLE,
    RECORDS,
    REQUEST_LOG_TABLES,
    TABLES,
)
from tools.pages.tables import PAGE, spark_type

if TYPE_CHECKING:
    import pyarrow as pa


@pytest.mark.parametrize(
    ("place", "schema"),
    [
        ("frames", FRAMES_TABLE),
        ("connections", CONNECTIONS_TABLE),
        ("packets", PACKETS_TABLE),
        ("audit", AUDIT_TABLE),
        ("records", RECORDS),
        ("messages/<Message>", OUTCOMES),
        ("forwarded_requests", FORWARDED_TABLE),
        *LOG_SCHEMAS.items(),
    ],
)
def test_a_table_has_a_line_for_each_column_and_no_other(place: str, schema: pa.Schema) -> None:
    section = (
        PAGE.read_text(encoding="utf-8").partition(f"\n## `{place}`\n")[2].partition("\n## ")[0]
    )
    lines = re.findall(r"^\| `(\w+)` \| `(\S+)` \|", section, re.MULTILINE)
    assert lines == [(one.name, spark_type(one.type)) for one in schema]


def test_tables_of_frames_are_joined_by_the_same_columns() -> None:
    for schema in (FRAMES_TABLE, RECORDS, OUTCOMES, PAIRED):
        assert {*FRAME_KEY} <= {*schema.names}
        assert all(schema.field(one).type == FRAMES_TABLE.field(one).type for one in FRAME_KEY)


def test_the_audit_is_described_as_it_is_written() -> None:
    assert (*AUDIT_TABLE.names,) == COLUMNS


def test_every_table_is_on_the_page_and_every_column_is_explained() -> None:
    assert {
        one.place.partition("/")[0]
        for one in (*TABLES, *GROWN_TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES)
    } == {*DIRECTORIES}
    for table in (*TABLES, *GROWN_TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES):
        names = [one.name for one in table.columns]
        assert len(names) == len(set(names))
        for one in table.columns:
            assert one.meaning
            assert "|" not in one.meaning + one.null
