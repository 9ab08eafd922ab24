"""The requests that may be sent to any cluster, and the reasons why all others are not sent.

A request is listed here only if it changes nothing: it creates no topic, group, member, session or
producer id, and contains only names that do not exist. A request in which a null or empty list
means "all" is expensive in a large cluster. Such a list is sent only if the protocol has no other
read-only request. APIs without a question are not tested; `why_not_asked` returns the reason.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.client.cluster import ANY
from flexwire.client.write_requests import READING, why_it_writes
from flexwire.codec import message
from flexwire.protocol.apis import request_entries
from flexwire.protocol.credentials import METADATA_TOPIC
from flexwire.versions import HIGHEST, Versions
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.client.cluster import Route

NAME: Final = "flexwire-conform-{number}"
"""The names of topics, groups and users in requests. No cluster contains these names."""

NAMESPACE: Final = uuid.UUID("5b0f8f5e-2d3e-5c1a-9b1e-2f6a3c4d5e6f")
"""Topic ids are derived from this value and a name, so they are the same in each run."""

_ID: Final = f"id of {NAME}"
_ALL: Final = Versions(0, HIGHEST)
_TOPIC_RESOURCE: Final = 2
_CLIENT_METRICS_RESOURCE: Final = 16
_NOBODYS_PRODUCER_ID: Final = 2**62


NOTHING_LEARNED: Final[Mapping[str, Any]] = {}


class Learned(NamedTuple):
    """A value that only the broker knows. Until the value is known, ``until`` is sent instead."""

    name: str
    until: Any


class Question(NamedTuple):
    """A request to an API for a range of versions: its JSON form, with the fields of all versions.

    Strings that contain ``{number}`` are names that do not exist. Separate cases send the form with
    empty lists and with long lists of such names, unless ``one_only`` states a reason not to do so.
    ``is_filter`` is true if the answer lists only existing objects, so the answer does not have to
    repeat the names in the request. ``ends_connection`` is true if the broker may read later bytes
    on the same connection differently. ``writes`` is true if the request changes something, in
    which case the next request may get a different error code. ``route`` determines which broker of
    the cluster has to answer; other brokers answer with an error code.
    """

    form: Mapping[str, Any]
    versions: Versions = _ALL
    one_only: str = ""
    is_filter: bool = False
    ends_connection: bool = False
    writes: bool = False
    route: Route = ANY


def _about(topics: str, name: str, partitions: str, *partition: Any) -> dict[str, Any]:
    """Return the form of a request about one topic and its partitions."""
    return {topics: [{name: NAME, "topicId": _ID, partitions: list(partition)}]}


_GROUPS: Final = {"groupIds": [NAME], "includeAuthorizedOperations": False}

QUESTIONS: Final[dict[str, tuple[Question, ...]]] = {
    "ApiVersions": (Question({}),),
    "Metadata": (
        # Here an empty list means all topics, but naming a topic could create it.
        Question({"topics": []}, Versions(0, 0)),
        # Naming a topic could create it. The field that prevents this was added in version 4.
        Question({"topics": []}, Versions(1, 3)),
        Question(
            {"topics": [{"name": NAME}], "allowAutoTopicCreation": False}, Versions(4, HIGHEST)
        ),
    ),
    "Fetch": (
        # Session epoch -1 does not use up a session on the broker, and the broker does not wait.
        Question(
            {
                "replicaId": -1,
                "maxWaitMs": 0,
                "minBytes": 0,
                "maxBytes": 1024,
                "sessionId": 0,
                "sessionEpoch": -1,
                "topics": [
                    {
                        "topic": NAME,
                        "topicId": _ID,
                        "partitions": [
                            {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1024}
                        ],
                    }
                ],
            }
        ),
    ),
    "ListOffsets": (
        Question(
            {
                "replicaId": -1,
                **_about(
                    *("topics", "name", "partitions"),
                    {"partitionIndex": 0, "timestamp": -1, "maxNumOffsets": 1},
                ),
            }
        ),
    ),
    "OffsetFetch": (
        Question(
            {
                "groupId": NAME,
                **_about("topics", "name", "partitionIndexes", 0),
                "groups": [{"groupId": NAME, **_about("topics", "name", "partitionIndexes", 0)}],
            }
        ),
    ),
    "OffsetForLeaderEpoch": (
        Question(_about("topics", "topic", "partitions", {"partition": 0, "leaderEpoch": 0})),
    ),
    "FindCoordinator": (
        # A search for a coordinator creates the coordinator's internal topic.
        Question({"coordinatorKeys": []}, Versions(4, HIGHEST)),
    ),
    "DescribeGroups": (Question({"groups": [NAME], "includeAuthorizedOperations": False}),),
    "ListGroups": (
        Question(
            {"statesFilter": [NAME]},
            one_only="an empty list means all states, and only a few states exist",
            is_filter=True,
        ),
    ),
    "SaslHandshake": (Question({"mechanism": NAME}, is_filter=True, ends_connection=True),),
    "DescribeConfigs": (
        Question(
            {
                "resources": [
                    {
                        "resourceType": _TOPIC_RESOURCE,
                        "resourceName": NAME,
                        "configurationKeys": [NAME],
                    }
                ]
            }
        ),
    ),
    "DescribeAcls": (
        Question(
            {
                "resourceTypeFilter": _TOPIC_RESOURCE,
                "resourceNameFilter": NAME,
                "principalFilter": None,
                "hostFilter": None,
            },
            is_filter=True,
        ),
    ),
    "DescribeLogDirs": (Question(_about("topics", "topic", "partitions", 0), is_filter=True),),
    "DescribeDelegationToken": (
        Question({"owners": [{"principalType": "User", "principalName": NAME}]}, is_filter=True),
    ),
    "ListPartitionReassignments": (
        Question(_about("topics", "name", "partitionIndexes", 0), is_filter=True),
    ),
    "DescribeClientQuotas": (
        Question(
            {
                "components": [{"entityType": "client-id", "matchType": 0, "match": NAME}],
                "strict": True,
            },
            one_only="an empty list means all quotas, and each type may appear only once",
            is_filter=True,
        ),
    ),
    "DescribeUserScramCredentials": (
        Question({"users": [{"name": NAME}]}, one_only="an empty list means all users"),
    ),
    "DescribeQuorum": (
        Question(
            {"topics": [{"topicName": METADATA_TOPIC, "partitions": [{"partitionIndex": 0}]}]}
        ),
    ),
    "DescribeCluster": (Question({"includeClusterAuthorizedOperations": False}),),
    "DescribeProducers": (Question(_about("topics", "name", "partitionIndexes", 0)),),
    "DescribeTransactions": (Question({"transactionalIds": [NAME]}),),
    "ListTransactions": (Question({"producerIdFilters": [_NOBODYS_PRODUCER_ID]}, is_filter=True),),
    "ConsumerGroupDescribe": (Question(_GROUPS),),
    "ListConfigResources": (
        Question({"resourceTypes": [_CLIENT_METRICS_RESOURCE]}, is_filter=True),
    ),
    "DescribeTopicPartitions": (
        Question({"topics": [{"name": NAME}], "responsePartitionLimit": 1}),
    ),
    "ShareGroupDescribe": (Question(_GROUPS),),
    "StreamsGroupDescribe": (Question(_GROUPS),),
    "DescribeShareGroupOffsets": (
        Question(
            {"groups": [{"groupId": NAME, "topics": [{"topicName": NAME, "partitions": [0]}]}]}
        ),
    ),
}
"""The requests to send for each API, one per range of versions."""

NOT_ASKED: Final = {
    "FindCoordinator": "the first request makes the cluster create the coordinator's "
    "internal topic",
    "GetTelemetrySubscriptions": "the request registers a client instance with the broker",
    "ReadShareGroupStateSummary": "only brokers send this request, which reads the state of "
    "an existing share group",
    "SaslAuthenticate": "a failed login may count against a user's account",
}
"""Read-only APIs that are not tested, or not tested in every version, with the reasons."""


def question(api_name: str, version: int) -> Question | None:
    """Return the request to send for an API in a version, or None if no request is sent.

    >>> question("Metadata", 12).form["allowAutoTopicCreation"]
    False
    >>> question("FindCoordinator", 3) is None
    True
    """
    return next((asked for asked in QUESTIONS.get(api_name, ()) if version in asked.versions), None)


def why_not_asked(api_key: int, api_name: str) -> str:
    """Return the reason why an API, or a version of an API, is not tested.

    >>> why_not_asked(20, "DeleteTopics")
    'DeleteTopics may change something'
    """
    if api_name in READING:
        return NOT_ASKED[api_name]
    request = message(request_entries(api_key)[0].name)
    return why_it_writes(api_name, request()) or NOT_ASKED[api_name]


def one_question(route: Route = ANY, **form: Any) -> tuple[Question, ...]:
    """Return an API's only question, which applies to all versions and changes something."""
    return (Question(form, writes=True, route=route),)


