"""The facts about all connections, including those that the totals leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.facts.facts import ConnectionFacts, OtherConnection

if TYPE_CHECKING:
    from flexwire.measures.groups import Numbers


SHOWN = 200
"""The maximum number of non-Kafka connections that the report lists. The table lists all of them.
"""

_SHOWN_COLUMNS = (
    "client",
    "broker",
    "first_time",
    "request_bytes",
    "response_bytes",
    "evidence",
    "looks_like",
)


class ConnectionSums:
    """Partial sums over the table of connections."""

    def __init__(self) -> None:
        self._silent = self._unread = self._nameless = 0
        self._others = self._other_frames = self._other_bytes = 0
        # Each connection is stored with a sort key that puts the largest connections first.
        self._largest: list[tuple[tuple[int, str], OtherConnection]] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of the table of connections."""
        carried = _sum(rows, "request_bytes", "response_bytes")
        frames = _sum(rows, "request_frames", "response_frames")
        is_kafka, reads = _flags(rows, "is_kafka"), _flags(rows, "reads_as_kafka")
        self._silent += int((carried == 0).sum())
        self._unread += int(((carried > 0) & is_kafka & ~reads).sum())
        sends = is_kafka & (_sum(rows, "request_frames") > 0)
        has_id = np.asarray(rows["client_id"].is_valid())
        self._nameless += int((sends & ~has_id & ~_flags(rows, "seen_from_start")).sum())
        is_other = ~is_kafka & (carried > 0)
        self._others += int(is_other.sum())
        self._other_frames += int(frames[is_other].sum())
        self._other_bytes += int(carried[is_other].sum())
        others = rows.select(["connection", *_SHOWN_COLUMNS]).append_column(
            "carried", pa.array(carried)
        )
        others = others.filter(pa.array(is_other))
        first = pc.select_k_unstable(
            others, SHOWN, [("carried", "descending"), ("connection", "ascending")]
        )
        self._keep([_other(row) for row in _with_micros(others.take(first)).to_pylist()])

    def merge(self, other: ConnectionSums) -> None:
        """Add the sums of another task."""
        self._silent += other._silent
        self._unread += other._unread
        self._nameless += other._nameless
        self._others += other._others
        self._other_frames += other._other_frames
        self._other_bytes += other._other_bytes
        self._keep(other._largest)

    def facts(self, given_brokers: tuple[str, ...] = ()) -> ConnectionFacts:
        """Return the facts.

        ``given_brokers`` are the endpoints that the user specified as brokers.
        """
        return ConnectionFacts(
            given=given_brokers,
            not_kafka=self._others,
            not_kafka_frames=self._other_frames,
            not_kafka_bytes=self._other_bytes,
            silent=self._silent,
            unread=self._unread,
            others=tuple(connection for _, connection in self._largest),
            nameless=self._nameless,
        )

    def _keep(self, more: list[tuple[tuple[int, str], OtherConnection]]) -> None:
        self._largest = sorted(self._largest + more, key=lambda item: item[0])[:SHOWN]


def _other(row: dict[str, Any]) -> tuple[tuple[int, str], OtherConnection]:
    columns = {name: row[name] for name in _SHOWN_COLUMNS if name != "first_time"}
    other = OtherConnection(**columns, first_time_us=row["first_time"])
    return (-row["carried"], row["connection"]), other


def _with_micros(rows: pa.RecordBatch) -> pa.RecordBatch:
    place = rows.schema.get_field_index("first_time")
    return rows.set_column(place, "first_time", rows["first_time"].cast(pa.int64()))


def _sum(rows: pa.RecordBatch, *names: str) -> Numbers:
    total: Numbers = np.sum([rows[name].to_numpy() for name in names], axis=0)
    return total


def _flags(rows: pa.RecordBatch, name: str) -> Numbers:
    return np.asarray(rows[name].to_numpy(zero_copy_only=False), bool)
