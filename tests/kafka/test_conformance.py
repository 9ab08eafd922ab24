"""`flexwire conform` finds no unexplained deviation in Apache Kafka, and changes nothing there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.client import Broker, Cluster
from flexwire.conformance import Asking, CaseVerdict, ConformanceRun, Kind, conform
from flexwire.conformance.questions import QUESTIONS
from flexwire.conformance.rules import NOT_JUDGED_CODES, QUIRKS, SEEN_CODES
from flexwire.protocol.audit import fitting_releases
from flexwire.protocol.error_codes import RETRIABLE
from tests.kafka.calling import Secured, secured
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.kafka

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
SECONDS = 5.0
"""How long a broker may take to answer; 3.9 and 4.0 never answer two requests (`QUIRKS`)."""
TOPIC, GROUP = "orders", "billing"
# By release: the minimum number of cases, and the APIs that are not judged because there is no
# authorizer or because KIP-848 groups are disabled.
LEAST = {"3.9.2": 700, "4.0.2": 700, "4.4.0": 800}
NOT_JUDGED = {
    "3.9.2": {"DescribeAcls", "ConsumerGroupDescribe", "OffsetFetch"},
    "4.0.2": {"DescribeAcls"},
    "4.4.0": {"DescribeAcls"},
}


@pytest.fixture(scope="module", params=VERSIONS)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Yield a release and the address of its broker, which has a topic and a group."""
    directory = tmp_path_factory.mktemp(f"conform-{request.param}")
    with broker(request.param, directory) as address:
        with Cluster(address) as cluster:
            topics = [{"name": TOPIC, "numPartitions": 2, "replicationFactor": 1}]
            cluster.call("CreateTopics", {"topics": topics, "timeoutMs": 60_000})
            commit = {
                "groupId": GROUP,
                "topics": [
                    {
                        "name": TOPIC,
                        "partitions": [{"partitionIndex": 0, "committedOffset": 7}],
                    }
                ],
            }
            answer = cluster.call("OffsetCommit", commit, 8, to=f"group:{GROUP}", retries=5)
            assert not answer.error_codes
        yield request.param, address


def state(address: str) -> dict[str, Any]:
    """Return a cluster's topics, groups, transactions, configurations and producers."""
    with Broker.connect(address) as asked:
        found: dict[str, Any] = {"releases": fitting_releases(asked.offered)}
        topics = asked.call("Metadata", {"topics": None}).to_json() or {}
        names = [topic["name"] for topic in topics["topics"]]
        resources = [{"resourceType": 2, "resourceName": name} for name in names]
        resources += [{"resourceType": 4, "resourceName": node} for node in ("", "1")]
        # Null means all configurations; the default, an empty list, means none.
        body = {"resources": [{**one, "configurationKeys": None} for one in resources]}
        about = {"topics": [{"name": name, "partitionIndexes": [0]} for name in names]}
        group = {"groups": [{"groupId": GROUP, "memberId": None, "memberEpoch": -1}]}
        for name, asks in (
            ("ListGroups", {}),
            ("ListTransactions", {}),
            ("DescribeConfigs", body),
            ("DescribeProducers", about),
            ("DescribeUserScramCredentials", {"users": None}),
            ("DescribeClientQuotas", {"components": [], "strict": False}),
            ("OffsetFetch", {"groups": [{**group["groups"][0], "topics": None}]}),
        ):
            version = 9 if name == "OffsetFetch" else "latest"
            found[name] = asked.call(name, asks, version).to_json()
        found["topics"] = topics
        found["features"] = asked.call("ApiVersions").to_json() or {}
        # This number grows with the metadata log, which the controller extends by itself.
        del found["features"]["finalizedFeaturesEpoch"]
    return found


@pytest.fixture(scope="module")
def seen(kafka: tuple[str, str]) -> tuple[ConformanceRun, dict[str, Any], dict[str, Any]]:
    """Run all cases; return the result, and the state of the cluster before and after the run."""
    release, address = kafka
    before = state(address)
    run = conform(address, Asking(release, hostile=True), timeout=SECONDS)
    return run, before, state(address)


