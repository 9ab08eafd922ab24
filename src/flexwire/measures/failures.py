"""What did not decode: the earliest of it, and how often there is each reason."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.facts.facts import DecodeFailure, FailureCount
from flexwire.measures.groups import Groups, coded
from flexwire.measures.reasons import ReasonCounts
from flexwire.protocol import WITHHELD
from flexwire.tables.schema import FRAMES_TABLE

if TYPE_CHECKING:
    from flexwire.measures.groups import Key

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
"""What is told of a failure, in the columns of the table of frames; of ``bytes`` the first ones."""

# In this order they come: by time, and then so that it is the same order each time.
_ORDER = ("time", "connection", "direction", "frame_index", "error", "size")


class FailureSums:
    """The `SHOWN_FAILURES` earliest failures, and the reasons of all."""

    def __init__(self) -> None:
        self._earliest: list[tuple[Key, DecodeFailure]] = []
        self._reasons = ReasonCounts()

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of `FAILURES`."""
        if not len(rows):
            return
        self._reasons.add(Groups(coded(rows["error"])))
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
        """Add what another one has."""
        self._reasons.merge(other._reasons)
        self._keep(other._earliest)

    def earliest(self) -> tuple[DecodeFailure, ...]:
        """Give the earliest, by time."""
        return tuple(failure for _, failure in self._earliest)

    def counts(self) -> tuple[FailureCount, ...]:
        """Give how many there are of each reason, the most frequent first, and of the rest."""
        frequent, rest = self._reasons.most_frequent()
        told = [FailureCount(reason, count) for _, reason, count in frequent]
        if rest:
            told.append(FailureCount("other reasons", rest))
        return tuple(told)

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
        # Request logs do not say it.
        size=row["size"] or 0,
        sample_hex=WITHHELD if is_withheld else sample,
    )
    return (*(row[name] for name in _ORDER), sample), failure
