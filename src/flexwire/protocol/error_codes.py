"""Error codes: their names, the releases that added them, and which of them are retriable.

The source is the ``Errors`` constants in the clients of Kafka 2.4 to 4.4. A code is retriable if
its exception is a ``RetriableException`` in 4.4. Codes are never reused and names rarely change, so
the names in the newest release are used for all releases. A field's name and type show whether the
field contains an error code, because Kafka's specs do not mark these fields.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from flexwire.protocol.error_meanings import MEANINGS

NO_ERROR: Final = 0
REBALANCE_IN_PROGRESS: Final = 27
MEMBER_ID_REQUIRED: Final = 79

# "ErrorCode", and longer names with this ending: "PartitionErrorCode", "TopicConfigErrorCode".
_FIELD: Final = ("ErrorCode", "int16")

_LOWEST: Final = -1
_NUMBER: Final = re.compile(r"[+-]?\d{1,9}")
# A name is also suggested if its similarity is below the best similarity by at most this much.
_AS_NEAR: Final = 0.02
# The codes by the release that added them, in ascending order. The codes for 2.4 may be older.
_NAMES: Final = {
    "2.4": """
        UNKNOWN_SERVER_ERROR NONE OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION
        INVALID_FETCH_SIZE LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT
        BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE MESSAGE_TOO_LARGE STALE_CONTROLLER_EPOCH
        OFFSET_METADATA_TOO_LARGE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS
        COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE
        NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS
        ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID UNKNOWN_MEMBER_ID
        INVALID_SESSION_TIMEOUT REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE
        TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED
        INVALID_TIMESTAMP UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE UNSUPPORTED_VERSION
        TOPIC_ALREADY_EXISTS INVALID_PARTITIONS INVALID_REPLICATION_FACTOR
        INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG NOT_CONTROLLER INVALID_REQUEST
        UNSUPPORTED_FOR_MESSAGE_FORMAT POLICY_VIOLATION OUT_OF_ORDER_SEQUENCE_NUMBER
        DUPLICATE_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE
        INVALID_PRODUCER_ID_MAPPING INVALID_TRANSACTION_TIMEOUT CONCURRENT_TRANSACTIONS
        TRANSACTION_COORDINATOR_FENCED TRANSACTIONAL_ID_AUTHORIZATION_FAILED SECURITY_DISABLED
        OPERATION_NOT_ATTEMPTED KAFKA_STORAGE_ERROR LOG_DIR_NOT_FOUND SASL_AUTHENTICATION_FAILED
        UNKNOWN_PRODUCER_ID REASSIGNMENT_IN_PROGRESS DELEGATION_TOKEN_AUTH_DISABLED
        DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH
        DELEGATION_TOKEN_REQUEST_NOT_ALLOWED DELEGATION_TOKEN_AUTHORIZATION_FAILED
        DELEGATION_TOKEN_EXPIRED INVALID_PRINCIPAL_TYPE NON_EMPTY_GROUP GROUP_ID_NOT_FOUND
        FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND
        TOPIC_DELETION_DISABLED FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH
        UNSUPPORTED_COMPRESSION_TYPE STALE_BROKER_EPOCH OFFSET_NOT_AVAILABLE MEMBER_ID_REQUIRED
        PREFERRED_LEADER_NOT_AVAILABLE GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID
        ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED NO_REASSIGNMENT_IN_PROGRESS
        GROUP_SUBSCRIBED_TO_TOPIC INVALID_RECORD
    """,
    "2.5": "UNSTABLE_OFFSET_COMMIT",
    "2.7": """
        THROTTLING_QUOTA_EXCEEDED PRODUCER_FENCED RESOURCE_NOT_FOUND DUPLICATE_RESOURCE
        UNACCEPTABLE_CREDENTIAL INCONSISTENT_VOTER_SET INVALID_UPDATE_VERSION
        FEATURE_UPDATE_FAILED
    """,
    "2.8": """
        PRINCIPAL_DESERIALIZATION_FAILURE SNAPSHOT_NOT_FOUND POSITION_OUT_OF_RANGE
        UNKNOWN_TOPIC_ID DUPLICATE_BROKER_REGISTRATION BROKER_ID_NOT_REGISTERED
        INCONSISTENT_TOPIC_ID INCONSISTENT_CLUSTER_ID
    """,
    "3.0": "TRANSACTIONAL_ID_NOT_FOUND",
    "3.1": "FETCH_SESSION_TOPIC_ID_ERROR",
    "3.3": "INELIGIBLE_REPLICA NEW_LEADER_ELECTED",
    "3.5": """
        OFFSET_MOVED_TO_TIERED_STORAGE FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID
        UNSUPPORTED_ASSIGNOR
    """,
    "3.6": "STALE_MEMBER_EPOCH",
    "3.7": """
        MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE UNKNOWN_CONTROLLER_ID
        UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE INVALID_REGISTRATION
    """,
    "3.8": "TRANSACTION_ABORTABLE",
    "3.9": """
        INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH
        FENCED_STATE_EPOCH INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND
    """,
    "4.0": "INVALID_REGULAR_EXPRESSION REBOOTSTRAP_REQUIRED",
    "4.1": """
        STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED
        SHARE_SESSION_LIMIT_REACHED
    """,
    "4.4": """
        GROUP_DELETION_FAILED STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
        CONTROLLER_ID_NOT_REGISTERED
    """,
}

# The old name of each code that was renamed, and the first release with the current name.
_RENAMED: Final = {6: ("NOT_LEADER_FOR_PARTITION", "2.6")}

ERROR_NAMES: Final = dict(enumerate(" ".join(_NAMES.values()).split(), _LOWEST))
"""The name of each error code.

