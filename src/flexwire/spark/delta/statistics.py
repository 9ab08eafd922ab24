"""Delta's statistics of a file's columns, which readers use to skip files.

The statistics come from the footer of the file. A reader skips a file if the minimum and maximum
values show that no row is wanted. These bounds can therefore be too wide, but never too narrow.
Delta stores times in milliseconds, so bounds are rounded outwards. Long strings are shortened. In a
maximum, the last remaining character is then replaced by its successor.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from flexwire.tables.keys import ANALYSIS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.parquet as pq

MOST_COLUMNS: Final = 32
"""Statistics are written only for the first columns, up to this number, and for ``analysis``.
Delta's own writers do the same for the first columns."""
_MOST_LETTERS: Final = 32
_LAST_YEAR: Final = 9998
_MILLISECOND: Final = timedelta(milliseconds=1)
_SURROGATES: Final = range(0xD800, 0xE000)


def statistics(footer: pq.FileMetaData) -> str:
    """Return Delta's statistics of a file, as JSON."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, groups in _columns(footer):
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls[name] = sum(group.null_count for group in groups)
        valued = [group for group in groups if group.num_values]
        if not valued or not all(group.has_min_max for group in valued):
            continue
        low, high = min(group.min for group in valued), max(group.max for group in valued)
        bounds = _bounds(low, high)
        if bounds is not None:
            least[name], greatest[name] = bounds
    counts = {"numRecords": footer.num_rows}
    return json.dumps({**counts, "minValues": least, "maxValues": greatest, "nullCount": nulls})


def _columns(footer: pq.FileMetaData) -> Iterator[tuple[str, list[Any]]]:
    """Yield the first top-level columns, each with its statistics from the row groups."""
    if not footer.num_row_groups:
        return
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    plain = [
        place for place in range(footer.num_columns) if "." not in footer.schema.column(place).path
    ]
    # Readers use the bounds of ``analysis`` to find out whether the analyses in a merged file have
    # the state "in".
    chosen = [
        place
        for at, place in enumerate(plain)
        if at < MOST_COLUMNS or footer.schema.column(place).name == ANALYSIS
    ]
    for place in chosen:
        yield footer.schema.column(place).name, [group.column(place).statistics for group in groups]


def _bounds(low: Any, high: Any) -> tuple[Any, Any] | None:
    if isinstance(low, bool):
        return None
    if isinstance(low, int):
        return low, high
    if isinstance(low, datetime):
        return None if high.year > _LAST_YEAR else (_moment(low), _moment(high, up=True))
    if isinstance(low, str):
        cut = _above(high)
        return None if cut is None else (low[:_MOST_LETTERS], cut)
    # Floats may be NaN, and readers do not compare binary columns.
    return None


def _moment(moment: datetime, *, up: bool = False) -> str:
    cut = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    if up and cut != moment:
        cut += _MILLISECOND
    return cut.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _above(text: str) -> str | None:
    """Return a short string that does not sort before ``text``, or None if none exists.

    >>> _above("short"), _above("a" * 31 + "bcd")
    ('short', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac')
    """
    if len(text) <= _MOST_LETTERS:
        return text
    kept = text[:_MOST_LETTERS]
    while kept:
        following = ord(kept[-1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= sys.maxunicode:
            return kept[:-1] + chr(following)
        kept = kept[:-1]
    return None
