"""The requests that change something: only the run's own topic and group.

Both have the same name, drawn at random for each run. An API is tested only if the broker also
offers the API that removes what it creates. The cases follow the life of the topic and the group,
and everything they created is removed after the last case, or when the run ends early. There are no
cases for requests about a whole cluster or about transactions, or for requests that would make a
cluster create an internal topic.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flexwire.arguments import refuse
from flexwire.codec import message
from flexwire.conformance.cases import (
    CasePlan,
    Unasked,
    api_cases,
    asked_versions,
    beyond,
    fitting,
)
from flexwire.conformance.judging import code_names
from flexwire.conformance.questions import Question
from flexwire.errors import FlexwireError
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.headers import request_name
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from flexwire.client.broker import Broker
    from flexwire.conformance.cases import Asking, Case

_LOG: Final = logging.getLogger(__name__)
PREFIX: Final = "flexwire-conform-"
# Later versions identify topics by an id that the broker assigns.
_LAST_BY_NAME: Final = {"Produce": 12, "OffsetCommit": 9}
_ID_OF_TOPIC: Final = "flexwire does not know these versions, or topics have ids in them"
_TOPIC_RESOURCE: Final = 2
_SET: Final = 0
_MEMBER: Final = "nobody"
# These errors mean that nothing is left: it was removed, or was never created (for example, because
# the broker is not the coordinator).
_GONE: Final = {"DeleteTopics": {3}, "DeleteGroups": {15, 16, 69}}


def own_name() -> str:
    """Return a new name for the topic and the group of one run."""
    return f"{PREFIX}{secrets.token_hex(8)}"


def write_questions(own: str) -> dict[str, tuple[Question, ...]]:
    """Return the requests about the topic and group ``own``, by API, in the order to send them."""
    setting = {"name": "retention.ms", "value": "3600000"}
    topic = {"resourceType": _TOPIC_RESOURCE, "resourceName": own}
    changed = {**topic, "configs": [{**setting, "configOperation": _SET}]}
    batch = {"index": 0, "records": [{"key": None, "value": PREFIX}]}
    commit = {"partitionIndex": 0, "committedOffset": 0, "committedMetadata": ""}
    member = {"groupId": own, "generationId": 1, "memberId": _MEMBER}
    gone = {"memberId": _MEMBER, "members": [{"memberId": _MEMBER}]}
    deleted = [{"partitionIndex": 0}]
    return {
        "CreateTopics": _one(topics=[{"name": own, "numPartitions": 1, "replicationFactor": 1}]),
        "CreatePartitions": _one(topics=[{"name": own, "count": 2, "assignments": None}]),
        "IncrementalAlterConfigs": _one(resources=[changed]),
        "AlterConfigs": _one(resources=[{**topic, "configs": [setting]}]),
        "Produce": (
            # Message sets are older than record batches, so nothing is produced here.
            Question({"acks": -1, "topicData": []}, Versions(0, 2), writes=True),
            Question(
                {"acks": -1, "topicData": [{"name": own, "partitionData": [batch]}]},
                Versions(3, _LAST_BY_NAME["Produce"]),
                writes=True,
            ),
        ),
        "DeleteRecords": _one(
            topics=[{"name": own, "partitions": [{"partitionIndex": 0, "offset": 0}]}]
        ),
        "OffsetCommit": (
            Question(
                {
                    "groupId": own,
                    "generationId": -1,
                    "generationIdOrMemberEpoch": -1,
                    "topics": [{"name": own, "partitions": [commit]}],
                },
                Versions(0, _LAST_BY_NAME["OffsetCommit"]),
                writes=True,
            ),
        ),
        "Heartbeat": _one(**member),
        "SyncGroup": _one(**member),
        "LeaveGroup": _one(groupId=own, **gone),
        "OffsetDelete": _one(groupId=own, topics=[{"name": own, "partitions": deleted}]),
        "DeleteGroups": _one(groupsNames=[own]),
        "DeleteTopics": _one(topics=[{"name": own}], topicNames=[own]),
    }


def _one(**form: Any) -> tuple[Question, ...]:
    return (Question(form, Versions(0, HIGHEST), writes=True),)


_REMOVERS: Final = {
    **dict.fromkeys(
        ("OffsetCommit", "Heartbeat", "SyncGroup", "LeaveGroup", "OffsetDelete"), "DeleteGroups"
    ),
    **dict.fromkeys(
        ("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "AlterConfigs"),
        "DeleteTopics",
    ),
    **dict.fromkeys(("Produce", "DeleteRecords"), "DeleteTopics"),
}
"""For each API, the API that removes what its requests create."""


def with_writes(plan: CasePlan, offered: Mapping[int, Versions], asking: Asking) -> CasePlan:
    """Return a plan followed by the cases that change the run's own topic and group."""
    if not asking.own.startswith(PREFIX):
        raise refuse("own", f"a name that begins with {PREFIX}", asking.own)
    questions = write_questions(asking.own)

    def asks(name: str, version: int) -> Question | None:
        return next((asked for asked in questions[name] if version in asked.versions), None)

    cases: list[Case] = []
    unasked = {one.api_key: one for one in plan.unasked if one.api_name in questions}
    others = [one for one in plan.unasked if one.api_name not in questions]
    for name in questions:
        api_key = api_key_of(name)
        if api_key not in unasked:
            continue
        remover = _REMOVERS.get(name, name)
        if api_key_of(remover) not in offered:
            reason = f"the broker does not offer {remover}, which removes what this creates"
            unasked[api_key] = replace(unasked[api_key], reason=reason)
            continue
        cases += api_cases(api_key, offered[api_key], asking, len(plan.cases) + len(cases), asks)
        asked = Versions.of(asked_versions(api_key, offered[api_key], asks))
        left = beyond(offered[api_key], asked)
        unasked[api_key] = Unasked(api_key, name, left, _ID_OF_TOPIC)
    some = (one for one in unasked.values() if one.versions)
    return CasePlan((*plan.cases, *cases), (*others, *some))


@contextmanager
def removing_own(
    connect: Callable[[], Broker], own: str, plan: CasePlan, left: list[str]
) -> Iterator[None]:
    """Remove everything that a plan's cases may have created when a block ends, in any way.

    The things that could not be removed are added to ``left``, with the reasons. If the block
    raises, they are also logged.
    """
    removers = {_REMOVERS.get(case.api_name, case.api_name) for case in plan.cases if case.writes}
    try:
        yield
    except BaseException:
        left += _remove(connect, own, removers)
        for words in left:
            _LOG.warning("left behind: %s", words)
        raise
    left += _remove(connect, own, removers)


def _remove(connect: Callable[[], Broker], own: str, removers: Collection[str]) -> Iterator[str]:
    """Remove the group and the topic; yield the reason for each that could not be removed."""
    for name, noun in (("DeleteGroups", "group"), ("DeleteTopics", "topic")):
        if name not in removers:
            continue
        try:
            with connect() as broker:
                version = broker.newest(name)
                kind = message(request_name(api_key_of(name), version))
                schema = kind.definition.schema(version)
                form = fitting(write_questions(own)[name][0].form, schema)
                answer = broker.call(name, form, version)
        except FlexwireError as error:
            yield f"{noun} {own}: {error}"
            continue
        codes = {field.code for field in answer.error_codes} - _GONE[name]
        if codes:
            yield f"{noun} {own}: error code {code_names(codes)}"
