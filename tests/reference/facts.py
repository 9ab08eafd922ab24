"""The facts of a report, computed in plain Python from the rows of tables, as in `facts.json`.

Each fact is counted over all rows together: nothing is summed in parts, merged or bounded.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from flexwire.capture.pairing.state import FAILED, NOT_KAFKA, UNPAIRED, WITHHELD_BYTES
from flexwire.errors import UnknownMessageError
from flexwire.facts.facts import LATENCY_EDGES_MS
from flexwire.protocol import WITHHELD, api_name
from flexwire.records.inflation import BEYOND
from flexwire.tables.frames import LENIENT
from flexwire.tables.records import PARTIAL_BATCH, WITHHELD_RECORDS
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.reference.frames import Row
    from tests.reference.tables import Tables

    Json = Any

# The limits on output that docs/limits.md lists.
SHOWN_FAILURES = SHOWN_CONNECTIONS = DIFFERENT_REASONS = 200
SHOWN_FILES = 1000
SAMPLE_BYTES = 64
_SLICES = 120
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
# A timeline slice has one of these lengths, from a millisecond to a day.
_WIDTHS_US = [
    *(step * 1000 for step in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(step * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * 60 * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * 3600 * _SECOND for step in (1, 2, 3, 6, 12, 24)),
]
_FIRST_STEP = round(math.log10(LATENCY_EDGES_MS[0]) * 4)
_LAST = len(LATENCY_EDGES_MS) - 1
_WAITING = {
    one.message.removesuffix("Response") for one in RECORDS_FIELDS if one.source != "produce"
}
# Facts whose order has no meaning.
_UNORDERED = (
    *("sources", "apis", "clients", "version_uses", "topics", "record_headers"),
    *("tagged_fields", "lenient_uses"),
)


def facts(tables: Tables, given: Sequence[str] = ()) -> Json:
    """Return all facts about tables except the audit; ``given`` holds the ends named as brokers."""
    frames = [row for row in tables["frames"] if row["outcome"] != NOT_KAFKA]
    records, packets = tables["records"], tables["packets"]
    messages = [
        row for name, rows in tables.items() if name.startswith("messages/") for row in rows
    ]
    damaged = undecodable(records)
    told = totals(frames)
    told["decode_failures"] += len(damaged)
    told["batches_beyond_bounds"] = sum(BEYOND in row["error"] for row in damaged)
    told["skipped_packets"] = sum(row["packets"] for row in packets if row["reason"] is not None)
    failed = failures(frames, damaged)
    return ordered(
        {
            "totals": told,
            "withheld_credentials": sum(row["withheld_credentials"] > 0 for row in frames),
            "timeline": timeline(frames),
            "sources": sources(frames, packets),
            "source_files": sum(row["reason"] is None for row in packets),
            "apis": apis(frames),
            "clients": clients(frames),
            "version_uses": version_uses(frames),
            "topics": topics(records),
            "record_headers": record_headers(records),
            "tagged_fields": tagged_fields(frames, messages),
            "failures": failed[:SHOWN_FAILURES],
            "failure_counts": failure_counts(failed),
            "lenient_uses": lenient_uses(frames),
            "connections": connections(tables["connections"], given),
        }
    )


def ordered(told: Json) -> Json:
    """Return facts in their JSON form; facts without a fixed order are sorted."""
    built = json.loads(json.dumps(told))
    for name in _UNORDERED:
        if name in built:
            built[name].sort(key=lambda one: json.dumps(one, sort_keys=True))
    return built


def of_an_analysis(found: Json) -> Json:
    """Return the part of an analysis's facts that `facts` computes."""
    names = (
        *("totals", "withheld_credentials", "timeline", "source_files", "failures"),
        *("failure_counts", "connections", *_UNORDERED),
    )
    told = {name: found[name] for name in names}
    # Only the audit fills the other fields.
    unjudged = {"verdict": "read", "last_accepted_in": None, "removed_in": None}
    told["version_uses"] = [one | unjudged for one in told["version_uses"]]
    return ordered(told)


