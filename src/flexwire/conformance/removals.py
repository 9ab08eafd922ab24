"""The requests that remove the objects of a run, in sending order.

A transaction is ended first, because a group cannot be removed while a transaction holds its
offsets. Members leave before their group is removed. An API is tested only if the broker also
offers the APIs that remove the created objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.client.cluster import ANY
from flexwire.conformance.writing import (
    LEAVE,
    MEMBER,
    PRODUCER,
    OwnNames,
    group_coordinator,
    transaction_coordinator,
    write_questions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.client.cluster import Route


class Removal(NamedTuple):
    """A request that removes an object of a run.

    ``makers`` contains the APIs whose cases may create the object. ``gone`` contains the error
    codes that mean that nothing remains: the object was removed or never created (for example,
    because the broker is not the coordinator). If the run did not learn the value ``needed``,
    nothing was created. ``noun`` is empty for a member, because its group cannot be removed while
    the member remains.
    """

    noun: str
    name: str
    api_name: str
    form: Mapping[str, Any]
    route: Route
    makers: frozenset[str]
    gone: frozenset[int] = frozenset()
    needed: str = ""


_OF_TOPIC: Final = frozenset(
    (
        *("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "AlterConfigs"),
        *("Produce", "DeleteRecords", "DeleteTopics"),
    )
)
_OF_TRANSACTION: Final = frozenset(
    ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")
)
_OF_GROUP: Final = frozenset(
    (
        *("OffsetCommit", "TxnOffsetCommit", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"),
        *("OffsetDelete", "DeleteGroups"),
    )
)
_OF_SHARERS: Final = frozenset(
    (
        *("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"),
        *("AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
    )
)
UNKNOWN_TOPIC: Final = frozenset((3,))
"""The error code UNKNOWN_TOPIC_OR_PARTITION."""
_NO_COORDINATOR: Final = frozenset((15, 16))
_NO_GROUP: Final = _NO_COORDINATOR | {69}


def removals(own: str) -> list[Removal]:
    """Return the requests that remove the objects that a run may have created, in sending order."""
    names = OwnNames.of(own)
    asked = {name: questions[-1].form for name, questions in write_questions(own).items()}
    found = [
        Removal(
            "transaction",
            own,
            "InitProducerId",
            asked["InitProducerId"],
            transaction_coordinator(own),
            _OF_TRANSACTION,
            _NO_COORDINATOR,
            PRODUCER,
        ),
        Removal(
            "",
            own,
            "LeaveGroup",
            asked["LeaveGroup"],
            group_coordinator(own),
            frozenset(("JoinGroup",)),
            needed=MEMBER,
        ),
    ]
    groups = {own: _OF_GROUP}
    for name, group, makers in (
        ("ConsumerGroupHeartbeat", names.consumers, frozenset(("ConsumerGroupHeartbeat",))),
        ("ShareGroupHeartbeat", names.sharers, _OF_SHARERS),
        ("StreamsGroupHeartbeat", names.streams, frozenset(("StreamsGroupHeartbeat",))),
    ):
        form: dict[str, Any] = {"groupId": group, "memberId": names.member, "memberEpoch": LEAVE}
        route = group_coordinator(group)
        found.append(Removal("", group, name, form, route, makers & frozenset((name,))))
        groups[group] = makers
    for group, makers in groups.items():
        form, route = {"groupsNames": [group]}, group_coordinator(group)
        found.append(Removal("group", group, "DeleteGroups", form, route, makers, _NO_GROUP))
    topic = asked["DeleteTopics"]
    found.append(Removal("topic", own, "DeleteTopics", topic, ANY, _OF_TOPIC, UNKNOWN_TOPIC))
    return found
