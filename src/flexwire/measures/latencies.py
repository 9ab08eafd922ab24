"""The latencies for each api key: percentiles, and the number in each of the report's buckets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.facts.facts import LATENCY_EDGES_MS, Latency, LatencyBucket
from flexwire.measures.counters import ValueCounts, occurring

if TYPE_CHECKING:
    from flexwire.measures.groups import Numbers


BUCKETS = len(LATENCY_EDGES_MS) - 1
"""The number of buckets with two edges.

Bucket -1 is below all these buckets, and bucket `BUCKETS` is above all of them.
"""

_PERCENTILES = (0.5, 0.9, 0.99)
# Latencies are whole microseconds. Rounding first keeps whole-number edges exact.
_EDGES_US = np.array([math.ceil(round(edge * 1000, 6)) for edge in LATENCY_EDGES_MS])
# The number of latencies that are collected before they are sorted, because sorting many at once is
# faster.
_MOST_WAITING = 100_000


def edges(bucket: int, most: float) -> tuple[float, float]:
    """Return the edges of a bucket. ``most`` is the longest latency."""
    if bucket < 0:
        return 0.0, LATENCY_EDGES_MS[0]
    if bucket == BUCKETS:
        return LATENCY_EDGES_MS[-1], math.nextafter(most, math.inf)
    return LATENCY_EDGES_MS[bucket], LATENCY_EDGES_MS[bucket + 1]


class LatencySums:
    """The latencies for each api key.

    A percentile is the latency at its rank, counted from the shortest. Percentiles are exact as
    long as an api key has at most `MOST_DIFFERENT` different latencies. Otherwise, all its
    latencies are rounded to four significant digits, and a percentile is off by at most 0.05 %.
    Counts, minima, maxima and buckets are always exact.
    """

    def __init__(self) -> None:
        self._of: dict[int, _Latencies] = {}
        self._waiting: list[tuple[Numbers, Numbers]] = []
        self._waiting_rows = 0

    def add(self, api_keys: Numbers, latencies_us: Numbers) -> None:
        """Add latencies, each with an api key."""
        self._waiting.append((api_keys, latencies_us))
        self._waiting_rows += len(api_keys)
        if self._waiting_rows > _MOST_WAITING:
            self._settle()

    def merge(self, other: LatencySums) -> None:
        """Add the latencies of another task."""
        self._settle()
        other._settle()
        for api_key, latencies in other._of.items():
            self._of.setdefault(api_key, _Latencies()).merge(latencies)

    def facts(self) -> dict[int, Latency]:
        """Return the latencies for each api key that has any."""
        self._settle()
        return {api_key: latencies.facts() for api_key, latencies in self._of.items()}

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return self.__dict__

    def _settle(self) -> None:
        if not self._waiting:
            return
        keys, latencies = (np.concatenate(both) for both in zip(*self._waiting, strict=True))
        self._waiting, self._waiting_rows = [], 0
        order = np.argsort(keys, kind="stable")
        different, starts = np.unique(keys[order], return_index=True)
        parts = np.split(latencies[order], starts[1:])
        for api_key, part in zip(different.tolist(), parts, strict=True):
            self._of.setdefault(api_key, _Latencies()).add(part)


@dataclass(slots=True)
class _Latencies:
    """The latencies for one api key."""

    counted: ValueCounts = field(default_factory=ValueCounts)
    buckets: Numbers = field(default_factory=lambda: np.zeros(BUCKETS + 2, np.int64))
    least: int | None = None
    most: int | None = None

    def add(self, latencies: Numbers) -> None:
        values, counts = occurring(latencies)
        places = np.searchsorted(_EDGES_US, values, side="right")
        buckets = np.bincount(places, weights=counts, minlength=BUCKETS + 2).astype(np.int64)
        self.counted.add(values, counts)
        self._span(buckets, int(values[0]), int(values[-1]))

    def merge(self, other: _Latencies) -> None:
        self.counted.merge(other.counted)
        self._span(other.buckets, other.least, other.most)

    def _span(self, buckets: Numbers, least: int | None, most: int | None) -> None:
        self.buckets = self.buckets + buckets
        self.least = min(bound for bound in (self.least, least) if bound is not None)
        self.most = max(bound for bound in (self.most, most) if bound is not None)

    def facts(self) -> Latency:
        count = self.counted.total
        least, most = self.least or 0, self.most or 0
        ranks = [math.ceil(share * count) for share in _PERCENTILES]
        at = self.counted.at_ranks(ranks).clip(least, most)
        p50, p90, p99 = (value / 1000 for value in at.tolist())
        return Latency(
            count=count,
            min_ms=least / 1000,
            p50_ms=p50,
            p90_ms=p90,
            p99_ms=p99,
            max_ms=most / 1000,
            histogram=tuple(
                LatencyBucket(*edges(place - 1, most / 1000), number)
                for place, number in enumerate(self.buckets.tolist())
                if number
            ),
        )