def filled(form: Any, number: int = 0, known: Mapping[str, Any] = NOTHING_LEARNED) -> Any:
    """Return a form with ``{number}`` replaced and with topic ids derived from names.

    ``known`` contains the values that the broker has sent, keyed by the names of their `Learned`.

    >>> filled({"groups": [NAME]}, 7)
    {'groups': ['flexwire-conform-7']}
    >>> filled([Learned("epoch", -1), Learned("id", 0)], known={"id": 4000})
    [-1, 4000]
    """
    if isinstance(form, dict):
        return {key: filled(value, number, known) for key, value in form.items()}
    if isinstance(form, list):
        return [filled(value, number, known) for value in form]
    if isinstance(form, Learned):
        return known.get(form.name, form.until)
    if form == _ID:
        return id_of(NAME.format(number=number))
    return form.format(number=number) if isinstance(form, str) else form


def id_of(name: str) -> str:
    """Return the id that is derived from a name, in Kafka's text form."""
    return uuid_text(uuid.uuid5(NAMESPACE, name))


def has_names(form: Any) -> bool:
    """Return whether a form contains, at any depth, a nonexistent name made from `NAME`.

    >>> has_names([{"name": NAME}]), has_names([7])
    (True, False)
    """
    if isinstance(form, dict):
        return any(map(has_names, form.values()))
    if isinstance(form, list):
        return any(map(has_names, form))
    return isinstance(form, str) and NAME in form
