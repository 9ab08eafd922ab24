"""The columns that identify a connection and a frame: the key of every join, group and window.

An analysis names connections by their ends, and counts the frames of each from 0. So these columns
repeat between analyses. A table that grows holds the rows of several analyses, and its column
``analysis`` belongs to each key. A table of one analysis has no such column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

ANALYSIS: Final = "analysis"
"""The column of tables that grow: the analysis that wrote the row."""
CONNECTION_KEY: Final = ("connection",)
"""The columns that identify a connection within one analysis."""
FRAME_KEY: Final = (*CONNECTION_KEY, "direction", "frame_index")
"""The columns that identify a frame within one analysis."""


def connection_key(columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns that identify a connection in a table with these ``columns``.

    >>> connection_key(["connection", "client", "analysis"]), connection_key(["connection"])
    (('analysis', 'connection'), ('connection',))
    """
    return _with_analysis(CONNECTION_KEY, columns)


def frame_key(columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns that identify a frame in a table with these ``columns``.

    >>> frame_key(["connection", "direction", "frame_index", "analysis"])
    ('analysis', 'connection', 'direction', 'frame_index')
    """
    return _with_analysis(FRAME_KEY, columns)


def _with_analysis(key: tuple[str, ...], columns: Collection[str]) -> tuple[str, ...]:
    return (ANALYSIS, *key) if ANALYSIS in columns else key
