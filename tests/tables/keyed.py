"""Tables that are joined to themselves by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.tables.keys import ANALYSIS
from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.output import MESSAGES
from flexwire.tables.schema import GROWN_TABLES, REQUEST_LOG_TABLES, TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

EVERY = (*TABLES, *GROWN_TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES)
_KEYS = {one.place: one.key for one in EVERY}
_OF_MESSAGES = _KEYS[f"{MESSAGES}/<Message>"]


def assert_keys_identify_rows(tables: Mapping[str, pa.Table]) -> set[str]:
    """Join each table to itself by its key, and expect its own number of rows.

    Return the names of the tables that have a key and rows.
    """
    found = set[str]()
    for name, rows in tables.items():
        key = [*(_OF_MESSAGES if name.startswith(MESSAGES) else _KEYS[name])]
        if not key or not rows.num_rows:
            continue
        key += [ANALYSIS] if ANALYSIS in rows.column_names else []
        # Two rows without a value in a key column count as equal in this column.
        groups = rows.group_by(key).aggregate([([], "count_all")])
        assert sum(count**2 for count in groups["count_all"].to_pylist()) == rows.num_rows, name
        found.add(name)
    return found
