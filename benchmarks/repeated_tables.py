"""Make tables of many captures from those of one: ``python benchmarks/repeated_tables.py OUT TO``.

Capturing the work of groups takes minutes, and a gigabyte of it would take days. Each of
``--times`` copies is an hour later than the one before, with other clients, connections and groups;
everything else in the tables is the same. ``benchmarks/answers.py TO groups lag`` then computes
answers.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

RENAMED = ("connection", "client", "client_id")
HOUR_US = 3_600_000_000


def copy_of(table: pa.Table, number: int) -> pa.Table:
    """Return a table of other clients and groups, some hours later."""
    for place, field in enumerate(table.schema):
        column: Any = table.column(place).combine_chunks()
        if field.name in RENAMED:
            # Changed at the front, because the port is at the end, and the broker in between.
            column = pc.binary_join_element_wise(f"c{number}", column, "-")
        elif field.name.endswith("time"):
            column = pc.add(column, pa.scalar(number * HOUR_US, pa.duration("us")))
        elif field.name == "body" and "group_id" in [one.name for one in field.type]:
            names = [one.name for one in field.type]
            children = [column.field(name) for name in names]
            at = names.index("group_id")
            children[at] = pc.binary_join_element_wise(f"g{number}", children[at], "-")
            mask = column.is_null()
            column = pa.StructArray.from_arrays(children, fields=list(field.type), mask=mask)
        table = table.set_column(place, field, column.cast(field.type))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("to", type=Path)
    parser.add_argument("--times", type=int, default=100)
    given = parser.parse_args()
    shutil.copytree(given.out, given.to)
    for path in sorted(Path(given.to, "tables").rglob("*.parquet")):
        table = pq.read_table(path, partitioning=None)
        if "connection" in table.column_names:
            with pq.ParquetWriter(path, table.schema, compression="zstd") as file:
                for number in range(given.times):
                    file.write_table(copy_of(table, number))


if __name__ == "__main__":
    main()
