"""docs/tables.md has a line for every column of every table, as the schemas say.

Write it anew with ``python -m tests.docs.test_tables_page``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.pandas.types import from_arrow_type

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
    OUTCOMES,
    PACKETS_TABLE,
    RECORDS,
    REQUEST_LOG_TABLES,
    TABLES,
    Table,
)

if TYPE_CHECKING:
    import pyarrow as pa

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
HEAD = """# The tables of an analysis

What `flexwire analyze CAPTURE --out OUT` writes below `OUT/tables`: Parquet, one directory a table.
The types are Spark's; a timestamp has microseconds, in UTC. To Spark every column may be null; the
last column says where one is, and is empty where none is. `OUT/tables/_SUCCESS` is there once all
tables are complete. Tables of logs, `log_…`, are there where log segments were given; without a
capture those of traffic have no row. `python -m tests.docs.test_tables_page` writes this page from
`flexwire.tables.schema` and `flexwire.tables.log_schema`.
"""


def page() -> str:
    """Write the page."""
    return HEAD + "".join(map(section, (*TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES)))


def section(table: Table) -> str:
    lines = [
        f"| `{one.name}` | `{spark_type(one.type)}` | {code(one.meaning)} | {code(one.null)} |"
        for one in table.columns
    ]
    head = f"\n## `{table.place}`\n{code(table.row)}\n"
    return "\n".join([head, "| column | type | what | null |", "|---|---|---|---|", *lines, ""])


def spark_type(kind: pa.DataType) -> str:
    return from_arrow_type(kind).simpleString()


def code(text: str) -> str:
    """Give text of Python's docstrings as Markdown has it."""
    return text.replace("``", "`")


def test_the_page_is_what_the_schemas_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


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
    told = PAGE.read_text(encoding="utf-8").partition(f"\n## `{place}`\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| `(\w+)` \| `(\S+)` \|", told, re.MULTILINE)
    assert lines == [(one.name, spark_type(one.type)) for one in schema]


def test_tables_of_frames_are_joined_by_the_same_columns() -> None:
    for schema in (FRAMES_TABLE, RECORDS, OUTCOMES, PAIRED):
        assert {*FRAME_KEY} <= {*schema.names}
        assert all(schema.field(one).type == FRAMES_TABLE.field(one).type for one in FRAME_KEY)


def test_the_audit_is_described_as_it_is_written() -> None:
    assert (*AUDIT_TABLE.names,) == COLUMNS


def test_every_table_is_on_the_page_and_every_column_is_explained() -> None:
    assert {one.place.partition("/")[0] for one in (*TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES)} == {
        *DIRECTORIES
    }
    for table in (*TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES):
        names = [one.name for one in table.columns]
        assert len(names) == len(set(names))
        for one in table.columns:
            assert one.meaning
            assert "|" not in one.meaning + one.null


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
