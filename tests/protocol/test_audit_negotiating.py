"""If a client and a release share no version of an API, the audit does not say they negotiate."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from flexwire.protocol import api_name
from flexwire.protocol.apis import request_entries
from flexwire.protocol.audit import OPENING_APIS, Conduct, Party, Use, judge
from flexwire.protocol.audit.negotiation import common_versions
from flexwire.protocol.audit.software import _FACTS, ABSENT
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions
from tests.each import each

KEYS = {api_name(key): key for key in catalog().api_keys()}
RELEASES = catalog().releases
SOFTWARE = (None, "apache-kafka-java", "librdkafka", "kgo", "somebody-else")
ASKED: Any = ("here", "elsewhere", "never", "unseen")
NOTHING = "nothing seen against it"


@cache
def reads(api_key: int, release: str) -> frozenset[int]:
    """Return the versions a broker reads, according to the specs, not the audit's functions."""
    found: set[int] = set()
    for entry in request_entries(api_key):
        found |= {*entry.releases.get(release, ())}
    return frozenset(found)


@cache
def offers(api_key: int, release: str) -> frozenset[int]:
    """Return the versions that a broker offers, without the newest if it is in early access."""
    every = reads(api_key, release)
    for entry in request_entries(api_key) if every else ():
        if max(every) in entry.releases.get(release, ()):
            spec = entry.spec(max(every), release)
            if spec.latest_version_unstable and max(every) == spec.valid_versions.highest:
                return every - {max(every)}
    return every


def spoken(api_key: int, version: int) -> set[int]:
    """Return all versions that a release has, if this version is one of them."""
    found: set[int] = set()
    for release in RELEASES:
        every = reads(api_key, release)
        found |= every if version in every else set()
    return found


def has_fallback(api_key: int, software: str | None) -> bool:
    rows = [one for one in _FACTS["absent"] if api_key in one["api_keys"]]
    return any(
        one["outcome"] == "goes on" and (not one["software"] or software in one["software"])
        for one in rows
    )


def client(software: str | None) -> Party:
    return Party("a", "10.0.0.9", None, software, software and "9.9.9")


def verdicts(party: Party, release: str, *uses: Use) -> set[str]:
    return {one.verdict for one in judge(party, Conduct("client", uses), release)}


def use(name: str, version: int, asked: Any = "here", offered: Versions | None = None) -> Use:
    return Use(KEYS[name], version, 1, 0, 0, asked, offered)


@pytest.mark.long
@pytest.mark.slow
@each("api_key", [one for one in catalog().api_keys() if one != 18])
def test_nothing_is_said_only_where_a_version_is_in_common_or_a_fallback_is_documented(
    api_key: int,
) -> None:
    every = sorted(set().union(*(reads(api_key, one) for one in RELEASES)))
    wrong, silent, told = [], 0, 0
    for release in RELEASES:
        for version in every:
            if version in offers(api_key, release):
                continue
            in_common = spoken(api_key, version) & offers(api_key, release)
            for software in SOFTWARE:
                for asked in ASKED:
                    one = Use(api_key, version, 1, 0, 0, asked, Versions(0, version))
                    is_silent = verdicts(client(software), release, one) == {NOTHING}
                    asks = asked in {"here", "elsewhere"}
                    may_be = asks and (in_common or has_fallback(api_key, software))
                    silent, told = silent + is_silent, told + (not is_silent)
                    if is_silent and not may_be:
                        wrong.append((release, version, software, asked))
    assert not wrong
    # This shows that the loop checks something: an API that a release lacks is reported at least
    # once.
    if any(not reads(api_key, one) for one in RELEASES):
        assert told


@pytest.mark.parametrize(
    ("names", "software", "release", "verdict"),
    [
        # The cases in the bug report: a share consumer, KIP-848 and streams groups with older
        # brokers.
        ({"ShareGroupHeartbeat": 1, "ShareFetch": 1}, "apache-kafka-java", "3.9", "will break"),
        ({"ShareGroupHeartbeat": 1, "ShareFetch": 2}, None, "3.9", "will break"),
        ({"ShareGroupHeartbeat": 0, "ShareFetch": 0}, None, "4.4.0", "will break"),
        ({"ShareGroupHeartbeat": 1}, "apache-kafka-java", "4.0", "will break"),
        ({"ConsumerGroupHeartbeat": 1}, "apache-kafka-java", "3.6", "will break"),
        ({"ConsumerGroupHeartbeat": 0}, "apache-kafka-java", "3.6", "cannot say"),
        ({"ConsumerGroupHeartbeat": 0}, "apache-kafka-java", "3.4", "will break"),
        ({"ConsumerGroupHeartbeat": 1}, None, "3.6", "cannot say"),
        ({"StreamsGroupHeartbeat": 0}, "apache-kafka-java", "4.0", "will break"),
        ({"StreamsGroupHeartbeat": 0}, None, "4.0", "cannot say"),
        # librdkafka supports one of these versions.
        ({"ConsumerGroupHeartbeat": 1}, "librdkafka", "3.9", "will break"),
        ({"ConsumerGroupHeartbeat": 1}, "librdkafka", "4.0", NOTHING),
        ({"ConsumerGroupHeartbeat": 1}, "apache-kafka-java", "3.9", NOTHING),
        # Clients that continue to work, according to their documentation.
        ({"ConsumerGroupHeartbeat": 1}, "kgo", "3.6", NOTHING),
        ({"GetTelemetrySubscriptions": 0, "PushTelemetry": 0}, None, "3.6", NOTHING),
        ({"DescribeTopicPartitions": 0}, "apache-kafka-java", "3.6", NOTHING),
        ({"DescribeCluster": 1}, "apache-kafka-java", "2.7", NOTHING),
        ({"DescribeCluster": 1}, None, "2.7", "cannot say"),
        ({"DescribeQuorum": 1}, "apache-kafka-java", "2.6", "cannot say"),
        # Cases in which negotiation helps.
        ({"Fetch": 18, "Produce": 13, "Metadata": 13}, "apache-kafka-java", "2.8", NOTHING),
    ],
)
def test_judging_backwards(
    names: dict[str, int], software: str | None, release: str, verdict: str
) -> None:
    uses = [use("Metadata", 9), *(use(name, version) for name, version in names.items())]
    assert verdicts(client(software), release, *uses) == {verdict}


