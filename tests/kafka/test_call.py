"""`flexwire call` works with real brokers: SASL over TLS, all routes, every read-only API."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client import Broker, Cluster, Login, Security
from flexwire.client.broker import usable_versions
from flexwire.client.config import read_client_config
from flexwire.client.write_requests import READING
from flexwire.errors import CallError, LoginError
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.audit import fitting_releases
from flexwire.versions import Versions
from tests.kafka.calling import PASSWORD, SCRAM, Secured, secured, separate
from tools.broker import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.kafka

MECHANISMS = ["PLAIN", *SCRAM]
TOPIC, GROUP = "orders-eu", "billing"
# The body for each API whose empty body gets an empty answer or no answer.
BODIES: dict[str, dict[str, Any]] = {
    "ConsumerGroupDescribe": {"groupIds": [GROUP]},
    "DescribeConfigs": {"resources": [{"resourceType": 2, "resourceName": TOPIC}]},
    "DescribeGroups": {"groups": [GROUP]},
    "DescribeProducers": {"topics": [{"name": TOPIC, "partitionIndexes": [0]}]},
    "DescribeQuorum": {
        "topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]
    },
    "DescribeTopicPartitions": {"topics": [{"name": TOPIC}], "responsePartitionLimit": 9},
    "DescribeTransactions": {"transactionalIds": ["t"]},
    "FindCoordinator": {"keyType": 0, "coordinatorKeys": [GROUP]},
    "ListOffset": {"topics": [{"name": TOPIC, "partitions": [{"timestamp": -1}]}]},
    "ListOffsets": {"topics": [{"name": TOPIC, "partitions": [{"timestamp": -1}]}]},
    "Metadata": {"topics": [{"name": TOPIC}], "allowAutoTopicCreation": False},
    "OffsetFetch": {"groups": [{"groupId": GROUP, "memberEpoch": -1}]},
    "OffsetForLeaderEpoch": {
        "topics": [{"topic": TOPIC, "partitions": [{"partition": 0, "leaderEpoch": 0}]}]
    },
    "ShareGroupDescribe": {"groupIds": [GROUP]},
    "StreamsGroupDescribe": {"groupIds": [GROUP]},
}
# The group, the transaction and the authorizer do not exist; the connection is authenticated.
ERRORS = {
    "ConsumerGroupDescribe": "GROUP_ID_NOT_FOUND",
    "DescribeAcls": "SECURITY_DISABLED",
    "DescribeGroups": "GROUP_ID_NOT_FOUND",
    "DescribeTransactions": "TRANSACTIONAL_ID_NOT_FOUND",
    "SaslAuthenticate": "ILLEGAL_SASL_STATE",
    "SaslHandshake": "ILLEGAL_SASL_STATE",
    "ShareGroupDescribe": "GROUP_ID_NOT_FOUND",
    "StreamsGroupDescribe": "GROUP_ID_NOT_FOUND",
}
# APIs that need a metrics plug-in, and APIs that came with share groups and streams groups.
_LATER = {
    "DescribeShareGroupOffsets", "GetTelemetrySubscriptions", "ReadShareGroupStateSummary",
    "ShareGroupDescribe", "StreamsGroupDescribe",
}  # fmt: skip
NOT_OFFERED = {
    "3.9.2": _LATER,
    "4.0.2": _LATER,
    "4.4.0": {"GetTelemetrySubscriptions"},
}

# The versions of Produce that the broker reads, although it offers others.
PRODUCED = {"3.9.2": Versions(0, 11), "4.0.2": Versions(3, 12), "4.4.0": Versions(3, 13)}


@pytest.fixture(scope="module", params=VERSIONS)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    with secured(request.param, tmp_path_factory.mktemp(request.param)) as made:
        topic = {"name": TOPIC, "numPartitions": 2, "replicationFactor": 1}
        with Broker.connect(made.plain) as broker:
            answer = broker.call("CreateTopics", {"topics": [topic]})
        assert not answer.error_codes
        yield made


@pytest.fixture
def cluster(kafka: Secured) -> Iterator[Cluster]:
    """Start the cluster with SASL and TLS."""
    config = read_client_config(kafka.config("SCRAM-SHA-512"))
    with Cluster(kafka.secure, config.security) as made:
        yield made


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "flexwire", "call", *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_command_logs_in_with_a_client_s_own_file(kafka: Secured, mechanism: str) -> None:
    config = str(kafka.config(mechanism, acks="all"))
    body = json.dumps(BODIES["Metadata"])
    done = command(kafka.secure, "Metadata", body, "-V", "12", "--command-config", config)
    assert done.returncode == 0, done.stderr
    [broker] = json.loads(done.stdout)["brokers"]
    assert f"{broker['host']}:{broker['port']}" == kafka.secure
    assert done.stderr == f"{config}: not used: acks\n"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused(kafka: Secured, mechanism: str) -> None:
    trusts = read_client_config(kafka.config(mechanism)).security.context
    for name, password in (("alice", "mistaken"), ("bob", PASSWORD)):
        security = Security(trusts, Login(mechanism, name, password))
        with pytest.raises(LoginError, match="SASL_AUTHENTICATION_FAILED") as caught:
            Broker.connect(kafka.secure, security)
        assert password not in str(caught.value)


def test_a_delegation_token_logs_in(kafka: Secured, cluster: Cluster) -> None:
    token: Any = cluster.call("CreateDelegationToken", {"maxLifetimeMs": 60_000}).response
    login = Login(
        "SCRAM-SHA-256", token.token_id, base64.b64encode(token.hmac).decode(), is_token=True
    )
    trusts = read_client_config(kafka.config("PLAIN")).security.context
    # The broker learns about the new object from the metadata log, a moment later.
    for left in range(50, -1, -1):
        try:
            broker = Broker.connect(kafka.secure, Security(trusts, login))
        except LoginError:
            if not left:
                raise
            time.sleep(0.1)
        else:
            break
    with broker:
        assert broker.call("ListGroups").response is not None


def test_what_listens_otherwise_is_worded(kafka: Secured) -> None:
    trusts = read_client_config(kafka.config("PLAIN")).security.context
    with pytest.raises(CallError, match="cannot start TLS"):
        Broker.connect(kafka.plain, Security(trusts))
    with pytest.raises(CallError, match="a TLS alert"), Broker.connect(kafka.secure) as broker:
        broker.call("Metadata")
    # Without SASL, the listener accepts no requests.
    with Broker.connect(kafka.secure, Security(trusts)) as broker:
        assert broker.offered
        with pytest.raises(CallError, match="closed the connection without an answer"):
            broker.call("Metadata")


def test_a_broker_s_release_is_known_by_its_versions(kafka: Secured, cluster: Cluster) -> None:
    offered = cluster.broker().offered
    assert fitting_releases(offered) == (kafka.release,)
    assert offered[0].lowest == 0
    assert usable_versions(0, offered) == PRODUCED[kafka.release]
    if kafka.release != "3.9.2":
        with pytest.raises(CallError, match="closed the connection without an answer"):
            cluster.call("Produce", {}, 2)


ROUTES = ["any", "1", f"leader:{TOPIC}-1", f"group:{GROUP}", "transaction:t", "controller"]


@pytest.mark.parametrize("to", ROUTES)
def test_every_route_leads_there(kafka: Secured, cluster: Cluster, to: str) -> None:
    # The coordinators' topics are created on first use, which takes a while.
    answer = cluster.call("DescribeCluster", to=to, retries=8)
    assert str(answer.broker) == kafka.secure


def test_the_coordinator_of_a_share_partition_is_found(kafka: Secured, cluster: Cluster) -> None:
    described: Any = cluster.call("Metadata", BODIES["Metadata"]).to_json()
    to = f"share:{GROUP}:{described['topics'][0]['topicId']}:0"
    # In 4.0 share groups are early access, and disabled.
    if kafka.release < "4.1":
        with pytest.raises(CallError, match="does not know the coordinator of share"):
            cluster.broker(to)
    else:
        assert str(cluster.call("DescribeCluster", to=to, retries=8).broker) == kafka.secure


@pytest.mark.parametrize("to", ["any", "1", "controller"])
def test_controllers_are_asked_on_their_own_listener(kafka: Secured, to: str) -> None:
    done = command(
        kafka.controllers, "DescribeQuorum", json.dumps(BODIES["DescribeQuorum"]),
        "--bootstrap-controller", "--to", to,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["topics"][0]["partitions"][0]["leaderId"] == 1
    # The controller lacks this API, which only brokers have.
    done = command(kafka.controllers, "Metadata", "--bootstrap-controller")
    assert "does not offer Metadata" in done.stderr


@pytest.mark.parametrize("release", VERSIONS)
def test_controllers_that_are_not_brokers_are_found(release: str, tmp_path: Path) -> None:
    with separate(release, tmp_path) as nodes:
        with Cluster(nodes.broker) as cluster:
            quorum: Any = cluster.call("DescribeQuorum", BODIES["DescribeQuorum"]).response
            leader = quorum.topics[0].partitions[0].leader_id
            assert str(cluster.broker("controller").address) == nodes.controllers[leader]
        for address in nodes.controllers.values():
            with Cluster(address, controllers=True) as cluster:
                assert str(cluster.broker("controller").address) == nodes.controllers[leader]
                for node, own in nodes.controllers.items():
                    assert str(cluster.broker(str(node)).address) == own
        # An inactive controller answers with an error; --retry without a route asks the active one
        # next.
        [other] = [one for node, one in nodes.controllers.items() if node != leader]
        topic = {"name": TOPIC, "numPartitions": 1, "replicationFactor": 1}
        with Cluster(other, controllers=True) as cluster:
            answer = cluster.call("CreateTopics", {"topics": [topic]})
            assert [one.name for one in answer.error_codes] == ["NOT_CONTROLLER"]
            assert answer.did_nothing
            answer = cluster.call("CreateTopics", {"topics": [topic]}, retries=1)
            assert not answer.error_codes
        topic["name"] = f"{TOPIC}-routed"
        with Cluster(other, controllers=True) as cluster:
            answer = cluster.call("CreateTopics", {"topics": [topic]}, to="controller")
            assert not answer.error_codes


def test_every_api_that_only_reads_is_answered(kafka: Secured, cluster: Cluster) -> None:
    cluster.call("DescribeCluster", to=f"group:{GROUP}", retries=8)
    missing = set()
    offered = cluster.broker().offered
    errors = dict(ERRORS)
    if kafka.release == "3.9.2":
        # In this release, KIP-848 groups are disabled by default.
        errors["ConsumerGroupDescribe"] = "UNSUPPORTED_VERSION"
    for name in sorted(READING):
        if api_key_of(name) not in offered:
            missing.add(name)
            continue
        answer = cluster.call(name, BODIES.get(name), allow_writes=False)
        assert answer.response is not None
        # The requested object does not exist, and these releases answer with an error.
        assert {one.name for one in answer.error_codes} <= {errors.get(name)}, name
        assert type(answer.response).from_json(answer.to_json(), answer.version) == answer.response
    assert missing == NOT_OFFERED[kafka.release]


def test_records_go_out_as_json_and_come_back(cluster: Cluster) -> None:
    records = [
        {
            "key": "a",
            "value": {"hex": "00ff"},
            "headers": {"h": "ü"},
            "timestamp": 1_700_000_000_000,
        }
    ]
    described: Any = cluster.call("Metadata", BODIES["Metadata"]).to_json()
    topic = described["topics"][0]["topicId"]
    for version, acks, compression in ((9, -1, "zstd"), (3, 0, "none")):
        batch = {"compression": compression, "records": records}
        partitions = [{"index": 0, "records": batch}]
        body = {"acks": acks, "topicData": [{"name": TOPIC, "partitionData": partitions}]}
        answer = cluster.call("Produce", body, version, to=f"leader:{TOPIC}-0", retries=5)
        assert (answer.response is None) == (acks == 0)
        assert not answer.error_codes
    partitions = [{"partition": 0, "partitionMaxBytes": 1 << 20}]
    body = {
        "maxWaitMs": 500,
        "minBytes": 200,
        "topics": [{"topicId": topic, "partitions": partitions}],
    }
    shown: Any = cluster.call("Fetch", body, to=f"leader:{TOPIC}-0").to_json(records=True)
    [first, second] = shown["responses"][0]["partitions"][0]["records"]
    assert first["compression"] == "zstd"
    assert "compression" not in second
    for one in (first, second):
        [record] = one["records"]
        assert record["value"] == {"base64": "AP8="}
        assert record["headers"] == [{"key": "h", "value": "ü"}]


def test_header_tags_and_unknown_tagged_fields_are_taken(cluster: Cluster) -> None:
    tagged = {"_unknownTaggedFields": [{"tag": 10_042, "data": "AA=="}]}
    answer = cluster.call("ListGroups", tagged, header_tags={10_042: b"trace", 10_043: b""})
    assert not answer.error_codes


def test_error_codes_have_names(kafka: Secured) -> None:
    config = str(kafka.config("PLAIN"))
    body = '{"topics": [{"name": "nowhere"}], "allowAutoTopicCreation": false}'
    done = command(kafka.secure, "Metadata", body, "--command-config", config)
    assert done.returncode == 1
    assert json.loads(done.stdout)["topics"][0]["_errorName"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert done.stderr == "error: topics[0].errorCode: 3 UNKNOWN_TOPIC_OR_PARTITION\n"
    assert PASSWORD not in done.stderr
