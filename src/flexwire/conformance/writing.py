"""The requests that change the run's own topic, groups and transactional id, and nothing else.

The names of these objects begin with a common prefix, which is random in each run. The requests
follow the lifecycle of the topic, of a transaction, and of the groups. `removals` contains the
requests that remove the objects, and `write_plans` creates a case for each request. Requests that
affect a whole cluster are in `disposable`.
"""

from __future__ import annotations

import base64
import secrets
from typing import Any, Final, NamedTuple

from flexwire.client.cluster import COORDINATORS, Route
from flexwire.codec import message
from flexwire.conformance.questions import Learned, Question, id_of, one_question
from flexwire.protocol.nested_messages import CONSUMERS, GROUP_MESSAGES
from flexwire.versions import HIGHEST, Versions

PREFIX: Final = "flexwire-conform-"
_TOPIC_RESOURCE: Final = 2
_SET: Final = 0
_PROTOCOL: Final = "range"
LEAVE: Final = -1
"""The epoch with which a member leaves its group or ends its session."""
# Some brokers forget a group without members when the last offset of that group is deleted.
_FORGOTTEN: Final = 1
_WAIT_MS: Final = 200
_SESSION_MS: Final = 30_000
_REBALANCE_MS: Final = 10_000
_TRANSACTION_MS: Final = 60_000

MEMBER: Final = "member id"
GENERATION: Final = "generation"
PRODUCER: Final = "producer id"
EPOCH: Final = "producer epoch"
TOPIC_ID: Final = "topic id"
NODE: Final = "node"
LEARNED_FROM: Final = {
    "JoinGroup": {"memberId": MEMBER, "generationId": GENERATION},
    "InitProducerId": {"producerId": PRODUCER, "producerEpoch": EPOCH},
    "EndTxn": {"producerId": PRODUCER, "producerEpoch": EPOCH},
}
"""The fields of responses that later requests repeat.

A value of "" or -1 means that there is no value.
"""


def own_name() -> str:
    """Return a new name for the objects of a run."""
    return f"{PREFIX}{secrets.token_hex(8)}"


class OwnNames(NamedTuple):
    """The names of a run's groups and of a member that chooses its own name."""

    consumers: str
    sharers: str
    streams: str
    member: str

    @classmethod
    def of(cls, own: str) -> OwnNames:
        """Return the names for a run.

        ``own`` is the name of its topic and its classic group, and its transactional id.
        """
        return cls(f"{own}-consumers", f"{own}-share", f"{own}-streams", id_of(own))


def leader_of(own: str) -> Route:
    """Return the route to the leader of the run's topic."""
    return Route("leader", own, 0)


def group_coordinator(group: str) -> Route:
    """Return the route to a group's coordinator."""
    return Route("coordinator", group, COORDINATORS["group"])


def transaction_coordinator(own: str) -> Route:
    """Return the route to the coordinator of the run's transactional id."""
    return Route("coordinator", own, COORDINATORS["transaction"])


def write_questions(own: str) -> dict[str, tuple[Question, ...]]:
    """Return the requests about the objects of a run, by API, in sending order."""
    return {
        **_topic_questions(own),
        **_transaction_questions(own),
        **_classic_questions(own),
        **_newer_group_questions(own),
        **removing_questions(own),
    }


def _topic_questions(own: str) -> dict[str, tuple[Question, ...]]:
    setting = {"name": "retention.ms", "value": "3600000"}
    topic = {"resourceType": _TOPIC_RESOURCE, "resourceName": own}
    changed = {**topic, "configs": [{**setting, "configOperation": _SET}]}
    batch = {"index": 0, "records": [{"key": None, "value": PREFIX}]}
    named = {"name": own, "topicId": own_topic_id(own)}
    produced = {"acks": -1, "topicData": [{**named, "partitionData": [batch]}]}
    return {
        "CreateTopics": one_question(
            topics=[{"name": own, "numPartitions": 1, "replicationFactor": 1}]
        ),
        "CreatePartitions": one_question(topics=[{"name": own, "count": 2, "assignments": None}]),
        "IncrementalAlterConfigs": one_question(resources=[changed]),
        "AlterConfigs": one_question(resources=[{**topic, "configs": [setting]}]),
        "Produce": (
            # These versions use message sets, which are older than record batches, so nothing is
            # produced.
            Question({"acks": -1, "topicData": []}, Versions(0, 2), writes=True),
            Question(produced, Versions(3, HIGHEST), writes=True, route=leader_of(own)),
        ),
        "DeleteRecords": one_question(
            leader_of(own),
            topics=[{"name": own, "partitions": [{"partitionIndex": 0, "offset": 0}]}],
        ),
        # Without --write, this API is not tested in these versions, because it may create an
        # internal topic.
        "FindCoordinator": (Question({"key": own}, Versions(0, 3), writes=True),),
        "OffsetCommit": one_question(
            group_coordinator(own),
            groupId=own,
            generationId=-1,
            generationIdOrMemberEpoch=-1,
            topics=[_committed(own, 0, _FORGOTTEN)],
        ),
    }


def _committed(own: str, *partitions: int) -> dict[str, Any]:
    commit = {"committedOffset": 0, "committedMetadata": ""}
    rows = [{"partitionIndex": partition, **commit} for partition in partitions]
    return {"name": own, "topicId": own_topic_id(own), "partitions": rows}


def own_topic_id(own: str) -> Learned:
    """Return the id of the run's topic."""
    return Learned(TOPIC_ID, id_of(own))