_OF_FINDINGS = (
    *("release", "verdict", "evidence", "role", "client", "requests", "connections", "apis"),
    *("first_time_us", "last_time_us", "api_key", "version", "groups", "topics"),
)


def findings(found: Json) -> Json:
    """Return the findings of an audit from an analysis's facts, without explanations."""
    told = [{name: one[name] for name in _OF_FINDINGS} for one in found["audit"]["findings"]]
    return sorted(told, key=lambda one: json.dumps(one, sort_keys=True))


def micros(time: datetime) -> int:
    """Return the microseconds since the epoch."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def client(row: Row) -> Json:
    """Return the end that sent a frame, or the end that received it."""
    return {
        "client_id": row["client_id"],
        "software_name": row["client_software_name"],
        "software_version": row["client_software_version"],
    }


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows, grouped by the values of some columns."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


_CLIENT = ("client_id", "client_software_name", "client_software_version")


def of_way(rows: Iterable[Row], direction: str) -> list[Row]:
    """Return the frames in one direction."""
    return [row for row in rows if row["direction"] == direction]


def size_of(rows: Iterable[Row]) -> int:
    """Return the number of bytes of frames."""
    return sum(row["size"] for row in rows)


def totals(frames: list[Row]) -> Json:
    """Return the totals of the frames, but not those of records and packets."""
    times = [micros(row["time"]) for row in frames]
    outcomes = Counter(row["outcome"] for row in frames)
    named = [row for row in frames if row["message"] is not None]
    return {
        "first_time_us": min(times, default=None),
        "last_time_us": max(times, default=None),
        "frames": len(frames),
        "requests": len(of_way(frames, "request")),
        "responses": len(of_way(frames, "response")),
        "unanswered_requests": sum(row["answered"] is False for row in frames),
        "unpaired_responses": outcomes[UNPAIRED],
        "connections": len({row["connection"] for row in frames}),
        "clients": len(grouped(named, *_CLIENT)),
        "brokers": len({row["broker"] for row in frames}),
        "bytes": size_of(frames),
        "decode_failures": outcomes[FAILED],
        "skipped_packets": 0,
        "lenient_frames": outcomes[LENIENT],
        "batches_beyond_bounds": 0,
    }


def timeline(frames: list[Row]) -> Json:
    """Return the traffic in about 120 time slices."""
    times = [micros(row["time"]) for row in frames]
    span = max(times) - min(times) if times else 0
    width = next((one for one in _WIDTHS_US if one * _SLICES > span), _WIDTHS_US[-1])
    slices: dict[int, list[Row]] = defaultdict(list)
    for time, row in zip(times, frames, strict=True):
        slices[time // width * width].append(row)
    buckets = [
        {
            "time_us": time,
            "request_bytes": size_of(of_way(rows, "request")),
            "response_bytes": size_of(of_way(rows, "response")),
            "frames": len(rows),
        }
        for time, rows in sorted(slices.items())
    ]
    return {"bucket_us": width, "buckets": buckets}


def sources(frames: list[Row], packets: list[Row]) -> Json:
    """Return the first capture files, sorted by name."""
    held = grouped(frames, "source")
    files = {row["source"]: row["packets"] for row in packets if row["reason"] is None}
    return [
        {
            "path": name,
            "packets": files[name],
            "frames": len(held.get((name,), [])),
            "bytes": size_of(held.get((name,), [])),
        }
        for name in sorted(files)[:SHOWN_FILES]
    ]


def name_of(api_key: int) -> str | None:
    """Return the name of an API, or None if the catalog contains no such API."""
    try:
        return api_name(api_key)
    except UnknownMessageError:
        return None


def apis(frames: list[Row]) -> Json:
    """Return the traffic of each API, with the latencies of its pairs."""
    found = []
    for (key,), rows in grouped(frames, "api_key").items():
        if key is None:
            continue
        latencies = sorted(row["latency_us"] for row in rows if row["latency_us"] is not None)
        asked, answered = of_way(rows, "request"), of_way(rows, "response")
        found.append(
            {
                "api_key": key,
                "name": name_of(key),
                "requests": len(asked),
                "responses": len(answered),
                "request_bytes": size_of(asked),
                "response_bytes": size_of(answered),
                "failures": sum(row["outcome"] == FAILED for row in rows),
                "versions": sorted({row["api_version"] for row in rows} - {None}),
                "latency": latency(latencies) if latencies else None,
                "may_wait": name_of(key) in _WAITING,
            }
        )
    return found


def rank(values: Sequence[Any], share: float) -> Any:
    """Return the smallest of sorted values that at least this share of the values do not exceed."""
    return values[math.ceil(share * len(values)) - 1]


def latency(latencies: list[int]) -> Json:
    """Return the latency facts of an API from sorted latencies, in microseconds."""
    most = latencies[-1] / 1000
    counts = Counter(map(bucket, latencies))
    return {
        "count": len(latencies),
        "min_ms": latencies[0] / 1000,
        "p50_ms": rank(latencies, 0.5) / 1000,
        "p90_ms": rank(latencies, 0.9) / 1000,
        "p99_ms": rank(latencies, 0.99) / 1000,
        "max_ms": most,
        "histogram": [
            dict(zip(("low_ms", "high_ms", "count"), (*edges(one, most), count), strict=True))
            for one, count in sorted(counts.items())
        ],
    }


def bucket(latency_us: int) -> int:
    """Return a latency's bucket; -1 and the last number mean that the latency is out of range."""
    # A latency of 0, or below 0 if clocks disagree, has no logarithm.
    step = math.floor(math.log10(max(latency_us / 1000, 1e-6)) * 4) - _FIRST_STEP
    return max(-1, min(step, _LAST))


