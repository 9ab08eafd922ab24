"""What Spark's filters say of logs: topics, partitions, offsets and times.

A filter narrows what is read and is never claimed: Spark compares every row again, so that what a
filter means stays Spark's.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from flexwire.logs.files import EVERY, Bounds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.logs.files import LogQuery

_EQUAL = {"EqualTo", "EqualNullSafe"}
_MILLISECOND = 1000


def narrowed(query: LogQuery, filters: Iterable[Any]) -> LogQuery:
    """Give a query that reads no less than what passes all filters.

    They are `pyspark.sql.datasource.Filter`, known by their names: PySpark 4.0 has none.
    """
    for one in filters:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        value = getattr(one, "value", None)
        if len(attribute) == 1 and value is not None:
            query = _narrowed(query, attribute[0], type(one).__name__, value)
    return query


def _narrowed(query: LogQuery, column: str, kind: str, value: Any) -> LogQuery:
    values = value if kind == "In" else (value,)
    if column == "topic" and kind in {*_EQUAL, "In"}:
        return replace(query, topics=_within(query.topics, values))
    if column == "partition" and kind in {*_EQUAL, "In"}:
        return replace(query, partitions=_within(query.partitions, values))
    if column == "offset":
        return replace(query, offsets=query.offsets & _bounds(kind, value))
    if column == "timestamp":
        moments = tuple(map(_milliseconds, values)) if kind == "In" else _milliseconds(value)
        return replace(query, timestamps=query.timestamps & _bounds(kind, moments, whole=False))
    return query


def _within(known: Any, values: Iterable[Any]) -> frozenset[Any]:
    found = frozenset(values)
    return found if known is None else found & frozenset(known)


def _bounds(kind: str, value: Any, *, whole: bool = True) -> Bounds:
    """Give what numbers pass; of a time a part of its millisecond is cut off, so both stay in."""
    if kind in _EQUAL:
        return Bounds(value, value)
    if kind == "In":
        return Bounds(min(value), max(value)) if value else EVERY
    if kind in {"GreaterThan", "GreaterThanOrEqual"}:
        return Bounds(low=value + (whole and kind == "GreaterThan"))
    if kind in {"LessThan", "LessThanOrEqual"}:
        return Bounds(high=value - (whole and kind == "LessThan"))
    return EVERY


def _milliseconds(moment: datetime) -> int:
    """Give a time in the milliseconds of a log, rounded down."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // _MILLISECOND
