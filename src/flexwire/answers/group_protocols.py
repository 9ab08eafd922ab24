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
    "analyze a capture or a request log of its clients: the answer consumer_protocol judges by "
    "their software"
)
COLUMNS: Final = (
    Column("group", pa.string(), "the group", heading="Group", is_about=True),
    Column("verdict", pa.string(), '"blocked", "cannot say" or "uses it already"',
           heading="Verdict"),
    Column("reason", pa.string(), "why", heading="Why"),
    Column("remedy", pa.string(), "what to do", "if nothing is to be done", heading="What to do"),
    Column("source", pa.string(), "where that is written", "if no source is needed"),
    Column("type", pa.string(), "classic or consumer", heading="Type"),
    Column("protocol_type", pa.string(), "the type of a classic group's protocol",
           "for a group of type consumer, and if it is unknown", heading="Protocol type"),
    Column("assignor", pa.string(), "the assignor that a classic group chose",
           "for a group of type consumer, and for one that chose none", heading="Assignor"),
    Column("members", pa.int64(), "its members", "if they are unknown", heading="Members"),
    Column("client_ids", pa.list_(pa.string()), "the client ids of its members",
           heading="Client ids"),
    Column("has_user_data", pa.bool_(), "whether an assignment carries user data",
           "for a group of type consumer, and if no assignment can be read"),
    Column("is_known", pa.bool_(), "false if compaction may have removed a record that the group "
           "had at the requested earlier moment", heading="Known"),
)  # fmt: skip


@returns(COLUMNS)
def group_protocols(tables: AnalysisTables) -> DataFrame | None:
    """Return a verdict for each group on moving to the consumer protocol (KIP-848).

    The log of `__consumer_offsets` has the protocol type of a group and the user data of its
    assignments. Either of them may block the move. It does not have the software of members, so it
    never proves that a group can move. Groups of share consumers or streams consumers, and groups
    that only commit, have no row.
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
            "cannot say", "compaction removed records that would show what the group is"
        )
    if group["type"] != CLASSIC_TYPE:
        return GroupJudgement(
            "uses it already", "its coordinator keeps it as a group of the consumer protocol"
        )
    if not group["members"]:
        return GroupJudgement(
            "cannot say",
            "it has no members; an empty group always converts, and what its clients are is not "
            "in the log",
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
        "its protocol type and its assignments do not block it, and a coordinator does not write "
        "the software of members",
        _ASK_TRAFFIC,
    )


ANSWER: Final = Answer(
    name="group_protocols",
    place=225,
    question="Which groups of the coordinators' logs cannot move to the consumer protocol?",
    meaning="A verdict for each group about the protocol of KIP-848, by what its coordinator "
    "wrote: the protocol type, and the user data of assignments. In Kafka 5.0 Java's "
    "KafkaConsumer uses the protocol by default, and no other client does.",
    advice="Begin with the groups that are blocked. For the others analyze a capture or a request "
    "log of their clients, because the log does not have their software.",
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
