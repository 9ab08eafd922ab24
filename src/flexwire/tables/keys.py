"""The columns that identify a connection and a frame, for every join, group and window.

Connections are named after their endpoints, and the frames of each connection are numbered from 0,
so another analysis can contain the same values in these columns. A table that grows contains the
rows of several analyses, so its column ``analysis`` is part of each key. A table of one analysis
has no such column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

ANALYSIS: Final = "analysis"
"""The column of tables that grow: the analysis that wrote the row."""
BEGAN_IN: Final = "began_in"
"""In tables that grow: the column that contains the analysis in which the row's connection began,
or null if that is the row's own analysis. Views use this column in place of ``analysis``, so that
keys identify whole connections.
"""
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
