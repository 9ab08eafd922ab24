"""Facts to render: a capture of a small cluster, an empty one, and a very large one."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from flexwire.facts.audit import (
    Audit,
    AuditFinding,
    ClusterGate,
    NewestShare,
    PinningSetting,
)
from flexwire.facts.facts import (
    LATENCY_EDGES_MS,
    ApiFacts,
    CaptureFileFacts,
    ClientFacts,
    CompressionUse,
    ConnectionFacts,
    DecodeFailure,
    Facts,
    FailureCount,
    Latency,
    LatencyBucket,
    LenientUse,
    OtherConnection,
    RecordHeaderFacts,
    TaggedFieldUse,
    Timeline,
    TimelineBucket,
    TopicFacts,
    Totals,
    UnreadableFile,
    VersionUse,
)
from flexwire.parties import Client, Party

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.parties import AuditVerdict

START = 1_793_182_800_000_000
SECOND = 1_000_000

BILLING = Client("billing-service", "librdkafka", "2.6.1")
ANALYTICS = Client("analytics", "apache-kafka-java", "4.1.0")
SHIPPING = Client("shipping")
LEGACY = Client("inventory-sync-worker-eu-west-1a-pool-0007")
NAMELESS = Client(None, "aiokafka", "0.14.0")

_RELEASES = ("2.4.1", "2.8.2", "3.0.2", "3.4.1", "3.9.1", "4.0.0", "4.1.0", "4.4.0")
_NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    18: "ApiVersions",
    19: "CreateTopics",
    22: "InitProducerId",
}


def _latency(count: int, middle: float, spread: float, *, wait: float = 0) -> Latency:
    """Return a bell curve on the log scale; with ``wait``, a second one for requests
    that waited.
    """
    histogram = []
    for low, high in itertools.pairwise(LATENCY_EDGES_MS):
        place = math.log10(low * high) / 2
        weight = math.exp(-(((place - math.log10(middle)) / spread) ** 2))
        if wait:
            weight += 0.8 * math.exp(-(((place - math.log10(wait)) / 0.12) ** 2))
        if hits := math.ceil(count * weight / 4 - 0.05):
            histogram.append(LatencyBucket(low, high, hits))
    low, high = histogram[0].low_ms, histogram[-1].high_ms
    top = wait or middle * 10 ** (1.5 * spread)
    p99 = min(top, high * 0.85)
    p90 = max(middle, p99 * 0.8)
    return Latency(count, low * 1.1, middle, p90, p99, high * 0.9, tuple(histogram))


def _api(  # noqa: PLR0917  one argument per column of the table below
    key: int,
    requests: int,
    request_bytes: int,
    response_bytes: int,
    versions: Sequence[int],
    latency: Latency | None,
    failures: int = 0,
) -> ApiFacts:
    return ApiFacts(
        key,
        _NAMES[key],
        requests,
        requests - failures,
        request_bytes,
        response_bytes,
        failures,
        tuple(versions),
        latency,
    )


APIS = (
    _api(0, 4_112, 18_734_551, 310_220, (2, 3, 7, 9, 12), _latency(4_108, 2.4, 0.3), 1),
    _api(1, 9_840, 1_210_311, 21_905_127, (3, 4, 11, 13, 17), _latency(9_833, 1.1, 0.3, wait=500)),
    _api(2, 84, 6_100, 7_913, (1, 5, 9, 10), _latency(84, 0.9, 0.2)),
    _api(3, 212, 9_233, 301_118, (1, 9, 12, 13), _latency(212, 1.4, 0.4)),
    _api(8, 640, 80_411, 49_002, (2, 7, 8, 9), _latency(640, 3.3, 0.4)),
    _api(9, 31, 2_118, 3_900, (1, 5, 7, 9), _latency(31, 1.2, 0.2)),
    _api(10, 22, 1_012, 1_433, (0, 2, 4, 6), _latency(22, 0.8, 0.2)),
    _api(11, 14, 5_300, 4_811, (0, 5, 7, 9), _latency(14, 2_900, 0.1)),
    _api(12, 1_204, 118_020, 19_264, (0, 3, 4), _latency(1_204, 0.6, 0.2)),
    _api(13, 5, 390, 80, (1, 5), _latency(5, 1.0, 0.1)),
    _api(14, 14, 4_902, 3_120, (0, 3, 5), _latency(14, 1.9, 0.3)),
    _api(18, 40, 2_440, 17_884, (0, 2, 3, 4), _latency(40, 0.7, 0.3)),
    _api(19, 2, 402, 388, (4, 7), _latency(2, 22, 0.1)),
    _api(22, 3, 211, 120, (4, 5), None),
)

_MODERN = {0: 12, 1: 17, 2: 10, 3: 13, 8: 9, 9: 9, 10: 6, 11: 9, 12: 4, 14: 5, 18: 4, 22: 5}
_RDKAFKA = {0: 9, 1: 13, 2: 9, 3: 12, 8: 8, 9: 9, 10: 4, 11: 9, 12: 4, 14: 5, 18: 3, 19: 7}
_ASYNC = {0: 7, 1: 11, 2: 5, 3: 9, 8: 7, 9: 7, 10: 2, 11: 7, 12: 3, 14: 3, 18: 2, 13: 5}
_OLD = {0: 2, 1: 3, 2: 1, 3: 1, 8: 2, 9: 1, 10: 0, 11: 0, 12: 0, 14: 0, 18: 0, 13: 1}
_REMOVED = {0: 3, 1: 4, 2: 1, 8: 2}


def _uses(client: Client, versions: dict[int, int], weight: int) -> list[VersionUse]:
    uses = []
    for key, version in versions.items():
        requests = weight * (40 if key < 2 else 3) + key
        removed = version < _REMOVED.get(key, 0)
        uses.append(
            VersionUse(
                client,
                key,
                _NAMES[key],
                version,
                requests,
                "will break" if removed else "read",
                "3.9.1" if removed else None,
                "4.0.0" if removed else None,
            )
        )
    return uses


VERSION_USES = (
    *_uses(ANALYTICS, _MODERN, 81),
    *_uses(BILLING, _RDKAFKA, 60),
    *_uses(NAMELESS, _ASYNC, 12),
    *_uses(LEGACY, _OLD, 9),
    *_uses(SHIPPING, {3: 1, 0: 2, 18: 0}, 2),
    VersionUse(SHIPPING, 0, "Produce", 3, 402, "read"),
    VersionUse(BILLING, 3, "Metadata", 13, 3, "read"),
    VersionUse(ANALYTICS, 4001, None, 1, 2, "cannot say"),
)

CLIENTS = (
    ClientFacts(BILLING, 9, 7_301, 15_402_110, 10_331_009, 12),
    ClientFacts(ANALYTICS, 7, 6_240, 2_881_014, 9_412_777, 13),
    ClientFacts(NAMELESS, 4, 1_402, 1_220_004, 1_801_224, 12),
    ClientFacts(LEGACY, 4, 870, 610_020, 1_020_900, 12),
    ClientFacts(SHIPPING, 2, 410, 62_254, 58_470, 3),
)

TOPICS = (
    TopicFacts(
        "orders",
        "produce",
        6,
        1_204,
        48_112,
        769_792,
        9_622_400,
        0,
        212,
        48_112,
        (
            CompressionUse("lz4", 810, 2_904_114),
            CompressionUse("zstd", 380, 1_010_290),
            CompressionUse("none", 14, 310_330),
        ),
        (2,),
    ),
    TopicFacts(
        "orders",
        "fetch",
        6,
        1_390,
        55_310,
        884_960,
        11_062_000,
        0,
        244,
        55_310,
        (CompressionUse("lz4", 1_004, 3_511_882), CompressionUse("zstd", 386, 1_033_207)),
        (2,),
        0,
        9_211,
    ),
    TopicFacts(
        "clicks",
        "produce",
        12,
        2_402,
        120_044,
        0,
        6_002_200,
        120_044,
        0,
        0,
        (CompressionUse("snappy", 1_400, 2_222_911), CompressionUse("gzip", 1_002, 1_204_220)),
        (2,),
    ),
    TopicFacts(
        "inventory",
        "produce",
        1,
        310,
        310,
        2_480,
        31_310,
        0,
        9,
        0,
        (CompressionUse("none", 310, 55_118),),
        (1,),
    ),
    TopicFacts(
        "rFgO_X8xRgGdXv0IhVb5Yw",
        "fetch",
        2,
        12,
        240,
        1_920,
        24_110,
        compression=(CompressionUse("zstd", 12, 9_120),),
        magic=(2,),
        first_offset=71,
        last_offset=310,
        is_id=True,
    ),
)

RECORD_HEADERS = (
    RecordHeaderFacts("traceparent", ("orders",), 103_422, 0, 0, 55, 55.0, 55, 98_211, 1.0),
    RecordHeaderFacts("content-type", ("orders", "clicks"), 48_112, 0, 12, 0, 16.0, 24, 3, 1.0),
    RecordHeaderFacts(
        "retries", ("orders", "rFgO_X8xRgGdXv0IhVb5Yw"), 1_204, 18, 0, 4, 4.0, 4, 7, 0.42
    ),
)

TAGGED_FIELDS = (
    TaggedFieldUse("RequestHeader", (2,), "", 10001, None, 402, 6_432),
    TaggedFieldUse("ApiVersionsResponse", (3, 4), "", 1, "FinalizedFeaturesEpoch", 24, 192),
    TaggedFieldUse("ApiVersionsResponse", (3, 4), "", 0, "SupportedFeatures", 24, 2_808),
    TaggedFieldUse(
        "FetchRequest", (17,), "topics[].partitions[]", 0, "ReplicaDirectoryId", 18, 288
    ),
    TaggedFieldUse("FetchResponse", (13, 17), "", 0, "NodeEndpoints", 4, None),
)

FAILURES = (
    DecodeFailure(
        START + 61_204_113,
        "127.0.0.1:51882 \u2192 127.0.0.1:19092",
        "request",
        "ProduceRequest",
        9,
        "topic_data[0].partition_data[0].records, byte 71: declared length 1048576 but 211 bytes "
        "remain",
        307,
        "000000090000002a0007736869707069 6e6700000001ffff0000".replace(" ", "") * 5,
    ),
)

LENIENT_USES = (
    LenientUse(
        BILLING,
        "MetadataRequest",
        13,
        "MetadataRequest v13 at the message, byte 4: the message ends here but 3 bytes follow",
        3,
    ),
    LenientUse(
        ANALYTICS,
        "AlterUserScramCredentialsRequest",
        0,
        "AlterUserScramCredentialsRequest v0 at the message, byte …: the message ends here but … "
        "bytes follow",
        8,
    ),
)


def finding(client: Party, verdict: AuditVerdict, release: str, /, **known: Any) -> AuditFinding:
    """Return a finding with as few facts as possible, plus the given ones."""
    told = {
        "evidence": f"evidence of {verdict}",
        "reason": f"the reason to say {verdict}",
        "role": "client",
        "requests": 120,
        "first_time_us": START,
        "last_time_us": START + 90 * SECOND,
        "connections": 3,
        "apis": 9,
        **known,
    }
    return AuditFinding(release, verdict, client=client, **told)


_OLDEST = Party("inventory-sync-worker-eu-west-1a-pool-0007", "10.0.3.18")
_SHIPPING = Party("shipping", "10.0.3.22", "User:shipping")
_BILLING = Party("billing-service", "10.0.3.9", None, "librdkafka", "2.6.1")
_ANALYTICS = Party("analytics", "10.0.4.1", None, "apache-kafka-java", "4.1.0")
_NAMELESS = Party(None, "10.0.4.2", None, "aiokafka", "0.14.0")
_REPLICA = Party("broker-2-fetcher-0", "10.0.0.2", None, "apache-kafka-java", "3.9.1")
_REFUSED: dict[str, Any] = {"last_accepting_release": "3.9.2", "first_refusing_release": "4.0.0"}

AUDIT = Audit(
    ("4.0.2", "4.4.0"),
    cluster=(
        ClusterGate(
            "4.0.2", "topic configurations", "will break", "message.format.version",
            "configuration blocks changes", "2 topics have it set, and 4.0.0 no longer has it",
            names=("orders", "returns"), count=2, source="KAFKA-19851",
        ),
        ClusterGate("4.4.0", "metadata.version", "cannot say", "metadata.version", "not seen",
                    "no broker said its finalized metadata.version"),
    ),
    asked=True,
    brokers=("3.9.2",),
    findings=tuple(
        one
        for release in ("4.0.2", "4.4.0")
        for one in (
            finding(_OLDEST, "broke", release, api_key=0, api_name="Produce", version=2,
                    offered="0-11", requests=369, groups=("inventory",), group_count=1,
                    topics=("inventory", "orders", "returns", "stock"), topic_count=31,
                    remedy=f"upgrade the client to one that speaks Produce of {release}",
                    **_REFUSED),
            finding(_OLDEST, "will break", release, api_key=1, api_name="Fetch", version=3,
                    offered="0-17", **_REFUSED),
            finding(_SHIPPING, "cannot say", release, api_key=0, api_name="Produce", version=2,
                    remedy="capture it from the start of a connection", **_REFUSED),
            finding(_NAMELESS, "nothing seen against it", release),
            finding(_ANALYTICS, "nothing seen against it", release),
            finding(_ANALYTICS, "documented as unsupported", release, source="KIP-896"),
            finding(_BILLING, "known to break", release, source="KAFKA-19444; looked at on "
                    "2026-11-21", remedy="upgrade to librdkafka 2.11.0 or newer"),
            finding(_REPLICA, "not judged", release, role="broker"),
        )
    ),
    newest=(NewestShare("4.0.2", 16_000, 4_000, 5, 1), NewestShare("4.4.0", 16_000, 0, 5, 0)),
    pins=(
        PinningSetting("kafka-python", "api_version", "is taken for the broker's",
                       "remove api_version", ("kafka-python documentation",)),
    ),
)  # fmt: skip

SAMPLE = Facts(
    title="three brokers, five clients",
    made_at_us=START + 200 * SECOND,
    flexwire_version="0.1.0",
    newest_release="4.4.0",
    releases=_RELEASES,
    sources=(
        CaptureFileFacts("capture/tap-000001.pcapng", 21_904, 20_118, 26_214_400),
        CaptureFileFacts("capture/tap-000002.pcapng", 13_220, 12_287, 16_524_382),
    ),
    totals=Totals(
        START,
        START + 147_310_220,
        32_405,
        16_223,
        16_182,
        41,
        3,
        26,
        5,
        3,
        42_738_782,
        1,
        17,
        11,
    ),
    timeline=Timeline(
        SECOND,
        tuple(
            TimelineBucket(
                START + second * SECOND,
                round(140_000 * (1.3 + math.sin(second / 9)) + 9_000 * (second % 7)),
                round(150_000 * (1.2 + math.sin(second / 9 - 0.6)) + 15_000 * (second % 5)),
                220 + second % 11,
            )
            for second in range(148)
        ),
    ),
    apis=APIS,
    clients=CLIENTS,
    version_uses=VERSION_USES,
    topics=TOPICS,
    record_headers=RECORD_HEADERS,
    tagged_fields=TAGGED_FIELDS,
    failures=FAILURES,
    failure_counts=(FailureCount("declared length beyond the bytes that remain", 1),),
    lenient_uses=LENIENT_USES,
    withheld_credentials=2,
    audit=AUDIT,
    connections=ConnectionFacts(
        not_kafka=2,
        not_kafka_frames=5,
        not_kafka_bytes=84_112,
        silent=3,
        unread=1,
        nameless=2,
        others=(
            OtherConnection(
                "10.0.4.7:41002",
                "10.0.0.1:443",
                START,
                1_200,
                82_000,
                "no request on the connection reads as Kafka",
                "TLS",
            ),
            OtherConnection(
                "10.0.4.7:41003",
                "10.0.0.5:7000",
                START + SECOND,
                912,
                0,
                "no request on the connection reads as Kafka",
            ),
        ),
    ),
    unreadable=(UnreadableFile("s3://captures/tap-000003.pcapng", "cannot open: Access Denied"),),
    unreadable_files=4,
)

EMPTY = Facts(
    title="nothing",
    made_at_us=START,
    flexwire_version="0.1.0",
    newest_release="4.4.0",
)


def big(clients: int = 500, apis: int = 60) -> Facts:
    """Return facts in which every client uses every API, and every seventh client a removed
    version.
    """
    people = [
        Client(f"client-{number:03}", "apache-kafka-java", "3.9.0") for number in range(clients)
    ]
    latency = _latency(1000, 3, 0.4)
    return Facts(
        title="a large cluster",
        made_at_us=START,
        flexwire_version="0.1.0",
        newest_release="4.4.0",
        totals=Totals(START, START + SECOND, clients * apis, clients * apis, clients=clients),
        apis=tuple(
            ApiFacts(key, f"LongApiName{key}", 500, 500, 900 * key, 800 * key, 0, (1, 2), latency)
            for key in range(apis)
        ),
        clients=tuple(ClientFacts(client, 3, apis, 1000, 2000, apis) for client in people),
        version_uses=tuple(
            VersionUse(
                client,
                key,
                f"LongApiName{key}",
                number % 7,
                1 + key,
                "will break" if number % 7 == 0 else "read",
            )
            for number, client in enumerate(people)
            for key in range(apis)
        ),
        audit=Audit(
            ("4.4.0",),
            findings=tuple(
                finding(
                    Party(one.client_id, "10.0.0.1"),
                    "will break" if number % 7 == 0 else "nothing seen against it",
                    "4.4.0",
                    api_key=key if number % 7 == 0 else None,
                    version=0 if number % 7 == 0 else None,
                )
                for number, one in enumerate(people)
                for key in range(apis if number % 7 == 0 else 1)
            ),
        ),
        failures=tuple(
            DecodeFailure(START + number, "a:1", "request", None, None, f"r{number}", 9, "ff" * 64)
            for number in range(1000)
        ),
    )
