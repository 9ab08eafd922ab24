"""A time span for answers, and the rows of tables within this span."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.arguments import iso_time, refuse
from flexwire.facts.units import microseconds_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DAY: Final = timedelta(days=1)
TimeOrText = datetime | str
"""A time with a time zone, or an ISO 8601 string, which is read as UTC if it has no time zone."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """The time from ``since`` (inclusive) to ``until`` (exclusive); None means no limit."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def parse(cls, since: TimeOrText | None, until: TimeOrText | None) -> TimeSpan:
        """Return the span between two times. Raises `ArgumentError` for an invalid time."""
        span = cls(_moment(since, "since"), _moment(until, "until"))
        if span.since is not None and span.until is not None and span.since >= span.until:
            raise refuse("until", f"a time after {span.since.isoformat()}", until)
        return span

    def __bool__(self) -> bool:
        """Return whether the span excludes any time."""
        return self.since is not None or self.until is not None

    def only(self, rows: DataFrame) -> DataFrame:
        """Return the rows whose ``time`` is in the span."""
        return self._where(rows, "time", "time")

    def seen(self, connections: DataFrame) -> DataFrame:
        """Return the connections whose segments may be in the span."""
        return self._where(connections, "last_time", "first_time")

    def _where(self, rows: DataFrame, late: str, early: str) -> DataFrame:
        if self.since is not None:
            rows = rows.where(F.col(late) >= _literal(self.since))
        if self.until is not None:
            rows = rows.where(F.col(early) < _literal(self.until))
        return rows

    def has_day(self, day: str) -> bool:
        """Return whether any moment of a day in UTC, such as "2026-11-22", is in the span.

        >>> TimeSpan.parse("2026-11-22T10:00", "2026-11-23").has_day("2026-11-23")
        False
        """
        is_late = self.since is None or day >= self.since.astimezone(UTC).date().isoformat()
        if self.until is None or not is_late:
            return is_late
        # The span does not include its end.
        end = self.until.astimezone(UTC)
        last = end.date().isoformat()
        return day < last or (day == last and end.time() != datetime.min.time())

    def has_whole_day(self, day: str) -> bool:
        """Return whether every moment of a day in UTC is in the span.

        >>> TimeSpan.parse("2026-11-22", "2026-11-24T10:00").has_whole_day("2026-11-23")
        True
        """
        begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
        is_early = self.since is not None and self.since > begin
        return not is_early and (self.until is None or self.until - begin >= _DAY)


def _moment(value: TimeOrText | None, name: str) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if isinstance(value, str) and (found := iso_time(value)) is not None:
        return found
    raise refuse(
        name, "a datetime with a time zone, or an ISO 8601 time such as 2026-11-22T10:00Z", value
    )


def _literal(moment: datetime) -> Column:
    # Unlike a string, a number does not depend on the session's time zone.
    return F.timestamp_micros(F.lit(microseconds_of(moment)))
