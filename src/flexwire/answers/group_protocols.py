"""Which groups can move to the consumer protocol, according to `__consumer_offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.consumer_protocol import (
    AssignmentFacts,
    judge_groups,
    judgement_columns,
    read_assignments,
)
from flexwire.answers.state import group_protocols as protocols_of
from flexwire.answers.state.groups import CLASSIC_TYPE
from flexwire.protocol.audit.consumer_protocol import GroupJudgement, GroupTraits, judge_group
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_ASK_TRAFFIC: Final = (
    "analyze a capture or a request log of the group's clients; the answer consumer_protocol then "
    "judges the group by the software of these clients"
)
COLUMNS: Final = (
    Column("group", pa.string(), "the group", heading="Group", is_about=True),
    Column("verdict", pa.string(), '"blocked", "cannot say" or "uses it already"',
           heading="Verdict"),
    Column("reason", pa.string(), "the reason for the verdict", heading="Why"),
    Column("remedy", pa.string(), "the recommended action", "if no action is needed",
           heading="What to do"),
    Column("source", pa.string(), "the source of the verdict", "if the verdict needs no source"),
    Column("type", pa.string(), "classic or consumer", heading="Type"),
    Column("protocol_type", pa.string(), "the type of a classic group's protocol",
           "for a group of type consumer, or if the protocol type is unknown",
           heading="Protocol type"),
    Column("assignor", pa.string(), "the assignor that a classic group chose",
           "for a group of type consumer, or if the group chose no assignor", heading="Assignor"),
    Column("members", pa.int64(),
           "the number of members in the group", "if the client ids are unknown",
           heading="Members"),
    Column("client_ids", pa.list_(pa.string()), "the client ids of the group's members",
           heading="Client ids"),
    Column("has_user_data", pa.bool_(), "whether an assignment carries user data",
           "for a group of type consumer, or if no assignment can be read"),
    Column("is_known", pa.bool_(), "false if compaction may have removed a record that the group "
           "had at the requested earlier moment", heading="Known"),
)  # fmt: skip


@returns(COLUMNS)
def group_protocols(tables: AnalysisTables) -> DataFrame | None:
    """Return a verdict for each group on moving to the consumer protocol (KIP-848).

    The log of `__consumer_offsets` contains the protocol type of a group and the user data of its
    assignments. Either of these two facts may block the move. The log does not contain the software
    of members, so this answer never proves that a group can move. Groups of share consumers or
    streams consumers, and groups that only commit, are not listed.
    """
    logs = tables.internal
    groups = None if logs is None else logs.view(_TOPIC, protocols_of)
    return None if groups is None else judge_groups(groups, _judged, COLUMNS)


def _judged(group: dict[str, Any]) -> dict[str, Any]:
    assignments = read_assignments(group["assignments"] or [], group["protocol_type"])
    return {
        "group": group["group"],
        **judgement_columns(_judgement(group, assignments)),
        "type": group["type"],
        "protocol_type": group["protocol_type"],
        "assignor": group["protocol"] or None,
        "members": group["members"],
        "client_ids": sorted({*filter(None, group["client_ids"] or ())}),
        "has_user_data": assignments.has_user_data,
        "is_known": group["is_known"],
    }


def _judgement(group: dict[str, Any], assignments: AssignmentFacts) -> GroupJudgement:
    if not group["is_known"]:
        return GroupJudgement(
            "cannot say", "compaction removed the records that would show the type of the group"
        )
    if group["type"] != CLASSIC_TYPE:
        return GroupJudgement(
            "uses it already",
            "the coordinator stores the group as a group of the consumer protocol",
        )
    if not group["members"]:
        return GroupJudgement(
            "cannot say",
            "the group has no members; an empty group always converts, but the log does not show "
            "which clients use the group",
            _ASK_TRAFFIC,
        )
    judgement = judge_group(
        GroupTraits(
            group["protocol_type"], (), assignments.has_user_data, assignments.is_unreadable
        )
    )
    if judgement.verdict != "cannot say":
        return judgement
    return GroupJudgement(
        "cannot say",
        "the protocol type and the assignments of the group do not block a move, but the log of "
        "the coordinator does not contain the software of members",
        _ASK_TRAFFIC,
    )


ANSWER: Final = Answer(
    name="group_protocols",
    place=225,
    question="Which groups in the coordinators' logs cannot move to the consumer protocol?",
    meaning="A verdict on whether each group can move to the consumer protocol (KIP-848), based "
    "on the coordinator's records: the protocol type, and the user data in assignments. "
    "Beginning with Kafka 5.0, Java's KafkaConsumer will use this protocol by default. No other "
    "client will use this protocol by default.",
    advice="Begin with the groups that are blocked. For the other groups, analyze a capture or a "
    "request log of their clients, because the coordinators' log does not contain the "
    "software of clients.",
    row="a group",
    columns=COLUMNS,
    order=("verdict", "group"),
    shown=(
        *("group", "type", "verdict", "reason", "remedy"),
        *("protocol_type", "assignor", "members", "client_ids", "is_known"),
    ),
    ask=group_protocols,
    asks=(_TOPIC.topic,),
)
