"""The gates of a cluster: the conditions for upgrading its brokers to 4.x.

`flexwire.protocol.audit.verdicts` judges each client separately. This module judges the cluster as
a whole. The evidence comes from captures or from the log of the cluster's metadata, and the
verdicts are the same as for clients. Each gate has a finding for each release, including "nothing
seen against it" and "cannot say", so that nobody mistakes a gate that was not checked for an open
gate.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from flexwire.facts.audit import ClusterGate
from flexwire.parties import VERDICTS
from flexwire.protocol.apis import api_name, request_entries
from flexwire.protocol.audit.evidence import listeners_of, stable_versions
from flexwire.protocol.configurations import find_removal
from flexwire.schema.catalog import catalog, is_since, per_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.parties import AuditVerdict
    from flexwire.protocol.configurations import ConfiguredKind

Gate = Literal[
    "ZooKeeper",
    "metadata.version",
    "topic configurations",
    "broker configurations",
    "old batches",
    "features",
]
"""The kinds of gates."""

METADATA_VERSION: Final = "metadata.version"
# The listener of a broker in ZooKeeper mode, in the "listeners" of request specs.
_ZOOKEEPER_LISTENER: Final = "zkBroker"
_FIRST: Final = "4.0.0"
"""The first release without ZooKeeper, which is also the first release with gates."""
_LEAST_LEVEL: Final = 7
"""The metadata.version of 3.3-IV3, the lowest level that 4.x reads (KAFKA-18601)."""
_UNBLOCKED: Final = "4.2.1"
"""The first release that drops a topic's removed configurations when it reads the log
(KAFKA-19851).

This was measured: 4.0.2, 4.1.2 and 4.2.0 refuse every change to the topic; 4.2.1, 4.3.0, 4.3.1 and
4.4.0 do not.
"""


class _Feature(NamedTuple):
    """A feature whose APIs return UNSUPPORTED_VERSION (35) until the feature is finalized."""

    name: str
    since: str
    api_keys: tuple[int, ...]


# The features come from KIP-848, KIP-932 and KIP-1071. Only the APIs that clients use are listed.
_FEATURES: Final = (
    _Feature("group.version", "4.0.0", (68, 69)),
    _Feature("share.version", "4.1.0", (76, 77, 78, 79)),
    _Feature("streams.version", "4.2.0", (88, 89)),
)


@dataclass(frozen=True, slots=True)
class NameSample:
    """The first names in alphabetical order, and the total number of names."""

    names: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The evidence about a cluster.

    ``features`` contains the finalized levels, by the broker that reported them. A broker that
    reported no level is left out. ``configured`` contains topics or brokers, by configuration. It
    includes only configurations that some release lacks. ``described`` counts the topics and
    brokers whose configurations were seen. ``offered`` contains the API keys in ApiVersions
    responses, and ``uses`` contains the number of requests by API key. ``old_batches`` contains the
    number of batches with magic 0 or 1 by topic, or is None if no log was read. ``is_whole`` means
    that the log of the cluster's metadata was read; in that case, a missing configuration is not
    set.
    """

    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    configured: Mapping[tuple[ConfiguredKind, str], NameSample] = field(default_factory=dict)
    described: Mapping[ConfiguredKind, int] = field(default_factory=dict)
    offered: frozenset[int] = frozenset()
    uses: Mapping[int, int] = field(default_factory=dict)
    old_batches: Mapping[str, int] | None = None
    is_whole: bool = False

    @property
    def source(self) -> str:
        """The source of the evidence, in words."""
        return "the log of the cluster's metadata" if self.is_whole else "captured traffic"


@per_catalog
@cache
def zookeeper_apis() -> tuple[int, ...]:
    """Return the APIs that only brokers in ZooKeeper mode accept, according to the specs.

    >>> [api_name(key) for key in zookeeper_apis()]
    ['LeaderAndIsr', 'StopReplica', 'UpdateMetadata']
    """
    return tuple(key for key in sorted(catalog().api_keys()) if _is_zookeepers(key))


def _is_zookeepers(api_key: int) -> bool:
    read = [entry for entry in request_entries(api_key) if any(entry.releases.values())]
    return bool(read) and listeners_of(read[0]) == (_ZOOKEEPER_LISTENER,)


