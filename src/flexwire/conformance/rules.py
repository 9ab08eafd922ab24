"""The rules for judging responses, each with its wording and its source.

A rule is either kept or broken. If Apache Kafka itself breaks a rule, this is called a quirk.
`QUIRKS` lists the quirks with their releases and reasons.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from flexwire.versions import Versions


class ConformanceRule(NamedTuple):
    """A rule: its name, its requirement, and its source."""

    name: str
    sentence: str
    source: str


_SPEC: Final = "the message specs of Apache Kafka"
_GUIDE: Final = "the protocol guide of Apache Kafka"
_MEASURED: Final = "measured on Apache Kafka 3.9.2 and 4.4.0"

ANSWERED: Final = ConformanceRule(
    "ANSWERED", "A broker answers every request whose version it offers.", "KIP-35"
)
FRAME: Final = ConformanceRule(
    "FRAME",
    "A response is a frame: a four-byte length, followed by as many bytes as the length states.",
    _GUIDE,
)
CORRELATION_ID: Final = ConformanceRule(
    "CORRELATION_ID",
    "The first four bytes of a response are exactly the correlation id of its request.",
    _GUIDE,
)
RESPONSE_HEADER: Final = ConformanceRule(
    "RESPONSE_HEADER",
    "In flexible versions, a response header contains tagged fields, except for ApiVersions.",
    "KIP-482 and KIP-511",
)
BODY: Final = ConformanceRule(
    "BODY",
    "A response contains exactly the fields that the spec defines for the request's version.",
    _SPEC,
)
END: Final = ConformanceRule("END", "A response ends with its last field.", _SPEC)
ONE_RESPONSE: Final = ConformanceRule(
    "ONE_RESPONSE", "A broker sends exactly one response to a request.", _GUIDE
)
ECHO: Final = ConformanceRule(
    "ECHO",
    "A response lists each topic, group or transactional id in the request.",
    _SPEC,
)
TAGS: Final = ConformanceRule(
    "TAGS",
    "A broker skips tagged fields that it does not know, and answers as if these fields were not "
    "there.",
    "KIP-482",
)
CLIENT_ID: Final = ConformanceRule("CLIENT_ID", "The client id of a request may be null.", _SPEC)
LISTS: Final = ConformanceRule(
    "LISTS", "A list in a request may be empty or contain hundreds of elements.", _SPEC
)
FALLBACK: Final = ConformanceRule(
    "FALLBACK",
    "If a broker lacks the version of an ApiVersions request, the response has version 0, "
    "contains error 35, and lists the supported versions of ApiVersions.",
    "KIP-511",
)
REFUSED: Final = ConformanceRule(
    "REFUSED",
    "A broker closes the connection if it does not support the version of a request, unless the "
    "request is ApiVersions.",
    _MEASURED,
)
DAMAGED: Final = ConformanceRule(
    "DAMAGED", "A broker closes the connection if it cannot read a request.", _MEASURED
)
KAFKA_TAKES: Final = ConformanceRule(
    "KAFKA_TAKES",
    "Apache Kafka accepts this request. Another broker may refuse this request.",
    _MEASURED,
)

RULES: Final = (
    *(ANSWERED, FRAME, CORRELATION_ID, RESPONSE_HEADER, BODY, END, ONE_RESPONSE, ECHO, TAGS),
    *(CLIENT_ID, LISTS, FALLBACK, REFUSED, DAMAGED, KAFKA_TAKES),
)
"""All rules, in the order in which they are judged."""

NOT_JUDGED_CODES: Final = frozenset((29, 30, 31, 35, 53, 54, 61, 65))
"""The error codes that only prove that a permission is missing or a feature is disabled."""


SEEN_CODES: Final = {
    "AddRaftVoter": frozenset((104,)),
    "AlterReplicaLogDirs": frozenset((57,)),
    "ConsumerGroupDescribe": frozenset((69,)),
    "CreateDelegationToken": frozenset((64,)),
    "CreatePartitions": frozenset((37,)),
    "CreateTopics": frozenset((36,)),
    "DeleteGroups": frozenset((69,)),
    "DeleteShareGroupOffsets": frozenset((68,)),
    "DescribeDelegationToken": frozenset((64,)),
    "DescribeGroups": frozenset((69,)),
    "DescribeTransactions": frozenset((105,)),
    "DescribeUserScramCredentials": frozenset((91,)),
    "ExpireDelegationToken": frozenset((64,)),
    "Heartbeat": frozenset((25,)),
    "LeaveGroup": frozenset((25,)),
    "OffsetDelete": frozenset((69,)),
    "RemoveRaftVoter": frozenset((104,)),
    "RenewDelegationToken": frozenset((64,)),
    "SaslHandshake": frozenset((34,)),
    "ShareGroupDescribe": frozenset((69,)),
    "StreamsGroupDescribe": frozenset((69,)),
    "SyncGroup": frozenset((23, 25)),
    "UnregisterBroker": frozenset((102,)),
    "UpdateFeatures": frozenset((95,)),
}
"""The error codes that Apache Kafka 3.9.2, 4.0.2 and 4.4.0 returned in flexwire's runs, by API.

Retriable codes and `NOT_JUDGED_CODES` are left out: they depend on the state of a cluster.
"""


class Quirk(NamedTuple):
    """A rule that some Apache Kafka releases break.

    ``releases`` contains prefixes of the names of these releases. ``reason`` contains the Jira
    issue number or states how the quirk was measured.
    """

    rule: ConformanceRule
    api_name: str
    versions: Versions
    releases: tuple[str, ...]
    reason: str


QUIRKS: Final = (
    Quirk(
        ANSWERED,
        "Produce",
        Versions(0, 2),
        ("4",),
        "KAFKA-18659: Kafka 4.x offers Produce 0 to 2 for old clients, but closes the connection",
    ),
    Quirk(
        LISTS,
        "OffsetFetch",
        Versions(8, 9),
        ("3.9", "4.0"),
        "measured: Kafka 3.9.2 and 4.0.2 never answer an OffsetFetch request without groups, but "
        "Kafka 4.4.0 does",
    ),
)
"""The quirks that the cases can trigger."""


def find_quirk(rule: ConformanceRule, api_name: str, version: int, release: str) -> Quirk | None:
    """Return the quirk of a release that explains a broken rule, or None if there is none."""
    return next(
        (
            quirk
            for quirk in QUIRKS
            if quirk.rule is rule
            and quirk.api_name == api_name
            and version in quirk.versions
            and release.startswith(quirk.releases)
        ),
        None,
    )
