"""docs/tables.md: a line for every column of every table, as the schemas describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_type

from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.schema import GROWN_TABLES, REQUEST_LOG_TABLES, TABLES
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from flexwire.tables.schema import Table

PAGE = DOCS / "tables.md"
_HEAD = """# The tables of an analysis

`flexwire analyze CAPTURE --out OUT` writes these tables below `OUT/tables`, in Parquet format, with
one directory for each table. The column types are Spark types. A timestamp is in UTC and has a
precision of microseconds. Spark allows null in every column. The last column of each list states
when a value is null; if this cell is empty, the value is never null. The columns of a key identify
a row; in tables that grow, the column `analysis` is also needed. flexwire writes the file
`OUT/tables/_SUCCESS` when all tables are complete. The log tables, `log_…`, exist only if log
segments were given. If no capture is given, the traffic tables are empty.
`python -m tools.pages.tables` writes this page from `flexwire.tables.schema` and
`flexwire.tables.log_schema`.
"""


def files() -> dict[Path, str]:
    """Return the page."""
    tables = (*TABLES, *GROWN_TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES)
    return {PAGE: _HEAD + "".join(map(section, tables))}


def section(table: Table) -> str:
    """Return the part of the page about one table."""
    lines = [
        f"| `{column.name}` | `{spark_type(column.type)}` | {markdown(column.meaning)} "
        f"| {markdown(column.null)} |"
        for column in table.columns
    ]
    head = f"\n## `{table.place}`\n{markdown(table.row)}\n\n{key(table)}\n"
    return "\n".join([head, "| column | type | meaning | null |", "|---|---|---|---|", *lines, ""])


def key(table: Table) -> str:
    """Return the sentence about the columns that identify a row.

    >>> from flexwire.tables.schema import TABLES
    >>> key(TABLES[1])
    '**Key:** `connection`.'
    """
    names = ", ".join(f"`{name}`" for name in table.key)
    return f"**Key:** {names}." if names else "**Key:** none; several rows may be equal."


def spark_type(kind: pa.DataType) -> str:
    """Return Spark's name for an Arrow type."""
    return from_arrow_type(kind).simpleString()


def markdown(text: str) -> str:
    """Return a docstring's text as Markdown.

    >>> markdown("what ``True`` means")
    'what `True` means'
    """
    return text.replace("``", "`")


if __name__ == "__main__":
    write_files(files())
