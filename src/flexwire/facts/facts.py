"""The facts of one analysis: everything the report says, and the only thing it reads.

Units are the same everywhere and stand in the names: ``…_us`` is whole microseconds (since the
epoch, UTC, for a moment), ``…_ms`` is milliseconds as a float, ``…bytes`` is bytes, frames include
their 4-byte length. A field that may be unknown is None, never an empty string or -1. Order does
not matter: the report sorts what it shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from flexwire.facts.answers import (  # noqa: TC001 - msgspec reads the annotations
    AnswerFacts,
    UnansweredQuestion,
)
from flexwire.facts.audit import Audit, findings
from flexwire.facts.captures import (
    NO_ADDED_TAGS,
    AddedTags,
    SampledCaptures,
)
from flexwire.parties import AuditVerdict, Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flexwire.facts.audit import AuditFinding


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The figures of all logs that were read; the answers say the rest.

    ``damaged`` counts the runs of bytes that are not a batch or do not read; ``beyond_bounds`` how
    many of these hold batches that inflate beyond a bound. ``directories`` may be
    the first of ``directory_count``. ``left_out`` are directories of partitions that another
    directory was read for, where the log ends later; they may be the first of ``left_out_count``.
    Times are those of records, None where none has one.

    Where tables grow, a log is read from the offset after the last one that is in them, up to its
    last whole batch. ``known_partitions`` have nothing from there on, ``waiting_bytes`` come after
    the last whole batches, and ``gone_partitions`` begin after that offset, as what was between has
    been deleted. ``behind`` are those that end before it, as an older copy does, or a topic that
    was deleted and made again; they may be the first of ``behind_count``.
    """

    topics: int
    partitions: int
    segments: int
    bytes: int
    batches: int
    records: int
    damaged: int = 0
    damaged_bytes: int = 0
    oldest_time_us: int | None = None
    newest_time_us: int | None = None
    directories: tuple[str, ...] = ()
    directory_count: int = 0
    left_out: tuple[str, ...] = ()
    left_out_count: int = 0
    known_partitions: int = 0
    waiting_bytes: int = 0
    gone_partitions: int = 0
    behind: tuple[str, ...] = ()
    behind_count: int = 0
    beyond_bounds: int = 0


@dataclass(frozen=True, slots=True)
class ListenerFacts:
    """A listener of brokers: the requests that came to it, and those of replicas that fetch.

    ``name`` and ``security_protocol`` are None where lines were cut off before them.
    """

    name: str | None
    security_protocol: str | None
    requests: int
    replica_fetches: int = 0