@pytest.mark.parametrize("release", RELEASES)
def test_software_that_does_not_heed_what_brokers_offer_never_negotiates(release: str) -> None:
    """Sarama before 1.46.0 asks for ApiVersions, but sends the versions of Config.Version."""
    older = Party("a", "10.0.0.9", None, "sarama", "v1.45.2")
    newer = Party("a", "10.0.0.9", None, "sarama", "v1.46.0")
    silent, negotiated = [], 0
    for name, api_key in KEYS.items():
        for version in {one for every in RELEASES for one in reads(api_key, every)}:
            if api_key == 18 or version in offers(api_key, release):
                continue
            one = use(name, version, offered=Versions(0, version))
            negotiated += verdicts(newer, release, one) == {NOTHING}
            if NOTHING in verdicts(older, release, one):
                silent.append((name, version))
    assert not silent
    assert negotiated or release == RELEASES[-1]


def test_the_remedy_of_a_version_that_is_too_new_does_not_send_the_client_further_up() -> None:
    older = Party("a", "10.0.0.9", None, "sarama", "v1.45.2")
    (found,) = judge(older, Conduct("client", (use("Fetch", 13),)), "2.8")
    assert (found.verdict, found.evidence) == ("will break", "does not negotiate")
    assert found.remedy == (
        "change Config.Version, Config.ApiVersionsRequest to a value that allows Fetch 0-12 "
        "(Sarama), or upgrade to Sarama 1.46.0 or newer, which uses only versions that the broker "
        "offers, or use the client only with Kafka 3.1.2 or newer"
    )
    (found,) = judge(client(None), Conduct("client", (use("Fetch", 13, "never"),)), "2.8")
    assert found.remedy.startswith("if a setting pins the version, remove that setting (")
    assert found.remedy.endswith("), or use the client only with Kafka 3.1.2 or newer")


def test_the_reason_says_what_is_missing_and_the_remedy_what_to_do() -> None:
    party = client("apache-kafka-java")
    (found,) = judge(party, Conduct("client", (use("ConsumerGroupHeartbeat", 1),)), "3.4")
    assert found.reason.startswith(
        "Kafka 3.4.1 does not support this API, and a consumer with group"
    )
    assert (
        found.remedy
        == "set group.protocol=classic, or use the client only with Kafka 3.7.2 or newer"
    )
    assert found.source.startswith("KIP-848, ")
    (found,) = judge(party, Conduct("client", (use("ShareFetch", 0),)), "4.4.0")
    assert "offers versions 1-2 of this API, but no release reads both version 0" in found.reason
    assert found.remedy == "upgrade the client to a release that speaks ShareFetch 1-2"
    (found,) = judge(party, Conduct("client", (use("ShareFetch", 1),)), "3.9")
    assert "only with unstable.api.versions.enable=true" in found.reason
    assert found.remedy == "use the client only with Kafka 4.1.2 or newer"


def test_what_a_client_does_without_is_told_where_nothing_is_against_it() -> None:
    uses = (use("Fetch", 13), use("PushTelemetry", 0), use("GetTelemetrySubscriptions", 0))
    (found,) = judge(client(None), Conduct("client", uses), "3.6")
    assert found.verdict == NOTHING
    assert (
        "; without GetTelemetrySubscriptions and PushTelemetry, a client pushes no" in found.reason
    )
    (found,) = judge(client(None), Conduct("client", uses), "3.9")
    assert "without" not in found.reason


def test_a_version_that_is_newer_than_the_catalog_comes_with_the_newest_ones() -> None:
    newest = RELEASES[-1]
    above = max(reads(KEYS["Fetch"], newest)) + 7
    assert verdicts(client(None), newest, use("Fetch", above)) == {NOTHING}
    one = use("ShareFetch", max(reads(KEYS["ShareFetch"], newest)) + 7)
    assert not common_versions(client(None), one, "4.0.2")
    assert verdicts(client(None), "4.0.2", one) == {"will break"}


def test_each_fallback_has_a_source_a_day_and_apis_that_clients_use() -> None:
    for one in ABSENT:
        assert one.sources
        assert one.checked
        assert one.what
        assert set(one.api_keys) <= set(KEYS.values()) - OPENING_APIS
        assert one.outcome in {"goes on", "fails"}
    # No client gets both verdicts about the same API.
    for key in {key for one in ABSENT for key in one.api_keys}:
        named = [name for one in ABSENT if key in one.api_keys for name in one.software]
        assert len(named) == len(set(named))
