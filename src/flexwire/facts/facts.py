"""The facts of one analysis: everything that the report shows, and the report's only input.

Attribute names include the unit: ``…_us`` is a whole number of microseconds, ``…_ms`` a
floating-point number of milliseconds. A moment is counted from the epoch, in UTC. The bytes of a
frame include its 4-byte length. An unknown value is None, never an empty string or -1. An
incomplete list contains only the first entries, but its count includes all entries. The order of a
list is not significant, because the report sorts what it shows.
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
from flexwire.facts.rehearsals import RehearsalFacts  # noqa: TC001 - msgspec reads the annotations
from flexwire.parties import AuditVerdict, Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flexwire.facts.audit import AuditFinding


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The numbers for all logs that were read. The answers describe everything else in the logs.

    ``damaged`` counts runs of bytes that are not a batch or cannot be read. In ``beyond_bounds`` of
    these runs, a batch exceeds a limit when it is decompressed. ``left_out`` lists directories of
    partitions that were not read, because another directory contains a longer log. Both lists may
    be incomplete, but the counts include all entries. Times are timestamps of records, or None.

    If tables are extended, a log is read from the offset after the last one in the tables, up to
    its last complete batch. ``known_partitions`` contain nothing new. ``waiting_bytes`` is the
    number of bytes after the last complete batches. ``gone_partitions`` begin after the next offset
    to read, because records were deleted. ``behind`` lists partitions that end before this offset:
    an older copy, or a recreated topic. It may be incomplete, but ``behind_count`` is exact.
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
    """A broker's listener, and the numbers of its requests and of replica fetches.

    ``name`` and ``security_protocol`` are None if the lines were cut off before these values.
    """

    name: str | None
    security_protocol: str | None
    requests: int
    replica_fetches: int = 0


@dataclass(frozen=True, slots=True)
class RequestLogFacts:
    """The numbers for all request logs that were read. The other facts describe their content.

    ``requests`` counts the requests that clients and brokers sent themselves. ``forwarded`` counts
    the requests that brokers forwarded to the controller for clients. ``refused`` counts the
    requests that a broker could not read. ``cut`` counts lines in which only the request's header
    is known. ``text`` counts lines written by Kafka 2.7 and earlier, which may not show the content
    of the request. ``left_out_fields`` counts mandatory fields that brokers left out of bodies.
    ``only_deprecated`` is true if every line contains a deprecated version; at the level INFO,
    brokers log only such lines. ``listeners`` may be incomplete, but ``listener_count`` includes
    all listeners. ``requests_beyond`` counts the requests to listeners that are not listed.
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
        """True if request logs were read and none of their lines is a request."""
        return bool(self.files) and not (self.requests + self.forwarded + self.cut + self.text)


@dataclass(frozen=True, slots=True)
class TlsReason:
    """A reason why connections were not completely decrypted, and the number of connections."""

    reason: str
    connections: int


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """The TLS connections of all captures, by outcome.

    ``opened`` counts connections that were decrypted completely, ``partly_opened`` those decrypted
    up to some record, and ``not_opened`` those not decrypted at all, which tables show as captured.
    ``partly`` and ``unopened`` list the reasons, without the rarest if there are too many.
    ``lost_bytes`` counts bytes that are missing from the captures, and ``unread_bytes`` TLS bytes
    after the last decrypted record. ``sources`` may be partial; ``source_files`` counts all files.
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
"""The maximum number of capture files that the facts list. The table of packets lists all files."""

# The audit's verdict on a version for any release, or "read" if the audit found nothing.
Verdict = AuditVerdict | Literal["read"]
Direction = Literal["request", "response"]
Side = Literal["produce", "fetch"]

# Four buckets per factor of ten, from 10 microseconds to 100 seconds. They are fine enough to show
# which Fetch waited and coarse enough to draw.
LATENCY_EDGES_MS: tuple[float, ...] = tuple(10 ** (step / 4) for step in range(-8, 21))


@dataclass(frozen=True, slots=True)
class CaptureFileFacts:
    """One capture file: its packets, and the frames whose last byte is in the file."""

    path: str
    packets: int
    frames: int
    bytes: int


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that was left out because it could not be opened or is not a capture."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers for Kafka traffic. `ConnectionFacts` contains the numbers for other traffic.

    ``clients`` counts different `Client` keys, and ``brokers`` counts different addresses that sent
    responses. ``bytes`` is the size of all frames. An *unanswered request* expects a response that
    is not in the capture. An *unpaired response* answers a request that is not in the capture.
    ``lenient_frames`` counts frames decoded only leniently (see `LenientUse`); they are not
    among the ``decode_failures``. ``skipped_packets`` counts packets that were not TCP or could not
    be read. ``batches_beyond_bounds`` counts record batches that exceed a limit when they are
    decompressed; they are also among the ``decode_failures``.
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
    """The traffic in one time slice, which begins at ``time_us``."""

    time_us: int
    request_bytes: int
    response_bytes: int
    frames: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Traffic over time in slices of ``bucket_us``. Slices without traffic may be missing."""

    bucket_us: int = 1_000_000
    buckets: tuple[TimelineBucket, ...] = ()


