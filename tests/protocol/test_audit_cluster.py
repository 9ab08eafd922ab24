"""In each release, each kind of evidence about a cluster leads to the right verdict."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from flexwire.parties import VERDICTS
from flexwire.protocol.audit import (
    ClusterSeen,
    Conduct,
    ConfigurationUse,
    NameSample,
    Party,
    Use,
    judge,
    judge_cluster,
)
from flexwire.protocol.audit.cluster import blocks_changes
from flexwire.protocol.audit.evidence import stable_versions
from flexwire.schema.catalog import catalog, release_order

FORMAT, OLD_FORMAT = "message.format.version", "log.message.format.version"
KRAFT = {"1": {"metadata.version": 21}}
NEWEST = {"metadata.version": 33, "group.version": 1, "share.version": 1, "streams.version": 1}
ONE = NameSample(("orders",), 1)
NOTHING, WILL, NOT_SAID = "nothing seen against it", "will break", "cannot say"

# The gate and its subject, the observation, the release, and the verdict.
CASES: list[tuple[str, str, dict[str, Any], str, str, str]] = [
    ("ZooKeeper", "the cluster", {}, "4.4.0", NOT_SAID, "not seen"),
    ("ZooKeeper", "the cluster", {"uses": {6: 2}}, "4.4.0", WILL, "ZooKeeper requests"),
    ("ZooKeeper", "the cluster", {"uses": {6: 2}, "is_whole": True}, "4.0.0", WILL,
     "ZooKeeper requests"),
    ("ZooKeeper", "the cluster", {"offered": frozenset({0, 4})}, "4.4.0", WILL,
     "ZooKeeper APIs offered"),
    ("ZooKeeper", "the cluster", {"offered": frozenset({0, 1})}, "4.4.0", NOTHING, "not offered"),
    ("ZooKeeper", "the cluster", {"features": KRAFT}, "4.4.0", NOTHING, "KRaft"),
    ("ZooKeeper", "the cluster", {"is_whole": True}, "4.4.0", NOTHING, "KRaft"),
    ("metadata.version", "metadata.version", {}, "4.4.0", NOT_SAID, "not seen"),
    ("metadata.version", "metadata.version", {"features": KRAFT}, "4.4.0", NOTHING, "level"),
    ("metadata.version", "metadata.version", {"features": {"1": {"metadata.version": 7}}},
     "4.0.0", NOTHING, "level"),
    ("metadata.version", "metadata.version", {"features": {"1": {"metadata.version": 6}}},
     "4.0.0", WILL, "level too low"),
    ("metadata.version", "metadata.version",
     {"features": {**KRAFT, "2": {"metadata.version": 1}}}, "4.4.0", WILL, "level too low"),
    ("topic configurations", "topics", {}, "4.4.0", NOT_SAID, "not seen"),
    ("topic configurations", "topics", {"described": {"topic": 3}}, "4.4.0", NOTHING,
     "configurations"),
    ("topic configurations", "topics", {"is_whole": True}, "4.4.0", NOTHING, "configurations"),
    ("topic configurations", FORMAT, {"configured": {("topic", FORMAT): ONE}}, "4.4.0",
     "will do nothing", "configuration gone"),
    ("topic configurations", FORMAT, {"configured": {("topic", FORMAT): ONE}}, "4.0.2", WILL,
     "configuration blocks changes"),
    ("broker configurations", "brokers", {"described": {"topic": 3}}, "4.4.0", NOT_SAID,
     "not seen"),
    ("broker configurations", OLD_FORMAT, {"configured": {("broker", OLD_FORMAT): ONE}}, "4.0.2",
     "will do nothing", "configuration gone"),
    ("old batches", "logs", {"old_batches": {}}, "4.4.0", NOTHING, "magic"),
    ("old batches", "orders", {"old_batches": {"orders": 3}}, "4.4.0", NOTHING, "magic 0 and 1"),
    ("features", "group.version", {}, "4.4.0", NOT_SAID, "not seen"),
    ("features", "group.version", {"features": KRAFT}, "4.4.0", NOTHING, "not finalized"),
    ("features", "share.version", {"features": KRAFT, "uses": {76: 1}}, "4.4.0", WILL,
     "not finalized"),
    ("features", "share.version", {"features": {"1": NEWEST}, "uses": {76: 1}}, "4.4.0", NOTHING,
     "finalized"),
]  # fmt: skip


@pytest.mark.parametrize(("gate", "subject", "seen", "release", "verdict", "evidence"), CASES)
def test_a_gate_says_what_its_evidence_says(
    gate: str, subject: str, seen: dict[str, Any], release: str, verdict: str, evidence: str
) -> None:
    found = judge_cluster(ClusterSeen(**seen), release)
    told = [
        (one.verdict, one.evidence) for one in found if (one.gate, one.subject) == (gate, subject)
    ]
    assert told == [(verdict, evidence)]


def test_every_gate_is_told_of_on_every_release_from_4_on_and_none_before() -> None:
    gates = {"ZooKeeper", "metadata.version", "topic configurations", "broker configurations"}
    for release, whole in product(catalog().releases, (False, True)):
        found = judge_cluster(ClusterSeen(is_whole=whole), release)
        is_judged = release_order(release) >= release_order("4.0.0")
        assert ({one.gate for one in found} >= gates) == is_judged
        assert bool(found) == is_judged
        assert [one.verdict for one in found] == sorted(
            (one.verdict for one in found), key=VERDICTS.index
        )
        # A gate that was not checked is not counted as passed.
        for one in found:
            assert one.reason
            assert (one.verdict != NOT_SAID) or one.remedy


@pytest.mark.parametrize("release", ["4.0.0-rc1", "4.5.0-SNAPSHOT", "5.0.0", "one of mine"])
def test_a_release_of_somebody_s_own_catalog_has_gates_too(release: str) -> None:
    seen = ClusterSeen(features=KRAFT, configured={("topic", FORMAT): ONE}, is_whole=True)
    found = {one.gate: one.verdict for one in judge_cluster(seen, release)}
    assert found["metadata.version"] == NOTHING
    assert found["topic configurations"] == (WILL if "rc1" in release else "will do nothing")


def test_a_feature_is_told_of_where_its_apis_are_offered() -> None:
    for release in catalog().releases:
        found = judge_cluster(ClusterSeen(features=KRAFT), release)
        for one in found:
            if one.gate == "features":
                keys = [int(name.rpartition("(")[2].rstrip(")")) for name in one.names]
                assert keys
                assert all(stable_versions(key, release) for key in keys)
                assert one.count == len(keys)


def test_which_releases_a_removed_configuration_blocks() -> None:
    """Measured with `tests/kafka/test_upgrade_gate.py`, and once by hand on 4.2.0 and 4.3.0."""
    blocking = [one for one in catalog().releases if blocks_changes(one)]
    assert blocking == ["4.0.0", "4.0.2", "4.1.2"]
    assert (blocks_changes("4.2.0"), blocks_changes("4.3.0")) == (True, False)


CREATE, ALTER, ALTER_SOME = 19, 33, 44


def conduct(*configured: ConfigurationUse, version: int = 5) -> Conduct:
    uses = tuple(
        Use(one, version if one == CREATE else 1, 4, 10, 20, "here") for one in (CREATE, ALTER_SOME)
    )
    return Conduct("client", uses, configured=frozenset(configured))


@pytest.mark.parametrize(
    ("configured", "release", "verdict"),
    [
        (ConfigurationUse("topic", CREATE, FORMAT), "4.4.0", WILL),
        (ConfigurationUse("topic", ALTER_SOME, FORMAT), "4.0.0", WILL),
        (ConfigurationUse("broker", ALTER_SOME, OLD_FORMAT), "4.4.0", "will do nothing"),
        (ConfigurationUse("topic", CREATE, FORMAT), "3.9.2", None),
        (ConfigurationUse("topic", CREATE, "retention.ms"), "4.4.0", None),
        # A topic may have the same name as a broker.
        (ConfigurationUse("broker", ALTER_SOME, FORMAT), "4.4.0", None),
    ],
)
def test_a_client_that_sets_what_is_gone_is_told_of(
    configured: ConfigurationUse, release: str, verdict: str | None
) -> None:
    found = judge(Party("admin", "10.0.0.1"), conduct(configured), release)
    told = [one for one in found if one.evidence.startswith("configuration")]
    assert [one.verdict for one in told] == ([] if verdict is None else [verdict])
    for one in told:
        assert configured.name in one.reason
        assert (one.requests, one.first_us, one.last_us) == (4, 10, 20)
    # A setting without an effect does not show whether something breaks.
    assert (NOTHING in {one.verdict for one in found}) == (verdict != WILL)