def judge_cluster(seen: ClusterSeen, release: str) -> list[ClusterGate]:
    """Return each gate's finding about a cluster for a release, the most serious first.

    The result is empty for releases before 4.0, which have no gates.
    """
    if not is_since(release, _FIRST):
        return []
    gates = [
        _zookeeper(seen, release),
        _metadata_version(seen, release),
        *_configurations(seen, release, "topic"),
        *_configurations(seen, release, "broker"),
        *_old_batches(seen, release),
        *_features(seen, release),
    ]
    return sorted(gates, key=lambda gate: VERDICTS.index(gate.verdict))


def _zookeeper(seen: ClusterSeen, release: str) -> ClusterGate:
    remedy = "with Kafka 3.9, migrate the cluster to KRaft and finish the migration"
    source = "KIP-833, KIP-866"
    sent = {key: seen.uses[key] for key in zookeeper_apis() if seen.uses.get(key)}
    gate: Gate = "ZooKeeper"
    subject = "the cluster"
    if sent:
        requests = ", ".join(f"{count:,} {api_name(key)}" for key, count in sent.items())
        reason = (
            f"a controller sent {requests} requests, which belong to ZooKeeper mode; {release} "
            "does not support this mode"
        )
        return ClusterGate(
            release, gate, "will break", subject, "ZooKeeper requests", reason, remedy,
            tuple(map(api_name, sent)), sum(sent.values()), source,
        )  # fmt: skip
    offered = [api_name(key) for key in zookeeper_apis() if key in seen.offered]
    if offered:
        reason = f"a broker offers {', '.join(offered)}, available only in ZooKeeper mode"
        return ClusterGate(
            release, gate, "will break", subject, "ZooKeeper APIs offered", reason, remedy,
            tuple(offered), len(offered), source,
        )  # fmt: skip
    if seen.is_whole or _levels(seen, METADATA_VERSION):
        reason = f"{seen.source} shows that the cluster runs in KRaft mode"
        return ClusterGate(
            release, gate, "nothing seen against it", subject, "KRaft", reason, source=source
        )
    if seen.offered:
        reason = "no broker offers an API that exists only in ZooKeeper mode"
        return ClusterGate(
            release, gate, "nothing seen against it", subject, "not offered", reason, source=source
        )
    reason = "neither an ApiVersions response nor the log of the cluster's metadata was seen"
    remedy = "capture a client that connects, or read the log of __cluster_metadata"
    return ClusterGate(release, gate, "cannot say", subject, "not seen", reason, remedy)


def _levels(seen: ClusterSeen, feature: str) -> list[int]:
    return [levels[feature] for levels in seen.features.values() if feature in levels]


def _metadata_version(seen: ClusterSeen, release: str) -> ClusterGate:
    levels = _levels(seen, METADATA_VERSION)
    gate: Gate = "metadata.version"
    source = "KAFKA-18601"
    if not levels:
        reason = (
            "no broker sent its finalized metadata.version, and no log that contains it was read"
        )
        remedy = (
            "capture a client that sends ApiVersions 3 or later, or run kafka-features describe"
        )
        return ClusterGate(release, gate, "cannot say", gate, "not seen", reason, remedy)
    level = min(levels)
    if level < _LEAST_LEVEL:
        reason = (
            f"the metadata.version level is {level}, but {release} requires {_LEAST_LEVEL} "
            "(3.3-IV3) or higher"
        )
        remedy = "run kafka-features upgrade --metadata 3.9 while the brokers run 3.9"
        return ClusterGate(
            release, gate, "will break", gate, "level too low", reason, remedy, source=source
        )
    reason = (
        f"the metadata.version level is {level}, and {release} requires {_LEAST_LEVEL} (3.3-IV3) "
        "or higher"
    )
    return ClusterGate(
        release, gate, "nothing seen against it", gate, "level", reason, source=source
    )


def blocks_changes(release: str) -> bool:
    """Return whether a removed configuration blocks every change to its topic (KAFKA-19851)."""
    return is_since(release, _FIRST) and not is_since(release, _UNBLOCKED)


