"""Choose the columns that a reader of rows requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.arguments import to_list
from flexwire.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable


def choose_columns(schema: pa.Schema, columns: Iterable[str] | None) -> pa.Schema:
    """Return the named columns in the given order, or all columns.

    Raises `ArgumentError` for a name that is not in the schema.
    """
    if columns is None:
        return schema
    names = to_list(columns, "columns", "a list of columns")
    for name in names:
        if name not in schema.names:
            raise ArgumentError(
                f"there is no column {name}; choose one of: {', '.join(schema.names)}"
            )
    return pa.schema([schema.field(name) for name in names])