def edges(bucket: int, most: float) -> tuple[float, float]:
    """Return the limits of a bucket."""
    if bucket < 0:
        return 0.0, LATENCY_EDGES_MS[0]
    if bucket == _LAST:
        return LATENCY_EDGES_MS[-1], math.nextafter(most, math.inf)
    return LATENCY_EDGES_MS[bucket], LATENCY_EDGES_MS[bucket + 1]


def clients(frames: list[Row]) -> Json:
    """Return the traffic of each client that named itself in a message."""
    named = [row for row in frames if row["message"] is not None]
    return [
        {
            "client": client(rows[0]),
            "connections": len({row["connection"] for row in rows}),
            "requests": len(of_way(rows, "request")),
            "bytes_sent": size_of(of_way(rows, "request")),
            "bytes_received": size_of(of_way(rows, "response")),
            "apis": len({row["api_key"] for row in rows} - {None}),
        }
        for rows in grouped(named, *_CLIENT).values()
    ]


def version_uses(frames: list[Row]) -> Json:
    """Return the sender, API and version of requests, and how often each occurred."""
    asked = [row for row in of_way(frames, "request") if row["api_key"] is not None]
    return [
        {
            "client": client(rows[0]),
            "api_key": rows[0]["api_key"],
            "api_name": name_of(rows[0]["api_key"]),
            "version": rows[0]["api_version"],
            "requests": len(rows),
            "verdict": "read",
            "last_accepted_in": None,
            "removed_in": None,
        }
        for rows in grouped(asked, *_CLIENT, "api_key", "api_version").values()
    ]


def undecodable(records: list[Row]) -> list[Row]:
    """Return the rows of bytes that are not record batches, except cut or withheld ones."""
    return [
        row
        for row in records
        if row["error"] is not None
        and not row["error"].startswith(PARTIAL_BATCH)
        and row["error"] != WITHHELD_RECORDS
    ]


