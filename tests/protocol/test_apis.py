"""Names of APIs and verdicts agree with known facts about Kafka 4."""

from __future__ import annotations

import pytest

from flexwire.errors import UnknownMessageError
from flexwire.protocol import accepted, api_name, verdict
from flexwire.schema.catalog import catalog

# Removed in 4.0 by KIP-896 and still gone; JoinGroup 0-1 came back in 4.0.1 (KAFKA-19444).
REMOVED = {
    "Produce": range(3),
    "Fetch": range(4),
    "ListOffsets": range(1),
    "OffsetCommit": range(2),
    "OffsetFetch": range(1),
    "CreateTopics": range(2),
    "DeleteTopics": range(1),
    "OffsetForLeaderEpoch": range(2),
    "DescribeAcls": range(1),
    "CreateAcls": range(1),
    "DeleteAcls": range(1),
    "DescribeConfigs": range(1),
    "CreateDelegationToken": range(1),
    "LeaderAndIsr": range(8),
    "ControlledShutdown": range(4),
}


def api_key_of(name: str) -> int:
    api_key = catalog().entry(f"{name}Request").api_key
    assert api_key is not None
    return api_key


@pytest.mark.parametrize("name", REMOVED)
def test_what_kafka_4_removed(name: str) -> None:
    api_key = api_key_of(name)
    newest = catalog().entry(f"{name}Request").versions.highest
    removed = [v for v in range(newest + 1) if verdict(api_key, v) == "removed"]
    assert removed == list(REMOVED[name])
    assert all(verdict(api_key, version, "3.8.1") == "deprecated" for version in removed[:4])


@pytest.mark.parametrize(("name", "version"), [("JoinGroup", 0), ("Metadata", 0), ("Produce", 3)])
def test_what_was_to_go_and_stayed(name: str, version: int) -> None:
    assert verdict(api_key_of(name), version) == "accepted"


def test_versions_newer_than_a_release_are_unknown_to_it() -> None:
    assert verdict(api_key_of("Fetch"), 17, "2.4.1") == "unknown"
    assert verdict(api_key_of("ShareFetch"), 0, "2.4.1") == "unknown"
    assert not accepted(api_key_of("Fetch"), 17, "2.4.1")
    assert accepted(api_key_of("Fetch"), 17, "3.9")


def test_a_verdict_holds_over_a_change_of_name() -> None:
    # Until 4.0, v0 was called ListClientMetricsResources; its name is now ListConfigResources.
    assert verdict(74, 0, "3.8.1") == "accepted"
    assert verdict(74, 0) == "accepted"
    assert verdict(74, 1, "3.8.1") == "unknown"


def test_unknown_api_keys_and_releases() -> None:
    assert verdict(999, 0) == "unknown"
    with pytest.raises(UnknownMessageError, match=r"no release '1\.0'"):
        verdict(0, 0, "1.0")
    with pytest.raises(UnknownMessageError, match="999"):
        api_name(999)


def test_every_api_key_has_a_name_of_its_own() -> None:
    names = [api_name(api_key) for api_key in catalog().api_keys()]
    assert len(set(names)) == len(names) > 80
    assert not any(name.endswith("Request") for name in names)
    assert (api_name(0), api_name(2), api_name(56)) == ("Produce", "ListOffsets", "AlterPartition")
