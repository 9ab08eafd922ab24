"""The requests that affect a whole cluster, for clusters that are discarded after a test.

If an API accepts the name of a topic, user, producer or group, the requests contain the run's own
names. Otherwise, they refer to a broker, voter or feature that does not exist. A faulty broker may
interpret these requests differently, and quotas, credentials, ACLs and tokens remain in the
cluster. The requests therefore require a separate permission. Broker settings are not changed;
instead, a run uses the same APIs on its own topic.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from flexwire.client.cluster import Route
from flexwire.conformance.questions import Question, id_of, one_question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.conformance.questions import Learned

_NOBODYS_NODE: Final = 2**30
_BYTES_A_SECOND: Final = 1e9
_MINUTE: Final = 60_000
_TOPIC: Final = 2
_LITERAL: Final = 3
_READ: Final = 3
_ALLOW: Final = 3
_SHA_256: Final = 1
_ITERATIONS: Final = 4096
_UPGRADE: Final = 1


def disposable_questions(
    own: str, topic_id: Learned, node: Learned, producer: Mapping[str, Any]
) -> dict[str, tuple[Question, ...]]:
    """Return the requests that affect a whole cluster, by API, in sending order.

    ``own`` is the run's topic, ``topic_id`` its id, and ``node`` the node that leads it.
    """
    return {
        **_security_questions(own),
        **_placement_questions(own, node),
        "WriteTxnMarkers": one_question(
            Route("leader", own, 0),
            markers=[
                {
                    **producer,
                    "transactionResult": False,
                    "topics": [{"name": own, "partitionIndexes": [0]}],
                    "coordinatorEpoch": 0,
                }
            ],
        ),
        **_share_state_questions(own, topic_id),
        **_membership_questions(own),
    }


def _security_questions(own: str) -> dict[str, tuple[Question, ...]]:
    secret = base64.b64encode(own.encode()).decode()
    quota = {"key": "producer_byte_rate", "value": _BYTES_A_SECOND, "remove": False}
    client = {"entityType": "client-id", "entityName": own}
    user = f"User:{own}"
    rule = {"operation": _READ, "permissionType": _ALLOW}
    created = {
        "resourceType": _TOPIC,
        "resourceName": own,
        "resourcePatternType": _LITERAL,
        "principal": user,
        "host": "*",
    }
    deleted = {
        "resourceTypeFilter": _TOPIC,
        "resourceNameFilter": own,
        "patternTypeFilter": _LITERAL,
        "principalFilter": user,
        "hostFilter": "*",
    }
    credential = {
        "name": own,
        "mechanism": _SHA_256,
        "iterations": _ITERATIONS,
        "salt": secret,
        "saltedPassword": secret,
    }
    return {
        "AlterClientQuotas": one_question(entries=[{"entity": [client], "ops": [quota]}]),
        "AlterUserScramCredentials": one_question(deletions=[], upsertions=[credential]),
        "CreateAcls": one_question(creations=[{**created, **rule}]),
        "DeleteAcls": one_question(filters=[{**deleted, **rule}]),
        "CreateDelegationToken": one_question(renewers=[], maxLifetimeMs=_MINUTE),
        "RenewDelegationToken": one_question(hmac=secret, renewPeriodMs=_MINUTE),
        "ExpireDelegationToken": one_question(hmac=secret, expiryTimePeriodMs=_MINUTE),
    }


def _placement_questions(own: str, node: Learned) -> dict[str, tuple[Question, ...]]:
    return {
        "AlterPartitionReassignments": one_question(
            topics=[{"name": own, "partitions": [{"partitionIndex": 0, "replicas": [node]}]}]
        ),
        "ElectLeaders": one_question(
            electionType=0, topicPartitions=[{"topic": own, "partitions": [0]}]
        ),
        "AlterReplicaLogDirs": one_question(
            Route("leader", own, 0),
            dirs=[{"path": f"/{own}", "topics": [{"name": own, "partitions": [0]}]}],
        ),
    }


def _share_state_questions(own: str, topic_id: Learned) -> dict[str, tuple[Question, ...]]:
    epochs = {"stateEpoch": 0, "leaderEpoch": 0, "startOffset": 0}

    def about(*fields: str) -> tuple[Question, ...]:
        partition = {"partition": 0, **{name: epochs[name] for name in fields}}
        topics = [{"topicId": topic_id, "partitions": [partition]}]
        return one_question(groupId=f"{own}-state", topics=topics)

    return {
        "InitializeShareGroupState": about("stateEpoch", "startOffset"),
        "WriteShareGroupState": about("stateEpoch", "leaderEpoch", "startOffset"),
        "ReadShareGroupState": about("leaderEpoch"),
        "ReadShareGroupStateSummary": about("leaderEpoch"),
        "DeleteShareGroupState": about(),
    }


def _membership_questions(own: str) -> dict[str, tuple[Question, ...]]:
    # The cluster id in these requests is incorrect, so no voter is added or removed.
    voter: dict[str, Any] = {
        "clusterId": own,
        "voterId": _NOBODYS_NODE,
        "voterDirectoryId": id_of(own),
    }
    update = {
        "feature": own,
        "maxVersionLevel": 1,
        "allowDowngrade": False,
        "upgradeType": _UPGRADE,
    }
    listener = {"name": "CONTROLLER", "host": "localhost", "port": 1}
    return {
        "UpdateFeatures": one_question(featureUpdates=[update], validateOnly=True),
        "AddRaftVoter": one_question(**voter, timeoutMs=_MINUTE, listeners=[listener]),
        "RemoveRaftVoter": one_question(**voter),
        "UnregisterBroker": one_question(brokerId=_NOBODYS_NODE),
    }