def topics(records: list[Row]) -> Json:
    """Return the records of each topic that consumers receive, and the batches that hold them."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in records:
        is_id = row["topic"] is None and row["topic_id"] is not None
        name = row["topic"] or row["topic_id"] or "?"
        side = "produce" if row["source"] == "produce" else "fetch"
        groups[name, is_id, side].append(row)
    return [_topic(key, rows) for key, rows in groups.items()]


def _topic(key: tuple[Any, ...], rows: list[Row]) -> Json:
    topic, is_id, side = key
    # Control records mark the end of transactions; consumers do not see them.
    seen = [row for row in rows if row["offset"] is not None and not row["is_control"]]
    batches = list(
        grouped(
            rows,
            *("partition", "connection", "frame_index", "batch_position"),
            *("magic", "compression", "batch_size"),
        )
    )
    uses: dict[str, list[int]] = defaultdict(list)
    for *_, compression, size in batches:
        if compression is not None:
            uses[compression].append(size)
    offsets = [row["offset"] for row in seen] if side == "fetch" else []
    return {
        "topic": topic,
        "side": side,
        "partitions": len({row["partition"] for row in rows}),
        # Bytes that are not a batch have no magic.
        "batches": sum(one[4] is not None for one in batches),
        "records": len(seen),
        "key_bytes": sum(len(row["key"] or b"") for row in seen),
        "value_bytes": sum(len(row["value"] or b"") for row in seen),
        "null_keys": sum(row["key"] is None for row in seen),
        "null_values": sum(row["value"] is None for row in seen),
        "records_with_headers": sum(bool(row["headers"]) for row in seen),
        "compression": [
            {"codec": codec, "batches": len(sizes), "bytes": sum(sizes)}
            for codec, sizes in sorted(uses.items())
        ],
        "magic": sorted({row["magic"] for row in rows} - {None}),
        "first_offset": min(offsets, default=None),
        "last_offset": max(offsets, default=None),
        "is_id": is_id,
    }


def record_headers(records: list[Row]) -> Json:
    """Return the values of each record header key."""
    of_key: dict[str, list[tuple[str, Any, bytes | None]]] = defaultdict(list)
    for number, row in enumerate(records):
        if row["is_control"]:
            continue
        topic = row["topic"] or row["topic_id"] or "?"
        for header in row["headers"] or ():
            key = header["key"].decode(errors="replace")
            # Different keys in a record may be displayed in the same way.
            record = number, header["key"]
            of_key[key].append((topic, record, header["value"]))
    return [_header(key, found) for key, found in of_key.items()]


def _header(key: str, found: list[tuple[str, Any, bytes | None]]) -> Json:
    values = [value for *_, value in found if value is not None]
    lengths = sorted(map(len, values))
    return {
        "key": key,
        "topics": sorted({topic for topic, *_ in found}),
        "records": len({record for _, record, _ in found}),
        "null_values": len(found) - len(values),
        "empty_values": sum(not one for one in lengths),
        "min_length": min(lengths, default=None),
        "median_length": float(rank(lengths, 0.5)) if lengths else None,
        "max_length": max(lengths, default=None),
        "distinct_values": len(set(values)),
        "utf8_share": sum(map(_is_utf8, values)) / len(values) if values else None,
        "topic_count": 0,
    }


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def tagged_fields(frames: list[Row], messages: list[Row]) -> Json:
    """Return the tagged fields on the wire, in messages and in their headers."""
    uses = [
        {**use, "message": row["message"], "version": row["body_version"]}
        for row in messages
        for use in row["tagged_fields"] or ()
    ]
    for row in frames:
        for field in row["header_unknown_tagged_fields"] or ():
            is_shown = field["data"] != WITHHELD_BYTES
            uses.append(
                {
                    "message": f"{row['direction'].capitalize()}Header",
                    "version": row["header_version"],
                    "path": "",
                    "tag": field["tag"],
                    "name": None,
                    "times": 1,
                    "bytes": len(field["data"]) if is_shown else None,
                }
            )
    return [
        {
            "message": message,
            "versions": sorted({one["version"] for one in found} - {None}),
            "path": path,
            "tag": tag,
            "name": name,
            "times": sum(one["times"] for one in found),
            "bytes": _sum(one["bytes"] for one in found),
        }
        for (message, path, tag, name), found in grouped(
            uses, "message", "path", "tag", "name"
        ).items()
    ]


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = [one for one in sizes if one is not None]
    return sum(known) if known else None


def failures(frames: list[Row], damaged: list[Row]) -> list[Json]:
    """Return all frames and batches that could not be decoded, the earliest first."""
    messages = {one.source: one.message for one in RECORDS_FIELDS}
    found = [row for row in frames if row["outcome"] == FAILED]
    found += [
        {
            **row,
            "message": messages[row["source"]],
            "api_version": None,
            "size": len(row["bytes"]),
            "withheld_credentials": 0,
        }
        for row in damaged
    ]
    found.sort(
        key=lambda row: (
            *(row["time"], row["connection"], row["direction"], row["frame_index"]),
            *(row["error"], row["size"]),
        )
    )
    return [
        {
            "time_us": micros(row["time"]),
            "connection": row["connection"],
            "direction": row["direction"],
            "message": row["message"],
            "version": row["api_version"],
            "reason": row["error"],
            "size": row["size"],
            "sample_hex": _sample(row),
        }
        for row in found
    ]


def _sample(row: Row) -> str:
    if row["bytes"] is None and row["withheld_credentials"] > 0:
        return WITHHELD
    return (row["bytes"] or b"")[:SAMPLE_BYTES].hex()


def _by_reason(
    found: Iterable[Mapping[str, Any]], key: Callable[[Any], Any]
) -> list[tuple[Any, str, int]]:
    """Return how often each reason occurs for each key, the most frequent first."""
    reasons: dict[Any, list[str]] = defaultdict(list)
    for one in found:
        # Reasons that differ only in numbers count as one.
        reasons[key(one), re.sub(r"[0-9]+", "…", one["reason"])].append(one["reason"])
    told = [
        (of, alike if len(set(some)) > 1 else some[0], len(some))
        for (of, alike), some in reasons.items()
    ]
    return sorted(told, key=lambda one: (-one[2], one[1], one[0]))


def failure_counts(failed: list[Json]) -> Json:
    """Return the number of failures for each reason."""
    counts = _by_reason(failed, lambda _: ())
    told = [{"reason": reason, "count": count} for _, reason, count in counts[:DIFFERENT_REASONS]]
    rest = sum(count for *_, count in counts[DIFFERENT_REASONS:])
    return [*told, {"reason": "other reasons", "count": rest}] if rest else told


def lenient_uses(frames: list[Row]) -> Json:
    """Return the senders and receivers of frames that only Kafka's Java reads, with the reasons."""
    lenient = [{**row, "reason": row["error"]} for row in frames if row["outcome"] == LENIENT]

    def key(row: Row) -> tuple[Any, ...]:
        of_client = [(row[name] is not None, row[name] or "") for name in _CLIENT]
        return row["message"], row["api_version"], *of_client

    return [
        {
            "client": dict(
                zip(
                    ("client_id", "software_name", "software_version"),
                    (text if is_known else None for is_known, text in of_client),
                    strict=True,
                )
            ),
            "message": message,
            "version": version,
            "reason": reason,
            "frames": count,
        }
        for (message, version, *of_client), reason, count in _by_reason(lenient, key)[
            :DIFFERENT_REASONS
        ]
    ]


def connections(rows: list[Row], given: Sequence[str] = ()) -> Json:
    """Return how many connections are Kafka connections, and the facts about the others."""

    def carried(row: Row) -> int:
        size: int = row["request_bytes"] + row["response_bytes"]
        return size

    others = [row for row in rows if not row["is_kafka"] and carried(row)]
    others.sort(key=lambda row: (-carried(row), row["connection"]))
    copied = ("client", "broker", "request_bytes", "response_bytes", "evidence", "looks_like")
    return {
        "given": list(given),
        "not_kafka": len(others),
        "not_kafka_frames": sum(row["request_frames"] + row["response_frames"] for row in others),
        "not_kafka_bytes": sum(map(carried, others)),
        "silent": sum(not carried(row) for row in rows),
        "unread": sum(
            carried(row) > 0 and row["is_kafka"] and not row["reads_as_kafka"] for row in rows
        ),
        "others": [
            {name: row[name] for name in copied} | {"first_time_us": micros(row["first_time"])}
            for row in others[:SHOWN_CONNECTIONS]
        ],
        "nameless": sum(
            row["is_kafka"]
            and row["request_frames"] > 0
            and row["client_id"] is None
            and not row["seen_from_start"]
            for row in rows
        ),
    }