def rebinned(
    parts: Mapping[int, Sequence[float]], step: int, most: int
) -> tuple[int, dict[int, list[float]]]:
    """Return the width of at most ``most`` time slices, and their sums by start, in order.

    ``parts`` contains the sums of slices of width ``step``, by their start.

    >>> rebinned({10: [1], 20: [2], 30: [4]}, 10, 2)
    (20, {10: [3], 30: [4]})
    """
    first, last = min(parts), max(parts)
    width = step * -(-((last - first) // step + 1) // most)
    summed: dict[int, list[float]] = {}
    for start, values in parts.items():
        sums = summed.setdefault(first + (start - first) // width * width, [0] * len(values))
        sums[:] = [before + value for before, value in zip(sums, values, strict=True)]
    return width, dict(sorted(summed.items()))


def least_of(percent: int) -> int:
    """Return how many values are needed before a percentile can differ from the maximum.

    >>> least_of(50), least_of(90), least_of(99)
    (2, 10, 100)
    """
    return -(-100 // (100 - percent))


@dataclass(frozen=True, slots=True)
class LatencyBucket:
    """The number of latencies in ``[low_ms, high_ms)``, with the edges in `LATENCY_EDGES_MS`."""

    low_ms: float
    high_ms: float
    count: int


@dataclass(frozen=True, slots=True)
class Latency:
    """The latencies of ``count`` pairs, from the request's last byte to the response's last byte.

    With fewer than `least_of` pairs, a percentile equals the longest latency.
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
    """The facts about one API. ``name`` is None if the api key is not in the catalog.

    ``failures`` counts the requests and responses whose body cannot be decoded. ``versions`` lists
    the captured API versions. ``latency`` is None if no request was paired with its response.
    ``may_wait`` is true if requests of the API specify how long a broker may wait for records.
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
    """The traffic of one client. ``apis`` is the number of different APIs that the client used."""

    client: Client
    connections: int
    requests: int
    bytes_sent: int
    bytes_received: int
    apis: int


@dataclass(frozen=True, slots=True)
class VersionUse:
    """The number of ``requests`` that one client sent in one version of one API.

    ``verdict`` is the audit's most serious verdict, with the last release that accepts the version
    and the first release that does not. ``verdict`` is "read" if there is no finding.
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
    """The record batches with one compression type ("none", "gzip", …).

    ``bytes`` is the size of the batches on the wire.
    """

    codec: str
    batches: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic's records in one direction: written with Produce, or read with Fetch.

    A record that was read twice counts twice. ``magic`` contains the versions of the captured
    record batches. Offsets are None if the producer does not know them yet. If ``is_id`` is true,
    ``topic`` is the topic's id, because the capture does not contain its name.
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
    """A record header key, across all topics that use it.

    ``topics`` may be incomplete, but ``topic_count`` includes all topics. Lengths are in bytes, or
    None if every value is null. ``distinct_values`` may be an estimate. ``utf8_share`` is the share
    of values, from 0 to 1, that are valid UTF-8.
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
    """A tagged field that was sent. ``name`` is None if the spec contains no field with this tag.

    ``path`` is the path of the structure that contains the field ("" for the message itself).
    ``bytes`` is the sum of the field's sizes, or None if they were not measured.
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
    """A frame that could not be decoded: its position, the reason, and its first bytes in hex.

    ``size`` is the size of the complete frame. ``message`` is None if the request header could not
    be read, or if a response's request is unknown. ``sample_hex`` is "withheld" if the bytes may be
    credentials.
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
    """The number of frames that failed to decode for a reason, whatever numbers it contains."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class LenientUse:
    """Frames that do not match their message's spec but that Kafka's Java code can read.

    All these frames share the same message, version, client and ``reason``. They reveal a property
    of their sender: the client for requests, or the broker for responses.
    """

    client: Client
    message: str
    version: int
    reason: str
    frames: int


@dataclass(frozen=True, slots=True)
class OtherConnection:
    """A connection that does not use Kafka's protocol.

    ``evidence`` is the reason for this conclusion. ``looks_like`` is the name of another protocol
    (such as "TLS"), or None if no other protocol was recognized. ``request_bytes`` is the number of
    bytes from the end that is assumed to be the client.
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
    """How Kafka connections were recognized, and the numbers for the other connections.

    ``given`` lists the endpoints that the user specified as brokers ("port 9092"). If the user
    specified no broker, the content of each connection determined whether it is Kafka.
    ``not_kafka`` counts connections that are not Kafka, ``not_kafka_frames`` and
    ``not_kafka_bytes`` count their traffic, and ``others`` lists the largest of them by bytes.
    ``silent`` counts connections on which no bytes were sent. ``unread`` counts Kafka connections
    on which no frame can be read. ``nameless`` counts Kafka connections on which no request has a
    client id, and whose beginning, where a client may send the id once (KIP-1313), is missing.
    """

    given: tuple[str, ...] = ()
    not_kafka: int = 0
    not_kafka_frames: int = 0
    not_kafka_bytes: int = 0
    silent: int = 0
    unread: int = 0
    others: tuple[OtherConnection, ...] = ()
    nameless: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about one capture.

    ``releases`` lists the releases in the catalog up to ``newest_release``, oldest first.
    ``failures`` may be a sample of ``totals.decode_failures``, but ``failure_counts`` covers all of
    them. ``lenient_uses`` describes the most frequent ``totals.lenient_frames``.
    ``withheld_credentials`` counts the frames whose body was kept out of the tables and the report.
    ``sources`` and ``unreadable`` may be incomplete, but ``source_files`` and ``unreadable_files``
    count all files. ``left_out`` counts, by field, the entries that `flexwire.report.limits` left
    out. ``logs`` is None without log segments. ``request_logs`` is None without request logs, which
    contain no sizes. ``tls`` is None without key logs. ``sampled`` is empty if the captures contain
    all connections; otherwise, every number describes only part of the traffic. ``added_tags``
    describes the taps that added tags. ``rehearsal`` is None if no tap rehearsed a release.

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
    rehearsal: RehearsalFacts | None = None

    @property
    def has_traffic(self) -> bool:
        """True if the analysis read traffic. Otherwise, the facts about traffic are meaningless."""
        return self.logs is None or self.source_files > 0

    def to_json(self) -> dict[str, Any]:
        """Return the facts in a form that `json.dumps` accepts, with attribute names as keys."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, obj: object) -> Self:
        """Return facts from their JSON form. Raises `ValueError` with the path of a bad value."""
        try:
            return msgspec.convert(obj, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"these are not valid report facts: {error}") from error


def marked(uses: Iterable[VersionUse], audit: Audit) -> tuple[VersionUse, ...]:
    """Return the uses of versions, each with the audit's most serious verdict for any release."""
    gravest: dict[tuple[Client, int | None, int], AuditFinding] = {}
    apart: set[Client] = set()
    for finding in reversed(findings(audit)):
        client = finding.client.client
        if finding.verdict == "not judged":
            apart.add(client)
        if finding.version is not None:
            gravest[client, finding.api_key, finding.version] = finding
            # Without a software name, the audit used the one from the client's other connections.
            gravest.setdefault(
                (Client(client.client_id), finding.api_key, finding.version), finding
            )
    return tuple(_marked(use, gravest, apart) for use in uses)


def _marked(
    use: VersionUse,
    gravest: dict[tuple[Client, int | None, int], AuditFinding],
    apart: set[Client],
) -> VersionUse:
    finding = gravest.get((use.client, use.api_key, use.version))
    if finding is None:
        return replace(use, verdict="not judged") if use.client in apart else use
    return replace(
        use,
        verdict=finding.verdict,
        last_accepted_in=finding.last_accepting_release,
        removed_in=finding.first_refusing_release,
    )
