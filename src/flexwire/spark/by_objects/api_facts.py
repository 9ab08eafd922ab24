"""What the frames tell of each API: traffic, latencies, and who uses which version."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.pairing.state import FAILED
from flexwire.facts.facts import (
    LATENCY_EDGES_MS,
    ApiFacts,
    Latency,
    LatencyBucket,
    VersionUse,
)
from flexwire.measures.frames import CLIENT, may_wait, name_of
from flexwire.measures.latencies import BUCKETS, edges
from flexwire.parties import Client

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

# Of a percentile: off by at most one rank in so many.
_ACCURACY = 10_000
_STEPS_A_DECADE = 4
_FIRST_STEP = round(math.log10(LATENCY_EDGES_MS[0]) * _STEPS_A_DECADE)


def client_of(row: Row) -> Client:
    """The client that a row grouped by `CLIENT` is about."""
    return Client(*(row[name] for name in CLIENT))


def gather_apis(frames: DataFrame) -> tuple[ApiFacts, ...]:
    """The traffic of each api key, with the latencies of its pairs."""
    asked, answered = F.col("direction") == "request", F.col("direction") == "response"
    latency = F.col("latency_us") / 1000
    rows = (
        frames.where("api_key is not null")
        .groupBy("api_key")
        .agg(
            F.count_if(asked).alias("requests"),
            F.count_if(answered).alias("responses"),
            F.sum(F.when(asked, F.col("size")).otherwise(0)).alias("request_bytes"),
            F.sum(F.when(answered, F.col("size")).otherwise(0)).alias("response_bytes"),
            F.count_if(F.col("outcome") == FAILED).alias("failures"),
            F.collect_set("api_version").alias("versions"),
            F.count("latency_us").alias("pairs"),
            F.min(latency).alias("least"),
            F.percentile_approx(latency, [0.5, 0.9, 0.99], _ACCURACY).alias("percentiles"),
            F.max(latency).alias("most"),
        )
        .collect()
    )
    histograms = _histograms(frames)
    return tuple(_api(row, histograms.get(row.api_key, {})) for row in rows)


def _histograms(frames: DataFrame) -> dict[int, dict[int, int]]:
    """By api key: how many latencies lie in each bucket, -1 and the last for those outside."""
    rows = (
        frames.where("latency_us is not null")
        .groupBy("api_key", _bucket().alias("bucket"))
        .count()
        .collect()
    )
    found: dict[int, dict[int, int]] = {}
    for row in rows:
        found.setdefault(row.api_key, {})[row.bucket] = row["count"]
    return found


def _bucket() -> Column:
    # No logarithm of zero: a latency of 0 µs, or below where clocks disagree, is in bucket -1.
    logarithm = F.log10(F.greatest(F.col("latency_us") / 1000, F.lit(1e-6)))
    step = F.floor(logarithm * _STEPS_A_DECADE) - _FIRST_STEP
    return F.greatest(F.lit(-1), F.least(step, F.lit(BUCKETS)))


def _api(row: Row, histogram: dict[int, int]) -> ApiFacts:
    return ApiFacts(
        api_key=row.api_key,
        name=name_of(row.api_key),
        requests=row.requests,
        responses=row.responses,
        request_bytes=row.request_bytes,
        response_bytes=row.response_bytes,
        failures=row.failures,
        versions=tuple(sorted(row.versions)),
        latency=_latency(row, histogram) if row.pairs else None,
        may_wait=may_wait(row.api_key),
    )


def _latency(row: Row, histogram: dict[int, int]) -> Latency:
    p50, p90, p99 = row.percentiles
    return Latency(
        count=row.pairs,
        min_ms=row.least,
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        max_ms=row.most,
        histogram=tuple(
            LatencyBucket(*edges(bucket, row.most), count)
            for bucket, count in sorted(histogram.items())
        ),
    )


def gather_version_uses(frames: DataFrame) -> tuple[VersionUse, ...]:
    """Who sent which version of which API, and how often."""
    used = ("api_key", "api_version")
    requests = frames.where("direction = 'request' and api_key is not null")
    rows = requests.groupBy(*CLIENT, *used).count().collect()
    return tuple(
        VersionUse(client_of(row), row.api_key, name_of(row.api_key), row.api_version, row["count"])
        for row in rows
    )