def _transaction_questions(own: str) -> dict[str, tuple[Question, ...]]:
    to = transaction_coordinator(own)
    topics = [{"name": own, "partitions": [0]}]
    one = {"transactionalId": own, **own_producer()}
    old = {f"v3AndBelow{name[0].upper()}{name[1:]}": value for name, value in one.items()}
    return {
        "InitProducerId": one_question(
            to,
            transactionalId=own,
            transactionTimeoutMs=_TRANSACTION_MS,
            producerId=-1,
            producerEpoch=-1,
        ),
        "AddPartitionsToTxn": one_question(
            to,
            **old,
            **one,
            topics=topics,
            v3AndBelowTopics=topics,
            transactions=[{**one, "topics": topics}],
        ),
        "AddOffsetsToTxn": one_question(to, **one, groupId=own),
        "TxnOffsetCommit": one_question(
            group_coordinator(own), **one, groupId=own, topics=[_committed(own, 0)]
        ),
        "EndTxn": one_question(to, **one, committed=False),
    }


def own_producer() -> dict[str, Any]:
    """Return the fields of the run's producer."""
    return {"producerId": Learned(PRODUCER, 2**62), "producerEpoch": Learned(EPOCH, 0)}


def _classic_questions(own: str) -> dict[str, tuple[Question, ...]]:
    to = group_coordinator(own)
    nobody = "nobody"
    known = {"memberId": Learned(MEMBER, nobody)}
    member = {"groupId": own, "generationId": Learned(GENERATION, 1), **known}
    messages = GROUP_MESSAGES[CONSUMERS]
    subscription = _versioned(message(messages.subscription)(topics=[own]))
    assignment = _versioned(message(messages.assignment)())
    return {
        "JoinGroup": one_question(
            to,
            groupId=own,
            sessionTimeoutMs=_SESSION_MS,
            rebalanceTimeoutMs=_REBALANCE_MS,
            # The broker assigns the id of a new member.
            memberId=Learned(MEMBER, ""),
            protocolType=CONSUMERS,
            protocols=[{"name": _PROTOCOL, "metadata": subscription}],
        ),
        "SyncGroup": one_question(
            to,
            **member,
            protocolType=CONSUMERS,
            protocolName=_PROTOCOL,
            assignments=[{**known, "assignment": assignment}],
        ),
        "Heartbeat": one_question(to, **member),
        "LeaveGroup": one_question(to, groupId=own, **known, members=[known]),
    }


def _versioned(body: Any) -> str:
    """Return version 0 and a message encoded in this version, in the JSON form of bytes."""
    return base64.b64encode(bytes(2) + body.encode(0)).decode()


def _newer_group_questions(own: str) -> dict[str, tuple[Question, ...]]:
    names = OwnNames.of(own)
    subscribed = {"memberId": names.member, "memberEpoch": 0, "subscribedTopicNames": [own]}
    topic_id = {"topicId": own_topic_id(own)}
    shared = {"groupId": names.sharers, "memberId": names.member}
    start = [{"partitionIndex": 0, "startOffset": 0}]
    return {
        "ConsumerGroupHeartbeat": one_question(
            group_coordinator(names.consumers),
            groupId=names.consumers,
            **subscribed,
            rebalanceTimeoutMs=_REBALANCE_MS,
            topicPartitions=[],
        ),
        "AlterShareGroupOffsets": one_question(
            group_coordinator(names.sharers),
            groupId=names.sharers,
            topics=[{"topicName": own, "partitions": start}],
        ),
        "ShareGroupHeartbeat": one_question(
            group_coordinator(names.sharers), groupId=names.sharers, **subscribed
        ),
        "ShareFetch": _filtering(
            leader_of(own),
            **shared,
            shareSessionEpoch=0,
            maxWaitMs=_WAIT_MS,
            minBytes=1,
            maxBytes=1024,
            maxRecords=1,
            batchSize=1,
            topics=[{**topic_id, "partitions": [{"partitionIndex": 0, "partitionMaxBytes": 1024}]}],
        ),
        "ShareAcknowledge": _filtering(
            leader_of(own),
            **shared,
            shareSessionEpoch=LEAVE,
            topics=[{**topic_id, "partitions": [{"partitionIndex": 0}]}],
        ),
        "DeleteShareGroupOffsets": one_question(
            group_coordinator(names.sharers), groupId=names.sharers, topics=[{"topicName": own}]
        ),
        "StreamsGroupHeartbeat": _filtering(
            group_coordinator(names.streams),
            groupId=names.streams,
            memberId=names.member,
            memberEpoch=0,
            processId=names.member,
            rebalanceTimeoutMs=_REBALANCE_MS,
            topology={"epoch": 0, "subtopologies": [_subtopology(own)]},
            activeTasks=[],
            standbyTasks=[],
            warmupTasks=[],
        ),
    }


def _filtering(route: Route, **form: Any) -> tuple[Question, ...]:
    """Return a question whose answer does not have to repeat the names in the request."""
    return (one_question(route, **form)[0]._replace(is_filter=True),)


def _subtopology(own: str) -> dict[str, Any]:
    """Return the form of a subtopology that has a source topic and no internal topics."""
    empty = (
        *("sourceTopicRegex", "stateChangelogTopics", "repartitionSinkTopics"),
        *("repartitionSourceTopics", "copartitionGroups"),
    )
    return {"subtopologyId": "0", "sourceTopics": [own], **{name: [] for name in empty}}


def removing_questions(own: str) -> dict[str, tuple[Question, ...]]:
    """Return the requests that end the classic group and remove the topic."""
    deleted = [{"name": own, "partitions": [{"partitionIndex": _FORGOTTEN}]}]
    return {
        "OffsetDelete": one_question(group_coordinator(own), groupId=own, topics=deleted),
        "DeleteGroups": one_question(group_coordinator(own), groupsNames=[own]),
        "DeleteTopics": one_question(topics=[{"name": own}], topicNames=[own]),
    }