def test_kafka_has_no_unexplained_deviation(
    seen: tuple[ConformanceRun, dict[str, Any], dict[str, Any]],
) -> None:
    run, _, _ = seen
    assert [one.case.name for one in run.deviations] == []
    assert run.counts[CaseVerdict.DIFFERS] == 0
    assert run.as_kafka == run.judged
    assert len(run.results) == len(run.plan.cases) >= LEAST[run.release]
    assert run.skipped == ()
    assert {one.case.kind for one in run.results} == {*Kind}


def test_the_figures_are_those_of_the_page(
    seen: tuple[ConformanceRun, dict[str, Any], dict[str, Any]],
) -> None:
    run, _, _ = seen
    quirks = run.counts[CaseVerdict.QUIRK]
    row = f"| {run.release} | {len(run.results)} | {run.judged} | {run.as_kafka} | {quirks} |"
    assert row in PAGE.read_text(encoding="utf-8").splitlines()


def test_what_is_not_judged_is_what_the_broker_does_not_have(
    seen: tuple[ConformanceRun, dict[str, Any], dict[str, Any]],
) -> None:
    run, _, _ = seen
    found = {one.case.api_name for one in run.results if one.verdict is CaseVerdict.NOT_JUDGED}
    assert found == NOT_JUDGED[run.release]


def test_error_codes_are_those_that_were_seen(
    seen: tuple[ConformanceRun, dict[str, Any], dict[str, Any]],
) -> None:
    run, _, _ = seen
    assert {one.remark for one in run.results if one.verdict is CaseVerdict.AS_KAFKA} == {""}
    codes: dict[str, set[int]] = {}
    for one in run.results:
        codes.setdefault(one.case.api_name, set()).update(one.error_codes - NOT_JUDGED_CODES)
    unstable = {name: found - RETRIABLE for name, found in codes.items()}
    for name, found in unstable.items():
        assert found <= SEEN_CODES.get(name, frozenset()), name
    for name in ("DescribeDelegationToken", "DescribeUserScramCredentials", "SaslHandshake"):
        assert unstable[name] == SEEN_CODES[name]


def test_each_quirk_of_the_release_is_met(
    seen: tuple[ConformanceRun, dict[str, Any], dict[str, Any]],
) -> None:
    run, _, _ = seen
    met = {
        (one.case.api_name, one.case.version, one.remark)
        for one in run.results
        if one.verdict is CaseVerdict.QUIRK
    }
    assert met == {
        (quirk.api_name, version, quirk.reason)
        for quirk in QUIRKS
        if run.release.startswith(quirk.releases) and quirk.api_name in QUESTIONS
        for version in quirk.versions
    }


def test_the_cluster_is_as_it_was(
    seen: tuple[ConformanceRun, dict[str, Any], dict[str, Any]],
) -> None:
    _, before, after = seen
    assert after == before
    assert {topic["name"] for topic in after["topics"]["topics"]} == {TOPIC, "__consumer_offsets"}
    assert [group["groupId"] for group in after["ListGroups"]["groups"]] == [GROUP]


def test_a_new_cluster_gets_no_internal_topic(tmp_path: Any) -> None:
    """A run creates no topics, not even the coordinators' topics."""
    with broker(VERSIONS[-1], tmp_path) as address:
        conform(address, Asking(VERSIONS[-1]), timeout=SECONDS)
        assert state_of_topics(address) == []


def state_of_topics(address: str) -> list[Any]:
    with Broker.connect(address) as asked:
        form = asked.call("Metadata", {"topics": None}).to_json() or {}
    found: list[Any] = form["topics"]
    return found


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(VERSIONS[-1], tmp_path_factory.mktemp("conform-secured")) as found:
        yield found


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_secured_listener_is_reached_as_call_reaches_it(secure: Secured, mechanism: str) -> None:
    given = ["conform", secure.secure, "--command-config", str(secure.config(mechanism))]
    ran = CliRunner().invoke(app, [*given, "--hostile", "--write", "--format", "json"])
    assert ran.exit_code == 0, ran.output
    form = json.loads(ran.stdout)
    assert form["asKafka"] == form["judged"] >= LEAST[VERSIONS[-1]]
    [left] = form["leftBehind"]
    assert left.startswith("transactional id ")