def _configurations(seen: ClusterSeen, release: str, kind: ConfiguredKind) -> Iterator[ClusterGate]:
    gate: Gate = "topic configurations" if kind == "topic" else "broker configurations"
    is_any_gone = False
    for (configured_kind, name), users in sorted(seen.configured.items()):
        since = find_removal(kind, name, release) if configured_kind == kind else None
        if since is None:
            continue
        is_any_gone = True
        of_them = f"{users.count:,} {kind if users.count == 1 else kind + 's'}"
        have = "has" if users.count == 1 else "have"
        reason = f"{of_them} {have} this configuration set, but {since.first} does not support it"
        verdict: AuditVerdict = "will do nothing"
        evidence, source = "configuration gone", "KIP-724" if kind == "topic" else ""
        if kind == "topic" and blocks_changes(release):
            verdict, evidence, source = "will break", "configuration blocks changes", "KAFKA-19851"
            reason += (
                f"; until this configuration is deleted, {release} rejects any other change to "
                "these topics"
            )
        yield ClusterGate(
            release, gate, verdict, name, evidence, reason, _removing(kind, name),
            users.names, users.count, source,
        )  # fmt: skip
    if is_any_gone:
        return
    looked_at = seen.described.get(kind, 0)
    if seen.is_whole:
        what = "dynamic configurations" if kind == "broker" else "configurations"
        reason = f"all {what} set for {kind}s in the cluster's metadata log exist in {release}"
    elif looked_at:
        many = f"{looked_at:,} {kind if looked_at == 1 else kind + 's'}"
        reason = (
            f"captured DescribeConfigs responses for {many} contain no configuration that "
            f"{release} lacks"
        )
    else:
        reason = (
            f"neither a DescribeConfigs response for {kind}s nor the cluster's metadata was seen"
        )
        remedy = (
            f"capture the traffic of kafka-configs --describe --entity-type {kind}s --all, or read "
            "the log of __cluster_metadata"
        )
        yield ClusterGate(release, gate, "cannot say", f"{kind}s", "not seen", reason, remedy)
        return
    yield ClusterGate(
        release, gate, "nothing seen against it", f"{kind}s", "configurations", reason
    )


def _removing(kind: ConfiguredKind, name: str) -> str:
    who = "--entity-name TOPIC" if kind == "topic" else "(--entity-default or --entity-name BROKER)"
    command = f"kafka-configs --alter --entity-type {kind}s {who} --delete-config {name}"
    if kind == "broker":
        return f"remove the configuration from server.properties, or run {command}"
    return (
        f"before the upgrade, run {command}; after the upgrade, a single command must delete all "
        "removed configurations"
    )


def _old_batches(seen: ClusterSeen, release: str) -> Iterator[ClusterGate]:
    gate: Gate = "old batches"
    if seen.old_batches is None:
        return
    source = "KIP-724"
    if not seen.old_batches:
        reason = "all batches read from the logs have magic value 2"
        yield ClusterGate(
            release, gate, "nothing seen against it", "logs", "magic", reason, source=source
        )
    for topic, count in sorted(seen.old_batches.items()):
        batches = f"{count:,} {'batch' if count == 1 else 'batches'}"
        reason = f"{batches} on disk with magic 0 or 1, which {release} reads but does not write"
        yield ClusterGate(
            release, gate, "nothing seen against it", topic, "magic 0 and 1", reason,
            count=count, source=source,
        )  # fmt: skip


def _features(seen: ClusterSeen, release: str) -> Iterator[ClusterGate]:
    gate: Gate = "features"
    for feature in _FEATURES:
        offered = [key for key in feature.api_keys if stable_versions(key, release)]
        if not is_since(release, feature.since) or not offered:
            continue
        apis = tuple(f"{api_name(key)} ({key})" for key in offered)
        levels = [
            levels_of_broker.get(feature.name, 0) for levels_of_broker in seen.features.values()
        ]
        uses = Counter({key: seen.uses.get(key, 0) for key in offered}).total()
        remedy = (
            "after all brokers have been upgraded, run "
            f"kafka-features upgrade --release-version {_line(release)}"
        )
        verdict: AuditVerdict = "nothing seen against it"
        if not levels:
            reason = f"no broker reported whether {feature.name} is finalized"
            yield ClusterGate(
                release,
                gate,
                "cannot say",
                feature.name,
                "not seen",
                reason,
                remedy,
                apis,
                len(apis),
            )
            continue
        evidence = "finalized"
        reason = f"the feature level is {min(levels)}"
        if not min(levels):
            evidence = "not finalized"
            reason = (
                f"{release} offers {', '.join(apis)} and returns error 35 until the feature "
                "is finalized"
            )
            if uses:
                verdict = "will break"
                reason += f"; clients sent {uses:,} such {'request' if uses == 1 else 'requests'}"
        yield ClusterGate(
            release, gate, verdict, feature.name, evidence, reason,
            remedy if evidence == "not finalized" else "", apis, len(apis),
            "KIP-584, KIP-1022",
        )  # fmt: skip


def _line(release: str) -> str:
    return ".".join(release.split(".")[:2])
