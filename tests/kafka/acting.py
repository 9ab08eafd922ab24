"""Make a cluster of two brokers, and every kind of change that its metadata log records."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from flexwire.demo.clients.raw import RawConnection
from tools.broker import broker, new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MOST_SECONDS = 120
# Each write creates a snapshot, and old snapshots are removed only after a newer one.
SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "broker.rack": "one",
    "log.retention.ms": "-1",
}
CONFIGS, QUOTAS, REASSIGN, FEATURES = 44, 49, 45, 57
OF_TOPIC, OF_BROKER = 2, 4


@dataclass
class Acts:
    """A broker that is also the controller; its directory also contains the second broker's."""

    version: str
    address: str
    directory: Path

    @property
    def logs(self) -> Path:
        return self.directory / "data"

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 2})

    def ask(self, key: int, name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        with RawConnection(self.address, "judge") as connection:
            return connection.request(key, name, version, body)

    @contextlib.contextmanager
    def second(self) -> Iterator[None]:
        """Start another broker in the cluster for the duration of the block."""
        directory = self.directory / "second"
        own = properties(self.directory / "server.properties")
        there = directory / "data"
        if not there.exists():
            there.mkdir(parents=True)
            cluster = properties(self.logs / "meta.properties")["cluster.id"]
            mine = new_id()
            lines = f"version=1\ncluster.id={cluster}\nnode.id=2\ndirectory.id={mine}\n"
            there.joinpath("meta.properties").write_text(lines)
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
        settings = {
            **SETTINGS,
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": own["controller.quorum.voters"],
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "broker.rack": "two",
        }
        with broker(self.version, directory, settings):
            self.until(lambda: self.fenced() == {1: False, 2: False})
            yield

    def fenced(self) -> dict[int, bool]:
        """Return whether each broker is fenced; 3.9 lists only brokers that are not."""
        body = {"includeClusterAuthorizedOperations": False, "endpointType": 1}
        if self.version.startswith("3."):
            said = self.ask(60, "DescribeCluster", 1, body)
            seen = {one["brokerId"]: False for one in said["brokers"]}
            return {2: True, **seen} if (self.directory / "second" / "data").exists() else seen
        said = self.ask(60, "DescribeCluster", 2, {**body, "includeFencedBrokers": True})
        return {one["brokerId"]: one["isFenced"] for one in said["brokers"]}

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + MOST_SECONDS
        while not holds():
            assert time.monotonic() < end, "it did not come to be so"
            time.sleep(0.2)


def properties(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return dict(one.split("=", 1) for one in lines if not one.startswith("#"))


def done(futures: dict[Any, Any]) -> None:
    for one in futures.values():
        one.result(MOST_SECONDS)


def set_config(acts: Acts, kind: int, name: str, key: str, value: str | None) -> None:
    config = {"name": key, "configOperation": 0 if value is not None else 1, "value": value}
    resource = {"resourceType": kind, "resourceName": name, "configs": [config]}
    body = {"resources": [resource], "validateOnly": False}
    said = acts.ask(CONFIGS, "IncrementalAlterConfigs", 1, body)
    assert said["responses"][0]["errorCode"] == 0, said


def quota(acts: Acts, entity: dict[str, str | None], key: str, value: float | None) -> None:
    who = [{"entityType": kind, "entityName": name} for kind, name in entity.items()]
    op = {"key": key, "value": value or 0.0, "remove": value is None}
    entries = [{"entity": who, "ops": [op]}]
    said = acts.ask(QUOTAS, "AlterClientQuotas", 1, {"entries": entries, "validateOnly": False})
    assert [one["errorCode"] for one in said["entries"]] == [0]


def reassign(acts: Acts, topic: str, partition: int, replicas: list[int]) -> None:
    wanted = [{"name": topic, "partitions": [{"partitionIndex": partition, "replicas": replicas}]}]
    said = acts.ask(
        REASSIGN, "AlterPartitionReassignments", 0, {"timeoutMs": 60_000, "topics": wanted}
    )
    assert said["errorCode"] == 0
    assert said["responses"][0]["partitions"][0]["errorCode"] == 0


def set_feature(acts: Acts, name: str, level: int, upgrade: int) -> None:
    wanted = [{"feature": name, "maxVersionLevel": level, "upgradeType": upgrade}]
    body = {"timeoutMs": 60_000, "featureUpdates": wanted, "validateOnly": False}
    said = acts.ask(FEATURES, "UpdateFeatures", 1, body)
    assert said["errorCode"] == 0, said


def acl(principal: str) -> AclBinding:
    kinds = (ResourceType.TOPIC, "orders", ResourcePatternType.PREFIXED)
    return AclBinding(*kinds, principal, "*", AclOperation.READ, AclPermissionType.ALLOW)


def act(acts: Acts) -> None:
    """Make all changes that need only one broker."""
    admin = acts.admin
    asked = [
        NewTopic("orders", 3, 1, config={"retention.ms": "-1", "segment.bytes": "1048576"}),
        NewTopic("gone", 2, 1, config={"cleanup.policy": "compact"}),
        NewTopic("again", 1, 1, config={"cleanup.policy": "compact", "segment.ms": "500"}),
    ]
    done(admin.create_topics(asked))
    done(admin.create_partitions([NewPartitions("orders", 5)]))
    for value in ("100000", "200000", None):
        set_config(acts, OF_TOPIC, "orders", "max.message.bytes", value)
    set_config(acts, OF_TOPIC, "orders", "retention.ms", "3600000")
    set_config(acts, OF_BROKER, "1", "log.cleaner.threads", "2")
    set_config(acts, OF_BROKER, "", "message.max.bytes", "2000000")
    set_config(acts, OF_BROKER, "1", "listener.name.plaintext.ssl.keystore.password", "hunter2")
    done(admin.delete_topics(["gone", "again"]))
    time.sleep(1)
    done(admin.create_topics([NewTopic("again", 2, 1, config={"retention.bytes": "1000000"})]))
    quota(acts, {"user": "alice", "client-id": None}, "producer_byte_rate", 1000.0)
    quota(acts, {"client-id": "reports"}, "request_percentage", 12.5)
    quota(acts, {"client-id": "gone"}, "request_percentage", 10.0)
    quota(acts, {"client-id": "gone"}, "request_percentage", None)
    for number, name in enumerate(("alice", "bob", "carol")):
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096 + number)
        salted = UserScramCredentialUpsertion(name, info, b"secret", b"salt and pepper")
        done(admin.alter_user_scram_credentials([salted]))
    gone = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    done(admin.alter_user_scram_credentials([gone]))
    done(admin.create_acls([acl("User:alice"), acl("User:bob")]))
    kinds = (ResourceType.TOPIC, "orders", ResourcePatternType.PREFIXED, "User:bob", "*")
    wanted = AclBindingFilter(*kinds, AclOperation.READ, AclPermissionType.ALLOW)
    done(admin.delete_acls([wanted]))
    # For some producer ids, the broker must first ask the controller.
    acts.until(lambda: acts.ask(22, "InitProducerId", 4, _PRODUCER)["errorCode"] == 0)


_PRODUCER = {
    "transactionalId": None,
    "transactionTimeoutMs": 1000,
    "producerId": -1,
    "producerEpoch": -1,
}


def act_with_two(acts: Acts) -> None:
    """Make the changes that need two brokers: replicas move, together with their leaders."""
    done(acts.admin.create_topics([NewTopic("both", 4, 2)]))
    reassign(acts, "orders", 0, [2])
    reassign(acts, "orders", 1, [1, 2])
    acts.until(lambda: not moving(acts))


def moving(acts: Acts) -> list[Any]:
    body = {"timeoutMs": 60_000, "topics": None}
    topics: list[Any] = acts.ask(46, "ListPartitionReassignments", 0, body)["topics"]
    return topics
