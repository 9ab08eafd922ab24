"""The columns that identify a connection and a frame: the key of every join, group and window.

Connections are named by their ends, and the frames of each are counted from 0. So these columns
repeat between analyses. A table that grows holds the rows of several analyses, and its column
``analysis`` belongs to each key. A table of one analysis has no such column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

ANALYSIS: Final = "analysis"
"""The column of tables that grow: the analysis that wrote the row."""
BEGAN_IN: Final = "began_in"
"""The column of tables that grow: the analysis in which the row's connection began, null if it is
the row's own. Views put it in the place of ``analysis``, so that keys are those of whole
connections."""
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
