"""Frames and records that could not be decoded: the earliest, and the counts of all reasons."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.facts.facts import DecodeFailure, FailureCount
from flexwire.measures.groups import RowGroups, coded
from flexwire.protocol import WITHHELD
from flexwire.tables.records import PARTIAL_BATCH, WITHHELD_RECORDS, RunRows
from flexwire.tables.schema import FRAMES_TABLE, RECORDS
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from flexwire.measures.groups import Key


DIFFERENT_REASONS = 200
"""The maximum number of reasons that the report lists, starting with the most frequent."""

_FIGURES = re.compile(r"[0-9]+")
_MOST_KEPT = 10_000


class ReasonCounts:
    """The number of rows for each reason, separately for different values in other columns.

    Reasons that differ only in numbers count as one reason, in which "…" replaces the numbers,
    unless the numbers are always the same. A capture can have any number of reasons. If there are
    more than twice ``most`` reasons, the rarest reasons are only counted, in ``uncounted``.
    """

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        # The count and, if there is only one, the full reason, by the other columns and the reason
        # without its numbers.
        self._counts: dict[Key, tuple[int, str | None]] = {}
        self.uncounted = 0

    def add(self, groups: RowGroups) -> None:
        """Add rows in groups. The last column of the groups is the reason."""
        for (*others, text), count in zip(groups.values(), groups.counts(), strict=True):
            reason: str = text or ""
            self._add((*others, _FIGURES.sub("…", reason)), count, reason)
        self._prune()

    def merge(self, other: ReasonCounts) -> None:
        """Add the counts of another task."""
        for key, (count, reason) in other._counts.items():
            self._add(key, count, reason)
        self.uncounted += other.uncounted
        self._prune()

    def most_frequent(self) -> tuple[list[tuple[Key, str, int]], int]:
        """Return the other columns, the reason and the count, most frequent first, and the rest."""
        ordered = sorted(map(_with_reason, self._counts.items()), key=_order)
        rest = sum(count for _, _, count in ordered[DIFFERENT_REASONS:])
        return ordered[:DIFFERENT_REASONS], rest + self.uncounted

    def _add(self, key: Key, count: int, reason: str | None) -> None:
        before, known_reason = self._counts.get(key, (0, reason))
        self._counts[key] = before + count, reason if reason == known_reason else None

    def _prune(self) -> None:
        if len(self._counts) <= 2 * self._most:
            return
        ordered = sorted(self._counts.items(), key=lambda item: _order(_with_reason(item)))
        self.uncounted += sum(count for _, (count, _) in ordered[self._most :])
        self._counts = dict(ordered[: self._most])


def _with_reason(item: tuple[Key, tuple[int, str | None]]) -> tuple[Key, str, int]:
    (*others, alike), (count, reason) = item
    return tuple(others), alike if reason is None else reason, count


def _order(item: tuple[Key, str, int]) -> tuple[int, str, Key]:
    others, reason, count = item
    return -count, reason, tuple((part is not None, part) for part in others)


SHOWN_FAILURES = 200
SAMPLE_BYTES = 64

FAILURES = pa.schema(
    [
        FRAMES_TABLE.field(name)
        for name in (
            "time",
            "connection",
            "direction",
            "frame_index",
            "message",
            "api_version",
            "error",
            "size",
            "bytes",
            "withheld_credentials",
        )
    ]
)
"""The columns of a failure, as in the table of frames. ``bytes`` contains only the first bytes."""

# The order of failures: by time, then by enough other columns to make the order unique.
_ORDER = ("time", "connection", "direction", "frame_index", "error", "size")


class FailureSums:
    """The `SHOWN_FAILURES` earliest failures, and the reasons for all failures."""

    def __init__(self) -> None:
        self._earliest: list[tuple[Key, DecodeFailure]] = []
        self._reasons = ReasonCounts()

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of `FAILURES`."""
        if not len(rows):
            return
        self._reasons.add(RowGroups(coded(rows["error"])))
        moments = rows["time"].cast(pa.int64())
        if len(self._earliest) == SHOWN_FAILURES:
            is_early = pc.less_equal(moments, self._earliest[-1][0][0])
            rows, moments = rows.filter(is_early), moments.filter(is_early)
        table = rows.set_column(0, "time", moments)
        first = pc.select_k_unstable(
            table, SHOWN_FAILURES, [(name, "ascending") for name in _ORDER]
        )
        self._keep([_failure(row) for row in table.take(first).to_pylist()])

    def merge(self, other: FailureSums) -> None:
        """Add the failures of another task."""
        self._reasons.merge(other._reasons)
        self._keep(other._earliest)

    def earliest(self) -> tuple[DecodeFailure, ...]:
        """Return the earliest failures, sorted by time."""
        return tuple(failure for _, failure in self._earliest)

    def counts(self) -> tuple[FailureCount, ...]:
        """Return how often each reason occurs, most frequent first, and the rest."""
        frequent, rest = self._reasons.most_frequent()
        counts = [FailureCount(reason, count) for _, reason, count in frequent]
        if rest:
            counts.append(FailureCount("other reasons", rest))
        return tuple(counts)

    def _keep(self, more: list[tuple[Key, DecodeFailure]]) -> None:
        every = sorted(self._earliest + more, key=itemgetter(0))
        self._earliest = every[:SHOWN_FAILURES]


