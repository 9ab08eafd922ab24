"""Latencies of each api key: their percentiles, and how many lie in each bucket of the report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.report.facts import LATENCY_EDGES_MS, Latency, LatencyBucket

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

BUCKETS = len(LATENCY_EDGES_MS) - 1
"""So many buckets have two edges; bucket -1 is below them, and that of this number above."""

DIFFERENT_LATENCIES = 10_000
_PERCENTILES = (0.5, 0.9, 0.99)
_DIGITS = 4
# Latencies are whole microseconds. Rounded first: an edge that is a whole number is itself.
_EDGES_US = np.array([math.ceil(round(edge * 1000, 6)) for edge in LATENCY_EDGES_MS])
# So many latencies of all api keys wait, so that sorting them into what is known pays.
_MOST_WAITING = 100_000


def edges(bucket: int, most: float) -> tuple[float, float]:
    """Give from where to where a bucket goes, when ``most`` is the longest latency."""
    if bucket < 0:
        return 0.0, LATENCY_EDGES_MS[0]
    if bucket == BUCKETS:
        return LATENCY_EDGES_MS[-1], math.nextafter(most, math.inf)
    return LATENCY_EDGES_MS[bucket], LATENCY_EDGES_MS[bucket + 1]


class LatencySums:
    """The latencies of each api key.

    A percentile is the latency at its rank, counted from the shortest: the least that so many in
    a hundred do not exceed. It is exact while an api key has no more than `DIFFERENT_LATENCIES`
    different ones. With more, all its latencies are taken with four significant digits, and a
    percentile is off by at most 0.05 %. Count, least, most and buckets are always exact.
    """

    def __init__(self) -> None:
        self._of: dict[int, _Latencies] = {}
        self._waiting: list[tuple[Array, Array]] = []
        self._waiting_rows = 0

    def add(self, api_keys: Array, latencies_us: Array) -> None:
        """Add latencies, each with its api key."""
        self._waiting.append((api_keys, latencies_us))
        self._waiting_rows += len(api_keys)
        if self._waiting_rows > _MOST_WAITING:
            self._settle()

    def merge(self, other: LatencySums) -> None:
        """Add what another one has."""
        self._settle()
        other._settle()
        for api_key, latencies in other._of.items():
            self._of.setdefault(api_key, _Latencies()).merge(latencies)

    def facts(self) -> dict[int, Latency]:
        """Give the latencies of each api key that has some."""
        self._settle()
        return {api_key: one.facts() for api_key, one in self._of.items()}

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
    """The latencies of one api key: different ``values`` in order, and how often there is each."""

    values: Array = field(default_factory=lambda: np.empty(0, np.int64))
    counts: Array = field(default_factory=lambda: np.empty(0, np.int64))
    buckets: Array = field(default_factory=lambda: np.zeros(BUCKETS + 2, np.int64))
    is_rounded: bool = False
    least: int | None = None
    most: int | None = None

    def add(self, latencies: Array) -> None:
        values, counts = np.unique(latencies, return_counts=True)
        places = np.searchsorted(_EDGES_US, values, side="right")
        buckets = np.bincount(places, weights=counts, minlength=BUCKETS + 2).astype(np.int64)
        first, last = int(values[0]), int(values[-1])
        self.merge(_Latencies(values, counts, buckets, least=first, most=last))

    def merge(self, other: _Latencies) -> None:
        self.values, self.counts = _united(
            np.concatenate((self.values, other.values)),
            np.concatenate((self.counts, other.counts)),
        )
        self.is_rounded |= other.is_rounded
        # What has too many values keeps them rounded, so that the order of merging means nothing.
        self.is_rounded |= len(self.values) > DIFFERENT_LATENCIES
        if self.is_rounded:
            self.values, self.counts = _united(_rounded(self.values), self.counts)
        self.buckets = self.buckets + other.buckets
        self.least = min(one for one in (self.least, other.least) if one is not None)
        self.most = max(one for one in (self.most, other.most) if one is not None)

    def facts(self) -> Latency:
        count = int(self.counts.sum())
        least, most = self.least or 0, self.most or 0
        up_to = np.cumsum(self.counts)
        ranks = [math.ceil(share * count) for share in _PERCENTILES]
        at = self.values[np.searchsorted(up_to, ranks)].clip(least, most)
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


def _united(values: Array, counts: Array) -> tuple[Array, Array]:
    different, of = np.unique(values, return_inverse=True)
    return different, np.bincount(of, weights=counts, minlength=len(different)).astype(np.int64)


def _rounded(values: Array) -> Array:
    """Give numbers with four significant digits; those that have no more stay as they are."""
    sizes = np.abs(values)
    unit = np.ones(len(values), np.int64)
    while (is_longer := sizes // unit >= 10**_DIGITS).any():
        unit[is_longer] *= 10
    rounded: Array = np.sign(values) * ((sizes + unit // 2) // unit * unit)
    return rounded