@dataclass(frozen=True, slots=True)
class RequestLogFacts:
    """The figures of all request logs that were read; the rest of the facts says what is in them.

    ``requests`` are those that clients and brokers sent themselves, ``forwarded`` those that
    brokers forwarded to the controller for clients. ``refused`` are requests that brokers' own logs
    say they could not read. Of ``cut`` lines only the request's header is known; ``text`` lines are
    those of 2.7 and earlier that do not surely say what was asked. ``left_out_fields`` are
    mandatory fields that brokers left out of bodies. ``only_deprecated``: every line has a version
    that is deprecated, as at the level INFO. ``listeners`` may be the first of ``listener_count``,
    and ``requests_beyond`` are those of listeners that were too many to be told apart.
    """

    files: int
    server_logs: int
    lines: int
    requests: int
    forwarded: int = 0
    refused: int = 0
    cut: int = 0
    text: int = 0
    unused: int = 0
    left_out_fields: int = 0
    only_deprecated: bool = False
    timezone: str = "UTC"
    listeners: tuple[ListenerFacts, ...] = ()
    listener_count: int = 0
    requests_beyond: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is a request log, and no line in it is a request."""
        return bool(self.files) and not (self.requests + self.forwarded + self.cut + self.text)


@dataclass(frozen=True, slots=True)
class TlsReason:
    """Why connections were not opened, or not to their end, and how many."""

    reason: str
    connections: int


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """The TLS connections of all captures, by what became of them.

    ``opened`` were opened from handshake to end, ``partly`` up to some record, ``unopened`` not at
    all: these are in the tables as they were captured. The rarest of very many reasons are left
    out, so ``partly_opened`` and ``not_opened`` say how many there are. ``lost_bytes`` of what was
    sent are missing from the captures, ``unread_bytes`` of TLS came after the last record that
    opened. ``sources`` may be the first of ``source_files``.
    """

    opened: int
    partly_opened: int = 0
    not_opened: int = 0
    partly: tuple[TlsReason, ...] = ()
    unopened: tuple[TlsReason, ...] = ()
    plain_bytes: int = 0
    lost_bytes: int = 0
    unread_bytes: int = 0
    damaged_places: int = 0
    sources: tuple[str, ...] = ()
    source_files: int = 0


SOURCES_SHOWN = 1000
"""So many capture files the facts name, the first by path; the table of packets has them all."""

# What the audit says against a version, on whichever release it was asked about; else "read".
Verdict = AuditVerdict | Literal["read"]
Direction = Literal["request", "response"]
Side = Literal["produce", "fetch"]

# Four buckets per factor of ten, from 10 microseconds to 100 seconds: fine enough to tell a
# broker's answer from a Fetch that waited, few enough to draw.
LATENCY_EDGES_MS: tuple[float, ...] = tuple(10 ** (step / 4) for step in range(-8, 21))


@dataclass(frozen=True, slots=True)
class CaptureFileFacts:
    """One capture file: its packets, and the frames whose last byte lay in it."""

    path: str
    packets: int
    frames: int
    bytes: int


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that could not be opened or is not a capture, and was left out; and why."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """The figures of what is Kafka; those of all else are in `ConnectionFacts`.

    ``clients`` counts different `Client` keys, ``brokers`` different addresses that answered;
    ``bytes`` is that of all frames. An *unanswered request* expects a response that the capture
    does not hold; an *unpaired response* has no request in it. ``lenient_frames`` decoded only
    leniently (see `LenientUse`), and do not count as ``decode_failures``. ``skipped_packets`` were
    not TCP or could not be read. ``batches_beyond_bounds`` are record batches that were left out
    because they inflate beyond a bound; they count as ``decode_failures`` too.
    """

    first_time_us: int | None = None
    last_time_us: int | None = None
    frames: int = 0
    requests: int = 0
    responses: int = 0
    unanswered_requests: int = 0
    unpaired_responses: int = 0
    connections: int = 0
    clients: int = 0
    brokers: int = 0
    bytes: int = 0
    decode_failures: int = 0
    skipped_packets: int = 0
    lenient_frames: int = 0
    batches_beyond_bounds: int = 0


@dataclass(frozen=True, slots=True)
class TimelineBucket:
    """The traffic of one slice of time, which starts at ``time_us`` (inclusive)."""

    time_us: int
    request_bytes: int
    response_bytes: int
    frames: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Traffic over time in slices of ``bucket_us``; a slice without traffic may be left out."""

    bucket_us: int = 1_000_000
    buckets: tuple[TimelineBucket, ...] = ()


