"""The facts as tables: sorted rows, formatted numbers, and a count of the omitted rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from flexwire.facts import units
from flexwire.facts.facts import least_of
from flexwire.parties import Client
from flexwire.report.charts import has_sizes
from flexwire.report.matrix import api_label, client_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from flexwire.facts.facts import (
        ApiFacts,
        DecodeFailure,
        Facts,
        Latency,
        LenientUse,
        RecordHeaderFacts,
        TaggedFieldUse,
        TopicFacts,
    )
    from flexwire.facts.rehearsals import RefusedClient

ROW_LIMIT = 200
TOPICS_NAMED = 3
# The maximum number of characters of a truncated text in the title of a cell.
TITLE_LIMIT = 300
_Item = TypeVar("_Item")
Kind = Literal["text", "number", "moment", "flag", "code", "verdict", "reason", "hex"]


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column: its heading, the format of its cells, and an explanation if one is needed."""

    label: str
    kind: Kind = "number"
    title: str = ""


@dataclass(frozen=True, slots=True)
class ReportCell:
    """A cell: its text, the exact value as its title, and the value (or text) for sorting."""

    text: str
    title: str = ""
    sort: float | None = None
    note: str = ""
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table in the report. ``more`` is the number of rows that the table omits."""

    caption: str
    columns: tuple[ReportColumn, ...]
    rows: tuple[tuple[ReportCell, ...], ...]
    more: int = 0

    @property
    def rest(self) -> str:
        """A text that states how many rows are not in the table."""
        return f"and {units.plural(self.more, 'more row')} not shown here" if self.more else ""

    def first(self, rows: int) -> ReportTable:
        """Return the same table with at most ``rows`` rows."""
        left = len(self.rows) - rows
        return self if left <= 0 else replace(self, rows=self.rows[:rows], more=self.more + left)


def build(
    caption: str,
    columns: Sequence[ReportColumn],
    items: Iterable[_Item],
    row: Callable[[_Item], Sequence[ReportCell]],
    *,
    total: int = 0,
) -> ReportTable:
    """Return a table of the first `ROW_LIMIT` items. ``total`` is given if there are more items."""
    every = list(items)
    rows = tuple(tuple(row(item)) for item in every[:ROW_LIMIT])
    return ReportTable(caption, tuple(columns), rows, max(total, len(every)) - len(rows))


def of(facts: Facts, name: str) -> int:
    """Return the number of items under a name in the facts, including omitted items."""
    return len(getattr(facts, name)) + facts.left_out.get(name, 0)


_TOO_FEW = ReportCell(
    units.DASH, ("too few pairs: this percentile would be the latency of the slowest response"), -1
)


def number(value: int | None, title: str = "") -> ReportCell:
    """Return the cell for a number, or a cell with an en dash if the number is unknown."""
    if value is None:
        return ReportCell(units.DASH, "unknown", -1)
    return ReportCell(units.count(value), title, value)


def size(value: int | None) -> ReportCell:
    """Return the cell for a number of bytes, with the exact number as its title."""
    if value is None:
        return ReportCell(units.DASH, "not measured", -1)
    return ReportCell(units.human_bytes(value), units.exact_bytes(value), value)


def frame_size(facts: Facts, value: int) -> ReportCell:
    """Return the cell for bytes in frames.

    The number is unknown if only request logs were given.
    """
    return size(value if has_sizes(facts) else None)


def latency(value: float) -> ReportCell:
    """Return the cell for a latency, with the exact number as its title."""
    return ReportCell(units.duration_ms(value), units.exact_ms(value), value)


def text(value: str, note: str = "") -> ReportCell:
    """Return the cell for external text, cut to fit the page; its title contains more of it."""
    short = units.shorten(value, 60)
    return ReportCell(short, units.shorten(value, TITLE_LIMIT) if short != value else "", note=note)


def versions(numbers: tuple[int, ...]) -> ReportCell:
    """Return the cell for API versions, with consecutive versions merged.

    The cell is sorted by the lowest version.
    """
    return ReportCell(units.ranges(numbers) or units.DASH, sort=min(numbers, default=-1))


def api_table(facts: Facts) -> ReportTable:
    """Return the table of messages and bytes per API."""

    def row(api: ApiFacts) -> list[ReportCell]:
        return [
            text(api_label(api.api_key, api.name)),
            ReportCell(str(api.api_key), sort=api.api_key),
            versions(api.versions),
            number(api.requests),
            number(api.responses),
            frame_size(facts, api.request_bytes),
            frame_size(facts, api.response_bytes),
            number(api.failures),
        ]

    columns = (
        ReportColumn("API", "text"),
        ReportColumn("Api key"),
        ReportColumn("Versions"),
        ReportColumn("Requests"),
        ReportColumn("Responses"),
        ReportColumn("Request bytes"),
        ReportColumn("Response bytes"),
        ReportColumn("Failures", title="requests and responses whose body could not be decoded"),
    )
    order = sorted(
        facts.apis, key=lambda api: (-api.request_bytes - api.response_bytes, api.api_key)
    )
    return build("Messages and bytes per API", columns, order, row, total=of(facts, "apis"))


def client_table(facts: Facts) -> ReportTable:
    """Return the table of messages and bytes per client."""
    columns = (
        ReportColumn("Client id", "text"),
        ReportColumn(
            "Software",
            "text",
            "the software name that the client sends in ApiVersions, version 3 or later",
        ),
        ReportColumn("Connections"),
        ReportColumn("APIs"),
        ReportColumn("Requests"),
        ReportColumn("Bytes sent"),
        ReportColumn("Bytes received"),
    )
    order = sorted(
        facts.clients,
        key=lambda entry: (-entry.bytes_sent - entry.bytes_received, repr(entry.client)),
    )
    return build(
        "Messages and bytes per client",
        columns,
        order,
        lambda entry: [
            text(client_label(entry.client)),
            text(entry.client.software or "unknown"),
            number(entry.connections),
            number(entry.apis),
            number(entry.requests),
            frame_size(facts, entry.bytes_sent),
            frame_size(facts, entry.bytes_received),
        ],
        total=of(facts, "clients"),
    )


def latency_table(facts: Facts) -> ReportTable:
    """Return the table of latency quantiles per API."""

    def row(item: tuple[ApiFacts, Latency]) -> list[ReportCell]:
        api, pair = item
        return [
            text(api_label(api.api_key, api.name), "may wait for records" * api.may_wait),
            number(pair.count),
            latency(pair.min_ms),
            latency(pair.p50_ms),
            latency(pair.p90_ms) if pair.count >= least_of(90) else _TOO_FEW,
            latency(pair.p99_ms) if pair.count >= least_of(99) else _TOO_FEW,
            latency(pair.max_ms),
        ]

    columns = (
        ReportColumn("API", "text"),
        ReportColumn("Pairs", title="requests that were paired with a response"),
        ReportColumn("Min"),
        ReportColumn("p50", title="half of the latencies are no higher than this value"),
        ReportColumn(
            "p90",
            title="90% of the latencies are no higher than this; shown only for 10 or more pairs",
        ),
        ReportColumn(
            "p99",
            title="99% of the latencies are no higher than this; shown only for 100 or more pairs",
        ),
        ReportColumn("Max"),
    )
    measured = [(api, api.latency) for api in facts.apis if api.latency is not None]
    # APIs whose requests may wait for records come last, because a request that waits for records
    # is not slow.
    order = sorted(measured, key=lambda item: (item[0].may_wait, -item[1].p99_ms, item[0].api_key))
    caption = "Latencies per API, the slowest first; APIs that may wait for records come last"
    return build(caption, columns, order, row)


def topic_table(facts: Facts) -> ReportTable:
    """Return the table of records per topic and side."""

    def row(topic: TopicFacts) -> list[ReportCell]:
        codecs = sorted(topic.compression, key=lambda use: (-use.bytes, use.codec))
        first, last = topic.first_offset, topic.last_offset
        offsets = (
            ""
            if first is None or last is None
            else f"offsets {units.count(first)}{units.DASH}{units.count(last)}"
        )
        side = "produced" if topic.side == "produce" else "fetched"
        return [
            text(f"topic id {topic.topic}", f"{side}; the capture does not contain the topic name")
            if topic.is_id
            else text(topic.topic, side),
            number(topic.partitions),
            ReportCell(
                units.count(topic.batches),
                sort=topic.batches,
                note=f"magic {units.ranges(topic.magic)}" if topic.magic else "",
            ),
            ReportCell(units.count(topic.records), sort=topic.records, note=offsets),
            ReportCell(
                units.human_bytes(topic.key_bytes),
                units.exact_bytes(topic.key_bytes),
                topic.key_bytes,
                note=units.plural(topic.null_keys, "null key") if topic.null_keys else "",
            ),
            size(topic.value_bytes),
            number(topic.null_values),
            number(topic.records_with_headers),
            ReportCell(
                ", ".join(use.codec for use in codecs) or units.DASH,
                "; ".join(
                    f"{use.codec}: {units.exact_bytes(use.bytes)} in "
                    f"{units.plural(use.batches, 'batch', 'batches')}"
                    for use in codecs
                ),
            ),
        ]

    columns = (
        ReportColumn("Topic", "text"),
        ReportColumn("Partitions"),
        ReportColumn("Batches", title="record batches (magic 2) and message sets (magic 0 and 1)"),
        ReportColumn(
            "Records", title="the number of records, with their lowest and highest offset"
        ),
        ReportColumn("Key bytes"),
        ReportColumn("Value bytes"),
        ReportColumn("Tombstones", title="records with a null value"),
        ReportColumn("With headers", title="records with at least one record header"),
        ReportColumn("Compression", "text"),
    )
    order = sorted(facts.topics, key=lambda topic: (-topic.records, topic.topic, topic.side))
    return build(
        "Records per topic, produced and fetched", columns, order, row, total=of(facts, "topics")
    )


def record_header_table(facts: Facts) -> ReportTable:
    """Return the table of record headers per key."""
    ids = {topic.topic for topic in facts.topics if topic.is_id}

    def row(header: RecordHeaderFacts) -> list[ReportCell]:
        topics = [f"topic id {topic}" if topic in ids else topic for topic in sorted(header.topics)]
        more = max(header.topic_count, len(topics)) - TOPICS_NAMED
        if more > 0:
            topics[TOPICS_NAMED:] = [f"and {units.count(more)} more"]
        median = header.median_length
        return [
            text(header.key or "(empty key)"),
            text(", ".join(topics) or units.DASH),
            number(header.records),
            number(header.null_values),
            number(header.empty_values),
            size(header.min_length),
            ReportCell(units.DASH, sort=-1)
            if median is None
            else ReportCell(
                units.human_bytes(median), f"{median:,.1f}".removesuffix(".0") + " bytes", median
            ),
            size(header.max_length),
            number(header.distinct_values, "may be an estimate"),
            ReportCell(units.DASH, sort=-1)
            if header.utf8_share is None
            else ReportCell(
                units.share(header.utf8_share), f"{header.utf8_share:.6g}", header.utf8_share
            ),
        ]

    columns = (
        ReportColumn("Key", "code"),
        ReportColumn("Topics", "text"),
        ReportColumn("Records"),
        ReportColumn("Null"),
        ReportColumn("Empty"),
        ReportColumn("Min length"),
        ReportColumn("Median length"),
        ReportColumn("Max length"),
        ReportColumn("Different values", title="may be an estimate"),
        ReportColumn("UTF-8", title="the share of values that are valid UTF-8"),
    )
    order = sorted(facts.record_headers, key=lambda header: (-header.records, header.key))
    return build("Record headers by key", columns, order, row, total=of(facts, "record_headers"))


def tagged_field_table(facts: Facts) -> ReportTable:
    """Return the table of tagged fields in the traffic, unknown ones first."""

    def row(use: TaggedFieldUse) -> list[ReportCell]:
        return [
            text(use.message),
            versions(use.versions),
            text(use.path or "(message)"),
            ReportCell(str(use.tag), sort=use.tag),
            ReportCell("unknown", verdict="unknown") if use.name is None else text(use.name),
            number(use.times),
            size(use.bytes),
        ]

    columns = (
        ReportColumn("Message", "text"),
        ReportColumn("Versions"),
        ReportColumn("In", "code", "the structure that contains the field"),
        ReportColumn("Tag"),
        ReportColumn("Field", "text", "the name of the field in the message spec"),
        ReportColumn("Times"),
        ReportColumn("Bytes"),
    )
    order = sorted(
        facts.tagged_fields,
        key=lambda use: (use.name is not None, -use.times, use.message, use.path, use.tag),
    )
    return build(
        "Tagged fields, unknown fields first", columns, order, row, total=of(facts, "tagged_fields")
    )


def failure_count_table(facts: Facts) -> ReportTable:
    """Return the table of decode failures by reason."""
    columns = (ReportColumn("Reason", "text"), ReportColumn("Frames"))
    order = sorted(facts.failure_counts, key=lambda entry: (-entry.count, entry.reason))
    return build(
        "Decode failures by reason",
        columns,
        order,
        lambda entry: [ReportCell(entry.reason), number(entry.count)],
    )


def failure_table(facts: Facts) -> ReportTable:
    """Return the table of frames that did not decode, oldest first, with their first bytes."""

    def row(failure: DecodeFailure) -> list[ReportCell]:
        version = "" if failure.version is None else f" v{failure.version}"
        when = units.moment(failure.time_us)
        return [
            ReportCell(when, units.moment(failure.time_us, exact=True), failure.time_us),
            text(failure.connection, failure.direction),
            ReportCell((failure.message or "unknown message") + version, note=failure.reason),
            size(failure.size),
            ReportCell(" ".join(re.findall("[0-9a-f]{1,4}|.+", failure.sample_hex))),
        ]

    columns = (
        ReportColumn("Time (UTC)", "text"),
        ReportColumn("Connection", "text"),
        ReportColumn("Message and reason", "reason"),
        ReportColumn("Frame"),
        ReportColumn("First bytes", "hex"),
    )
    order = sorted(facts.failures, key=lambda entry: (entry.time_us, repr(entry)))
    total = facts.totals.decode_failures
    return build("Frames that could not be decoded, oldest first", columns, order, row, total=total)


def refused_table(facts: Facts) -> ReportTable:
    """Return the table of clients that a tap refused in a rehearsal, most refusals first."""

    def row(client: RefusedClient) -> list[ReportCell]:
        if client.works_time_us is not None:
            when = units.moment(client.works_time_us, exact=True)
            after = ReportCell("works again", when, note=f"{client.works_with} was answered")
        elif client.returned:
            after = ReportCell("came back", note="not seen to work")
        else:
            after = ReportCell("not seen again")
        first = units.moment(client.first_time_us)
        named = Client(client.client_id)
        return [
            text(client_label(named), client.host),
            ReportCell(client.release),
            ReportCell(", ".join(client.requests) or "unread"),
            number(client.times),
            ReportCell(first, units.moment(client.first_time_us, exact=True), client.first_time_us),
            after,
        ]

    columns = (
        ReportColumn("Client", "text"),
        ReportColumn("Release", "text"),
        ReportColumn("Refused requests", "text", "the first few distinct requests"),
        ReportColumn("Times"),
        ReportColumn("First refused (UTC)", "text"),
        ReportColumn("Afterwards", "reason", "what the capture shows after the last refusal"),
    )
    rehearsal = facts.rehearsal
    refused = () if rehearsal is None else rehearsal.refused
    total = 0 if rehearsal is None else rehearsal.refused_count
    return build("Refused clients, most refusals first", columns, refused, row, total=total)


def lenient_table(facts: Facts) -> ReportTable:
    """Return the table of frames that decode only leniently, with the most frequent ones first."""

    def row(use: LenientUse) -> list[ReportCell]:
        return [
            ReportCell(f"{use.message} v{use.version}", note=use.reason),
            text(client_label(use.client), use.client.software or "software unknown"),
            number(use.frames),
        ]

    columns = (
        ReportColumn("Message and reason", "reason"),
        ReportColumn("Client", "text", "for a response: the client to which the broker responds"),
        ReportColumn("Frames"),
    )
    order = sorted(facts.lenient_uses, key=lambda use: (-use.frames, repr(use)))
    return build(
        "Frames that decode only leniently", columns, order, row, total=of(facts, "lenient_uses")
    )


def source_table(facts: Facts) -> ReportTable:
    """Return the table of capture files."""
    columns = (
        ReportColumn("Capture file", "code"),
        ReportColumn("Packets"),
        ReportColumn("Frames"),
        ReportColumn("Bytes"),
    )
    return build(
        "Input of this report",
        columns,
        facts.sources,
        lambda source: [
            ReportCell(source.path),
            number(source.packets),
            number(source.frames),
            frame_size(facts, source.bytes),
        ],
        total=facts.source_files,
    )
