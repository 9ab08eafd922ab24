"""What identifies a connection and a frame in the tables: the key of every join, group and window.

An analysis names connections by their ends and counts the frames of each from 0. So these columns
repeat from one analysis to the next. Tables that grow hold the rows of several analyses, and their
column ``analysis`` is then a part of each key. Tables of one analysis have no such column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

ANALYSIS: Final = "analysis"
"""The column of tables that grow: which analysis wrote the row."""
CONNECTION_KEY: Final = ("connection",)
"""What identifies a connection within one analysis."""
FRAME_KEY: Final = (*CONNECTION_KEY, "direction", "frame_index")
"""What identifies a frame within one analysis."""


def connection_key(columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns that identify a connection, of a table with these ``columns``.

    >>> connection_key(["connection", "client", "analysis"]), connection_key(["connection"])
    (('analysis', 'connection'), ('connection',))
    """
    return _with_analysis(CONNECTION_KEY, columns)


def frame_key(columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns that identify a frame, of a table with these ``columns``.

    >>> frame_key(["connection", "direction", "frame_index", "analysis"])
    ('analysis', 'connection', 'direction', 'frame_index')
    """
    return _with_analysis(FRAME_KEY, columns)


def _with_analysis(key: tuple[str, ...], columns: Collection[str]) -> tuple[str, ...]:
    return (ANALYSIS, *key) if ANALYSIS in columns else key
