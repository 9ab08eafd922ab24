"""From the tables to the facts of the report: Spark aggregates, the driver holds the results."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.pairing.state import FAILED, UNPAIRED
from flexwire.facts.facts import (
    ClientFacts,
    DecodeFailure,
    Facts,
    FailureCount,
    LenientUse,
    Source,
    Timeline,
    TimelineBucket,
    Totals,
)
from flexwire.measures.analysis import Parts, bucket_us, facts_of, first_sources
from flexwire.measures.failures import DIFFERENT_REASONS, SAMPLE_BYTES, SHOWN_FAILURES
from flexwire.measures.frames import CLIENT
from flexwire.protocol import WITHHELD
from flexwire.spark.by_objects.api_facts import client_of, gather_apis, gather_version_uses
from flexwire.spark.by_objects.connections import gather_connections, kafka_only
from flexwire.spark.by_objects.record_facts import (
    count_undecodable,
    gather_record_headers,
    gather_topics,
    message_of_source,
    undecodable,
)
from flexwire.spark.by_objects.tag_facts import gather_tagged_fields
from flexwire.tables.frames import LENIENT
from flexwire.tables.keys import FRAME_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, Row

    from flexwire.capture.reassembly.connections import Brokers
    from flexwire.facts.audit import Audit
    from flexwire.spark.progress import Steps


_QUERIES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """The tables to measure: ``outcomes`` are the columns that all message tables share.

    ``audit`` does the audit of them; ``given`` are the ends that were given as brokers.
    """

    frames: DataFrame
    connections: DataFrame
    records: DataFrame
    packets: DataFrame
    outcomes: DataFrame
    audit: Callable[[], Audit]
    given: Brokers


# What `gather_facts` asks, each a few Spark jobs; the number is what a progress bar counts to.
QUERIES = 12


def gather_facts(measured: Measured, *, title: str, made_at_us: int, steps: Steps) -> Facts:
    """Measure the tables; the queries run a few at once, because each is mostly waiting."""
    with ThreadPoolExecutor(_QUERIES_AT_ONCE) as pool:

        def start(query: Callable[..., Any], *tables: DataFrame) -> Any:
            future = pool.submit(query, *tables)
            future.add_done_callback(lambda _: steps.finish())
            return future

        # What is not Kafka is nobody's traffic, failure or version.
        frames, records = kafka_only(measured.frames), measured.records
        totals = start(_gather_totals, frames, measured.packets, records)
        timeline = start(_gather_timeline, frames)
        sources = start(_gather_sources, frames, measured.packets)
        apis = start(gather_apis, frames)
        clients = start(_gather_clients, frames)
        uses = start(gather_version_uses, frames)
        audited = start(measured.audit)
        topics = start(lambda: (gather_topics(records), gather_record_headers(records)))
        tagged = start(gather_tagged_fields, frames, measured.outcomes)
        failures = start(_gather_failures, frames, records)
        lenient = start(_gather_lenient, frames)
        connections = start(gather_connections, measured.connections)
        counted, withheld = totals.result()
        shown, reasons = failures.result()
        by_topic, by_header = topics.result()
        named, files = sources.result()
        parts = Parts(
            totals=counted,
            withheld_credentials=withheld,
            timeline=timeline.result(),
            sources=named,
            source_files=files,
            apis=apis.result(),
            clients=clients.result(),
            version_uses=uses.result(),
            topics=by_topic,
            record_headers=by_header,
            tagged_fields=tagged.result(),
            failures=shown,
            failure_counts=reasons,
            lenient_uses=lenient.result(),
            connections=replace(connections.result(), given=measured.given.named()),
        )
        return facts_of(parts, audited.result(), title=title, made_at_us=made_at_us)


def _gather_totals(frames: DataFrame, packets: DataFrame, records: DataFrame) -> tuple[Totals, int]:
    outcome, direction = F.col("outcome"), F.col("direction")
    clients = F.struct(*CLIENT)
    row = frames.agg(
        F.unix_micros(F.min("time")).alias("first_time_us"),
        F.unix_micros(F.max("time")).alias("last_time_us"),
        F.count("*").alias("frames"),
        F.count_if(direction == "request").alias("requests"),
        F.count_if(direction == "response").alias("responses"),
        F.count_if(~F.col("answered")).alias("unanswered_requests"),
        F.count_if(outcome == UNPAIRED).alias("unpaired_responses"),
        F.count_distinct("connection").alias("connections"),
        F.count_distinct(F.when(F.col("message").isNotNull(), clients)).alias("clients"),
        F.count_distinct("broker").alias("brokers"),
        F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
        F.count_if(outcome == FAILED).alias("decode_failures"),
        F.count_if(outcome == LENIENT).alias("lenient_frames"),
        F.count_if(F.col("withheld_credentials") > 0).alias("withheld"),
    ).collect()[0]
    told = row.asDict()
    withheld_frames = told.pop("withheld")
    skipped = packets.where("reason is not null").agg(F.sum("packets")).collect()[0][0]
    damaged, told["batches_beyond_bounds"] = count_undecodable(records)
    told["decode_failures"] += damaged
    return Totals(**told, skipped_packets=skipped or 0), withheld_frames


def _gather_timeline(frames: DataFrame) -> Timeline:
    micros = F.unix_micros("time")
    span = frames.agg((F.max(micros) - F.min(micros)).alias("span")).collect()[0].span or 0
    width = bucket_us(span)
    slices = frames.groupBy((F.floor(micros / width) * width).alias("time_us")).agg(
        _bytes_of("request").alias("request_bytes"),
        _bytes_of("response").alias("response_bytes"),
        F.count("*").alias("frames"),
    )
    buckets = [TimelineBucket(**row.asDict()) for row in slices.orderBy("time_us").collect()]
    return Timeline(width, tuple(buckets))


def _bytes_of(direction: str) -> Column:
    return F.sum(F.when(F.col("direction") == direction, F.col("size")).otherwise(0))


def _gather_sources(frames: DataFrame, packets: DataFrame) -> tuple[tuple[Source, ...], int]:
    read = packets.where("reason is null").groupBy("source").agg(F.sum("packets").alias("packets"))
    held = frames.groupBy("source").agg(F.count("*").alias("frames"), F.sum("size").alias("bytes"))
    rows = read.join(held, "source", "left").na.fill(0).collect()
    of = {row.source: Source(row.source, row.packets, row.frames, row.bytes) for row in rows}
    named = first_sources({path: one.packets for path, one in of.items()})
    return tuple(of[path] for path in named), len(of)


def _gather_clients(frames: DataFrame) -> tuple[ClientFacts, ...]:
    rows = (
        frames.where("message is not null")
        .groupBy(*CLIENT)
        .agg(
            F.count_distinct("connection").alias("connections"),
            F.count_if(F.col("direction") == "request").alias("requests"),
            _bytes_of("request").alias("bytes_sent"),
            _bytes_of("response").alias("bytes_received"),
            F.count_distinct("api_key").alias("apis"),
        )
        .collect()
    )
    return tuple(
        ClientFacts(
            client_of(row),
            row.connections,
            row.requests,
            row.bytes_sent,
            row.bytes_received,
            row.apis,
        )
        for row in rows
    )


def _gather_failures(
    frames: DataFrame, records: DataFrame
) -> tuple[tuple[DecodeFailure, ...], tuple[FailureCount, ...]]:
    columns = (
        *("time", *FRAME_KEY),
        "message",
        "api_version",
        "error",
        "bytes",
        "size",
        "withheld_credentials",
    )
    failed = frames.where(F.col("outcome") == FAILED).select(*columns)
    damaged = undecodable(records).select(
        *("time", *FRAME_KEY),
        message_of_source().alias("message"),
        F.lit(None).cast("int").alias("api_version"),
        "error",
        "bytes",
        F.length("bytes").cast("bigint").alias("size"),
        F.lit(0).alias("withheld_credentials"),
    )
    both = failed.unionByName(damaged)
    sample = F.hex(F.substring("bytes", 1, SAMPLE_BYTES)).alias("sample")
    micros = F.unix_micros("time").alias("time_us")
    shown = (
        both.orderBy("time", *FRAME_KEY, "error", "size")
        .limit(SHOWN_FAILURES)
        .select(*columns, sample, micros)
        .collect()
    )
    counts = _by_reason(both)
    return tuple(map(_failure, shown)), _reasons(counts.collect())


def _by_reason(rows: DataFrame, *others: str) -> DataFrame:
    """How many rows there are of each reason, the most frequent first."""
    # Reasons differ in their figures; those that were the same each time are kept.
    alike = F.regexp_replace("error", r"\d+", "…").alias("alike")
    count = F.count("*").alias("count")
    same = F.min("error") == F.max("error")
    reason = F.when(same, F.min("error")).otherwise(F.col("alike")).alias("reason")
    counts = rows.groupBy(*others, alike).agg(count, reason)
    return counts.orderBy(F.desc("count"), "reason", *others)


def _failure(row: Row) -> DecodeFailure:
    is_withheld = row.bytes is None and row.withheld_credentials > 0
    return DecodeFailure(
        time_us=row.time_us,
        connection=row.connection,
        direction=row.direction,
        message=row.message,
        version=row.api_version,
        reason=row.error,
        size=row["size"],
        sample_hex=WITHHELD if is_withheld else (row.sample or "").lower(),
    )


def _reasons(rows: list[Row]) -> tuple[FailureCount, ...]:
    told = [FailureCount(row.reason, row["count"]) for row in rows[:DIFFERENT_REASONS]]
    rest = sum(row["count"] for row in rows[DIFFERENT_REASONS:])
    if rest:
        told.append(FailureCount("other reasons", rest))
    return tuple(told)


def _gather_lenient(frames: DataFrame) -> tuple[LenientUse, ...]:
    lenient = frames.where(F.col("outcome") == LENIENT)
    rows = _by_reason(lenient, "message", "api_version", *CLIENT).limit(DIFFERENT_REASONS).collect()
    return tuple(
        LenientUse(client_of(row), row.message, row.api_version, row.reason, row["count"])
        for row in rows
    )
