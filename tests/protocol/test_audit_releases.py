"""Clients that send requests that only brokers send, and the release that ApiVersions shows."""

from __future__ import annotations

import pytest

from flexwire.protocol import api_name
from flexwire.protocol.audit import (
    audited_releases,
    fitting_releases,
    newest_version,
    refusal,
    role_of,
)
from flexwire.protocol.audit.evidence import read_versions, stable_versions
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions

KEYS = {api_name(key): key for key in catalog().api_keys()}


def keys(*names: str) -> set[int]:
    return {KEYS[name] for name in names}


@pytest.mark.parametrize(
    ("names", "role"),
    [
        (["ApiVersions", "LeaderAndIsr", "UpdateMetadata", "StopReplica"], "controller"),
        (["ApiVersions", "Vote", "Fetch", "FetchSnapshot"], "controller"),
        (["ControlledShutdown"], "broker"),
        (["ApiVersions", "AlterPartition"], "broker"),
        (["ApiVersions", "BrokerRegistration", "BrokerHeartbeat"], "broker"),
        (["SaslHandshake", "ApiVersions", "SaslAuthenticate", "WriteTxnMarkers"], "broker"),
        (["ReadShareGroupState"], "broker"),
        (["Metadata", "DescribeProducers", "WriteTxnMarkers"], "client"),
        (["Metadata", "Produce", "Fetch", "JoinGroup"], "client"),
        (["DescribeQuorum", "AddRaftVoter", "UnregisterBroker"], "client"),
        (["ApiVersions"], "client"),
        ([], "client"),
    ],
)
def test_what_is_sent_tells_whose_it_is(names: list[str], role: str) -> None:
    assert role_of(keys(*names)) == role


@pytest.mark.parametrize(
    ("sent", "role"),
    [
        ({"AddPartitionsToTxn": 3}, "client"),
        ({"AddPartitionsToTxn": 4}, "broker"),
        ({"ApiVersions": 4, "AddPartitionsToTxn": 5}, "broker"),
        ({"InitProducerId": 5, "AddPartitionsToTxn": 3, "EndTxn": 5, "Produce": 12}, "client"),
    ],
)
def test_a_version_tells_whose_a_request_is(sent: dict[str, int], role: str) -> None:
    highest = {KEYS[name]: version for name, version in sent.items()}
    assert role_of(highest, highest=highest) == role


def test_a_fetch_of_a_replica_is_a_broker_s() -> None:
    assert role_of(keys("ApiVersions", "Fetch"), is_replica=True) == "broker"
    assert role_of({999}) == "client"


def answered(release: str, listener: str) -> dict[int, Versions]:
    """Return the versions a broker of that release offers on a listener, according to its specs."""
    found = {}
    for key in catalog().api_keys():
        versions = stable_versions(key, release)
        for entry in map(catalog().entry, catalog().names()):
            if entry.api_key == key and entry.type.value == "request" and versions:
                spec = entry.releases.get(release) and entry.spec(versions.highest, release)
                if spec and listener in spec.listeners:
                    found[key] = versions
    return found


RELEASES = [one for one in catalog().releases if one >= "2.8"]


@pytest.mark.parametrize("release", RELEASES)
def test_brokers_are_known_by_their_offers(release: str) -> None:
    for listener in ("broker", "zkBroker"):
        offered = answered(release, listener)
        if len(offered) > 40:
            fitting = fitting_releases(offered)
            assert release in fitting
            # 3.4 has the same versions as 3.3.
            assert set(fitting) <= {release, "3.3.2", "3.4.1"}


def test_4_x_advertises_more_of_produce_than_it_reads() -> None:
    offered = answered("4.3.1", "broker") | {0: Versions(0, 13)}
    assert fitting_releases(offered) == ("4.3.1",)
    assert read_versions(0, "4.3.1") == Versions(3, 13)


def test_a_vendor_s_own_apis_do_not_matter_and_its_own_versions_fit_nothing() -> None:
    offered = answered("3.9.2", "broker")
    assert fitting_releases(offered | {10_001: Versions(0, 2)}) == ("3.9.2",)
    assert fitting_releases(offered | {1: Versions(0, 99)}) == ()
    assert fitting_releases({10_001: Versions(0, 2)}) == ()
    assert fitting_releases({}) == ()


def test_unstable_versions_are_read_but_not_offered() -> None:
    assert (read_versions(22, "4.4.0"), stable_versions(22, "4.4.0")) == (
        Versions(0, 6), Versions(0, 5),
    )  # fmt: skip
    assert newest_version(22, "4.4.0") == 5
    assert newest_version(KEYS["ShareFetch"], "3.9.2") is None


@pytest.mark.parametrize(
    ("brokers", "releases"),
    [
        (("2.8.2",), ("2.8.2", "3.9.2", "4.4.0")),
        (("3.0.2",), ("3.9.2", "4.4.0")),
        (("4.0.2", "4.1.2"), ("4.4.0",)),
        (("3.9.2", "4.0.0"), ("3.9.2", "4.4.0")),
        ((), ("3.9.2", "4.4.0")),
        (("9.9",), ("3.9.2", "4.4.0")),
    ],
)
def test_every_major_from_the_brokers_on_is_judged_by(
    brokers: tuple[str, ...], releases: tuple[str, ...]
) -> None:
    assert audited_releases(brokers) == releases


def test_a_version_that_came_after_a_release_was_not_refused_there() -> None:
    assert refusal(1, 17, "2.4.1") == (None, None)
    assert refusal(1, 17, "4.0.2") == (None, None)