def rebinned(
    parts: Mapping[int, Sequence[float]], step: int, most: int
) -> tuple[int, dict[int, list[float]]]:
    """Return the width of at most so many slices of time, and their sums by start, in order.

    ``parts`` are sums of slices of ``step``, by their start.

    >>> rebinned({10: [1], 20: [2], 30: [4]}, 10, 2)
    (20, {10: [3], 30: [4]})
    """
    first, last = min(parts), max(parts)
    width = step * -(-((last - first) // step + 1) // most)
    summed: dict[int, list[float]] = {}
    for start, values in parts.items():
        held = summed.setdefault(first + (start - first) // width * width, [0] * len(values))
        held[:] = [before + value for before, value in zip(held, values, strict=True)]
    return width, dict(sorted(summed.items()))


def least_of(percent: int) -> int:
    """Return how many values a percentile needs so that it is not simply the greatest of them.

    >>> least_of(50), least_of(90), least_of(99)
    (2, 10, 100)
    """
    return -(-100 // (100 - percent))


@dataclass(frozen=True, slots=True)
class LatencyBucket:
    """How many latencies lay in ``[low_ms, high_ms)``; see `LATENCY_EDGES_MS`."""

    low_ms: float
    high_ms: float
    count: int


@dataclass(frozen=True, slots=True)
class Latency:
    """From the request's last byte to the response's last byte, of ``count`` pairs.

    Of fewer than `least_of` pairs a percentile is simply the greatest latency.
    """

    count: int
    min_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    histogram: tuple[LatencyBucket, ...] = ()


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """One API; ``name`` is None when the catalog has no such api key.

    ``failures`` counts the requests and responses whose body did not decode, ``versions`` the
    api versions seen. ``latency`` is None when no request was paired with its response.
    ``may_wait`` is true of an API whose requests say how long a broker may wait for records.
    """

    api_key: int
    name: str | None
    requests: int
    responses: int
    request_bytes: int
    response_bytes: int
    failures: int = 0
    versions: tuple[int, ...] = ()
    latency: Latency | None = None
    may_wait: bool = False


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """The traffic of one client; ``apis`` counts the different APIs it used."""

    client: Client
    connections: int
    requests: int
    bytes_sent: int
    bytes_received: int
    apis: int


@dataclass(frozen=True, slots=True)
class VersionUse:
    """One client used one version of one API ``requests`` times.

    ``verdict`` is the gravest that the audit gives it, with the last release that reads the version
    and the first that does not; "read" where the audit has nothing against it.
    """

    client: Client
    api_key: int
    api_name: str | None
    version: int
    requests: int
    verdict: Verdict = "read"
    last_accepted_in: str | None = None
    removed_in: str | None = None


@dataclass(frozen=True, slots=True)
class CompressionUse:
    """The record batches that one compression type ("none", "gzip", …) was used for.

    ``bytes`` is the size of the batches on the wire.
    """

    codec: str
    batches: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The records of one topic on one side: written with Produce, or read with Fetch.

    A record that was read twice counts twice. ``magic`` holds the record batch versions seen;
    offsets are None where the producer does not know them yet. With ``is_id``, ``topic`` is the
    topic's id, and its name is nowhere in the capture.
    """

    topic: str
    side: Side
    partitions: int
    batches: int
    records: int
    key_bytes: int
    value_bytes: int
    null_keys: int = 0
    null_values: int = 0
    records_with_headers: int = 0
    compression: tuple[CompressionUse, ...] = ()
    magic: tuple[int, ...] = ()
    first_offset: int | None = None
    last_offset: int | None = None
    is_id: bool = False


@dataclass(frozen=True, slots=True)
class RecordHeaderFacts:
    """One record header key, over all topics that use it.

    ``topics`` may be the first of ``topic_count``. Lengths are in bytes and None when every value
    is null. ``distinct_values`` may be an estimate; ``utf8_share`` is the part of the values, 0 to
    1, that reads as UTF-8.
    """

    key: str
    topics: tuple[str, ...]
    records: int
    null_values: int = 0
    empty_values: int = 0
    min_length: int | None = None
    median_length: float | None = None
    max_length: int | None = None
    distinct_values: int = 0
    utf8_share: float | None = None
    topic_count: int = 0


@dataclass(frozen=True, slots=True)
class TaggedFieldUse:
    """A tagged field that was on the wire; ``name`` is None when the spec has no such tag.

    ``path`` is the struct that holds it ("" for the message itself), ``bytes`` the sum of the
    field's sizes, None where it was not measured.
    """

    message: str
    versions: tuple[int, ...]
    path: str
    tag: int
    name: str | None
    times: int
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DecodeFailure:
    """A frame that did not decode: where it was, why, and the hex of its first bytes.

    ``size`` is that of the whole frame; ``message`` is None when not even the request header
    could be read, or the response had no request. ``sample_hex`` is "withheld" where the
    bytes may be credentials.
    """

    time_us: int
    connection: str
    direction: Direction
    message: str | None
    version: int | None
    reason: str
    size: int
    sample_hex: str = ""


@dataclass(frozen=True, slots=True)
class FailureCount:
    """How many frames failed to decode for one reason (without offsets and figures in it)."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class LenientUse:
    """Frames that break their message's spec, and that Kafka's Java reads nevertheless.

    All are the same message at the same version, exchanged with one client, with one ``reason``.
    They are a finding about their writer: the client of a request, the broker of a response.
    """

    client: Client
    message: str
    version: int
    reason: str
    frames: int


@dataclass(frozen=True, slots=True)
class OtherConnection:
    """A connection that is not Kafka.

    ``evidence`` says why not; ``looks_like`` names another protocol ("TLS"), or is None. The
    ``request_bytes`` are those of the end that is taken for the client's.
    """

    client: str
    broker: str
    first_time_us: int
    request_bytes: int
    response_bytes: int
    evidence: str
    looks_like: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """How it was decided which connections are Kafka, and the figures of the others.

    ``given`` are the ends that were given as brokers ("port 9092"); where none were, the content of
    each connection decided. ``not_kafka`` connections carried ``not_kafka_frames`` and
    ``not_kafka_bytes``, and ``others`` are those with most bytes. Over ``silent`` ones nothing was
    sent. Of the Kafka connections, on ``unread`` ones nothing reads as Kafka.
    """

    given: tuple[str, ...] = ()
    not_kafka: int = 0
    not_kafka_frames: int = 0
    not_kafka_bytes: int = 0
    silent: int = 0
    unread: int = 0
    others: tuple[OtherConnection, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one capture.

    ``releases`` are those of the catalog, oldest first, and end with ``newest_release``.
    ``failures`` may be a sample of ``totals.decode_failures``; ``failure_counts`` covers them all.
    ``lenient_uses`` covers ``totals.lenient_frames`` but for the rarest of very many.
    ``withheld_credentials`` counts the frames whose body was kept out of tables and report.
    ``sources`` may be the first of ``source_files``, and ``unreadable`` the first of
    ``unreadable_files``; of the others the facts say nothing else. ``left_out`` counts, by field,
    what `flexwire.report.limits` has left out of very many. ``logs`` is None where no log segment
    was given, ``request_logs`` where no broker's request log was; with some, sizes are not known.
    ``tls`` is None where no key log was given.
    ``sampled`` is empty where captures hold all connections: else every figure is of a part.
    ``added_tags`` are of taps that say so.

    >>> facts = Facts(title="demo", made_at_us=0, flexwire_version="0.1.0", newest_release="4.3")
    >>> Facts.from_json(facts.to_json()) == facts
    True
    """

    title: str
    made_at_us: int
    flexwire_version: str
    newest_release: str
    releases: tuple[str, ...] = ()
    sources: tuple[CaptureFileFacts, ...] = ()
    source_files: int = 0
    totals: Totals = Totals()
    timeline: Timeline = Timeline()
    apis: tuple[ApiFacts, ...] = ()
    clients: tuple[ClientFacts, ...] = ()
    version_uses: tuple[VersionUse, ...] = ()
    topics: tuple[TopicFacts, ...] = ()
    record_headers: tuple[RecordHeaderFacts, ...] = ()
    tagged_fields: tuple[TaggedFieldUse, ...] = ()
    failures: tuple[DecodeFailure, ...] = ()
    failure_counts: tuple[FailureCount, ...] = ()
    lenient_uses: tuple[LenientUse, ...] = ()
    withheld_credentials: int = 0
    audit: Audit = field(default_factory=Audit)
    connections: ConnectionFacts = ConnectionFacts()
    unreadable: tuple[UnreadableFile, ...] = ()
    unreadable_files: int = 0
    answers: tuple[AnswerFacts, ...] = ()
    unanswered: tuple[UnansweredQuestion, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    logs: LogFacts | None = None
    request_logs: RequestLogFacts | None = None
    tls: TlsFacts | None = None
    sampled: tuple[SampledCaptures, ...] = ()
    added_tags: AddedTags = NO_ADDED_TAGS

    @property
    def has_traffic(self) -> bool:
        """Whether the analysis was given a capture: else what is said of traffic means nothing."""
        return self.logs is None or self.source_files > 0

    def to_json(self) -> dict[str, Any]:
        """The facts as `json.dumps` takes them, with the attribute names as keys."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, obj: object) -> Self:
        """The facts again; `ValueError` with the path of what does not fit."""
        try:
            return msgspec.convert(obj, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"not the facts of a report: {error}") from error


def marked(uses: Iterable[VersionUse], audit: Audit) -> tuple[VersionUse, ...]:
    """The uses of versions with the gravest of what the audit says of each, on any release."""
    gravest: dict[tuple[Client, int | None, int], AuditFinding] = {}
    apart: set[Client] = set()
    for one in reversed(findings(audit)):
        client = one.client.client
        if one.verdict == "not judged":
            apart.add(client)
        if one.version is not None:
            gravest[client, one.api_key, one.version] = one
            # A connection that names no software got that of the client's other connections.
            gravest.setdefault((Client(client.client_id), one.api_key, one.version), one)
    return tuple(_marked(use, gravest, apart) for use in uses)


def _marked(
    use: VersionUse,
    gravest: dict[tuple[Client, int | None, int], AuditFinding],
    apart: set[Client],
) -> VersionUse:
    found = gravest.get((use.client, use.api_key, use.version))
    if found is None:
        return replace(use, verdict="not judged") if use.client in apart else use
    return replace(
        use,
        verdict=found.verdict,
        last_accepted_in=found.last_accepting_release,
        removed_in=found.first_refusing_release,
    )