>>> ERROR_NAMES[3]
'UNKNOWN_TOPIC_OR_PARTITION'
"""

# fmt: off
RETRIABLE: Final = frozenset((
    2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84,
    88, 89, 100, 103, 106, 122, 123, 133,
))
# fmt: on
"""The codes after which a client may repeat the request, because the repetition may succeed."""


class ErrorCode(NamedTuple):
    """An error code: its name, the release that added it, and its former name.

    ``since`` is "2.4" for all codes in 2.4. ``former_name`` is the name in releases before
    ``renamed``. ``is_retriable`` means that a repeated request may succeed. ``meaning`` is written
    in flexwire's own words.
    """

    code: int
    name: str
    since: str
    is_retriable: bool
    former_name: str | None = None
    renamed: str | None = None

    @property
    def meaning(self) -> str:
        """The cause of the error, and the remedy."""
        return MEANINGS[self.name]


def error_codes() -> tuple[ErrorCode, ...]:
    """Return every error code, in ascending order.

    >>> error_codes()[7]
    ErrorCode(code=6, name='NOT_LEADER_OR_FOLLOWER', since='2.4', is_retriable=True, \
former_name='NOT_LEADER_FOR_PARTITION', renamed='2.6')
    """
    since = [release for release, names in _NAMES.items() for _ in names.split()]
    return tuple(
        ErrorCode(code, name, release, code in RETRIABLE, *_RENAMED.get(code, (None, None)))
        for (code, name), release in zip(ERROR_NAMES.items(), since, strict=True)
    )


def error_name(code: int) -> str | None:
    """Return the name of an error code, or None if Kafka 4.4 has no such code.

    >>> error_name(6), error_name(9999)
    ('NOT_LEADER_OR_FOLLOWER', None)
    """
    return ERROR_NAMES.get(code)


def nearest_codes(text: str) -> tuple[ErrorCode, ...]:
    """Return the error codes that a string may mean, the nearest first. The result is never empty.

    For a number, the result is the nearest code. For other text, the result is up to three names
    that are similar to the text, or contain a similar part.

    >>> [one.name for one in nearest_codes("NOT_LEADR")]
    ['NOT_LEADER_OR_FOLLOWER']
    >>> [one.code for one in nearest_codes("-7")]
    [-1]
    """
    every = error_codes()
    if _NUMBER.fullmatch(text):
        return (min(every, key=lambda code: abs(code.code - int(text))),)
    name = text.upper()[:80].replace("-", "_").replace(" ", "_")
    likeness = {code: _likeness(name, code) for code in every}
    best = max(likeness.values())
    nearest = sorted(every, key=lambda code: -likeness[code])
    return tuple(code for code in nearest if likeness[code] >= best - _AS_NEAR)[:3]


def _likeness(text: str, code: ErrorCode) -> float:
    """Return the similarity of a string to a code's name or to a part of the name.

    1 means equal.
    """
    parts = []
    for name in (code.name, code.former_name or ""):
        words = name.split("_")
        parts += ["_".join(words[at:])[: len(text) + 1] for at in range(len(words))]
    return max(SequenceMatcher(None, text, part).ratio() for part in (*parts, code.name))


def is_error_code(name: str, kind: str) -> bool:
    """Return whether a field with this name (in the spec or in JSON) and type is an error code.

    >>> is_error_code("PartitionErrorCode", "int16"), is_error_code("errorCode", "int16")
    (True, True)
    """
    return kind == _FIELD[1] and f"{name[:1].upper()}{name[1:]}".endswith(_FIELD[0])