def _failure(row: dict[str, Any]) -> tuple[Key, DecodeFailure]:
    data: bytes | None = row["bytes"]
    is_withheld = data is None and row["withheld_credentials"] > 0
    sample = (data or b"")[:SAMPLE_BYTES].hex()
    failure = DecodeFailure(
        time_us=row["time"],
        connection=row["connection"],
        direction=row["direction"],
        message=row["message"],
        version=row["api_version"],
        reason=row["error"],
        # Request logs do not contain sizes.
        size=row["size"] or 0,
        sample_hex=WITHHELD if is_withheld else sample,
    )
    return (*(row[name] for name in _ORDER), sample), failure


_SOURCES = pa.array([place.source for place in RECORDS_FIELDS])
_NONE = pa.RecordBatch.from_pylist([], RECORDS)
_MESSAGES = pa.array([place.message for place in RECORDS_FIELDS])


def undecodable(records: pa.RecordBatch | RunRows) -> pa.RecordBatch:
    """Return the rows for bytes that are not a record batch, except truncated or withheld bytes."""
    if isinstance(records, RunRows):
        errors = records.facts["error"]
        if errors.null_count == len(errors):
            return _NONE
        records = records.batch()
    errors = records["error"]
    if errors.null_count == len(errors):
        return records.slice(0, 0)
    is_fine = pc.or_(
        pc.starts_with(errors, PARTIAL_BATCH), pc.equal(errors, pa.scalar(WITHHELD_RECORDS))
    )
    # If a row has no error, the condition is null, and `filter` drops the row.
    return records.filter(pc.invert(is_fine))


def record_failures(records: pa.RecordBatch | RunRows) -> pa.RecordBatch:
    """Return the failures in rows of the records table, in the form of `FAILURES`.

    ``frame_index`` and ``message`` come from the frame. ``size`` and ``bytes`` (the first
    `SAMPLE_BYTES`) describe the part that could not be decoded.
    """
    failed = undecodable(records)
    rows, data = len(failed), failed["bytes"]
    by_name = {
        "time": failed["time"],
        "connection": failed["connection"],
        "direction": failed["direction"],
        "frame_index": failed["frame_index"],
        "message": _MESSAGES.take(pc.index_in(failed["source"], _SOURCES)),
        "api_version": pa.nulls(rows),
        "error": failed["error"],
        "size": pc.binary_length(data),
        "bytes": pc.binary_slice(data, 0, SAMPLE_BYTES),
        "withheld_credentials": pa.repeat(0, rows),
    }
    columns = [by_name[column.name].cast(column.type) for column in FAILURES]
    return pa.RecordBatch.from_arrays(columns, schema=FAILURES)
