"""Bytes in a message that are themselves a message, such as the data of group members.

A broker forwards the data of group members. The protocol type of the group identifies the format:
"consumer" for KafkaConsumer and similar clients, "connect" for Connect's workers. Both formats
begin with an int16 version. A member can send any bytes here; bytes in no known format remain
unchanged.

Sources: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json. Connect has no
specs: the layout comes from the Java classes ConnectProtocol and
IncrementalCooperativeConnectProtocol (KIP-415, KIP-507). DefaultPrincipalData.json is for
KIP-590's envelopes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.codec import Annotation, Explanation, Message, explain, message, message_of
from flexwire.errors import UnknownMessageError
from flexwire.schema.parse import parse_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION_BYTES: Final = 2
"""The size of the int16 version that precedes the body of such a message."""

_INDEX: Final = re.compile(r"\[\d+\]")
_PROTOCOL_TYPE: Final = "protocolType"

_CONNECT_STATE: Final = """{
  "type": "data", "name": "ConnectWorkerState", "validVersions": "0-2", "flexibleVersions": "none",
  "fields": [
    {"name": "Url", "type": "string", "versions": "0+"},
    {"name": "ConfigOffset", "type": "int64", "versions": "0+"},
    {"name": "Allocation", "type": "bytes", "versions": "1+", "nullableVersions": "1+"}
  ]
}"""
_CONNECT_ASSIGNMENT: Final = """{
  "type": "data", "name": "ConnectAssignment", "validVersions": "0-2", "flexibleVersions": "none",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Leader", "type": "string", "versions": "0+"},
    {"name": "LeaderUrl", "type": "string", "versions": "0+"},
    {"name": "ConfigOffset", "type": "int64", "versions": "0+"},
    {"name": "Assigned", "type": "[]Connector", "versions": "0+", "nullableVersions": "1+"},
    {"name": "Revoked", "type": "[]Connector", "versions": "1+", "nullableVersions": "1+"},
    {"name": "ScheduledDelay", "type": "int32", "versions": "1+"}
  ],
  "commonStructs": [{"name": "Connector", "versions": "0+", "fields": [
    {"name": "Connector", "type": "string", "versions": "0+"},
    {"name": "Tasks", "type": "[]int32", "versions": "0+"}
  ]}]
}"""


class GroupMessages(NamedTuple):
    """The messages in the data of members (``subscription``) and in the group's assignments."""

    subscription: str
    assignment: str


CONSUMERS: Final = "consumer"
"""The protocol type of a group of consumers."""
GROUP_MESSAGES: Final = {
    CONSUMERS: GroupMessages("ConsumerProtocolSubscription", "ConsumerProtocolAssignment"),
    "connect": GroupMessages("ConnectWorkerState", "ConnectAssignment"),
}
"""The messages by the protocol type of a group."""

_SUBSCRIPTION, _ASSIGNMENT = 0, 1
# The kind of messages in a field, by message and path without indexes.
_OF_GROUPS: Final = {
    ("JoinGroupRequest", "protocols.metadata"): _SUBSCRIPTION,
    ("JoinGroupResponse", "members.metadata"): _SUBSCRIPTION,
    ("SyncGroupRequest", "assignments.assignment"): _ASSIGNMENT,
    ("SyncGroupResponse", "assignment"): _ASSIGNMENT,
    ("DescribeGroupsResponse", "groups.members.memberMetadata"): _SUBSCRIPTION,
    ("DescribeGroupsResponse", "groups.members.memberAssignment"): _ASSIGNMENT,
    ("GroupMetadataValue", "members.subscription"): _SUBSCRIPTION,
    ("GroupMetadataValue", "members.assignment"): _ASSIGNMENT,
}
# Fields that always contain the same message.
_ALWAYS: Final = {
    ("ConnectWorkerState", "allocation"): "ConnectAssignment",
    ("EnvelopeRequest", "requestPrincipal"): "DefaultPrincipalData",
}
SELF_VERSIONED: Final = frozenset(
    name for names in [*GROUP_MESSAGES.values(), _ALWAYS.values()] for name in names
)
"""The messages that follow an int16 that contains their version."""


@cache
def _connect(name: str) -> type[Message]:
    spec = {"ConnectWorkerState": _CONNECT_STATE, "ConnectAssignment": _CONNECT_ASSIGNMENT}[name]
    return message_of(parse_spec(spec, name))


def _class(name: str) -> type[Message]:
    return _connect(name) if name.startswith("Connect") else message(name)


def with_nested(explanation: Explanation, message_name: str) -> Explanation:
    """Return an explanation that also covers the messages inside bytes."""
    return Explanation(
        tuple(_opened(explanation, message_name)), explanation.rest, explanation.error
    )


def read_versioned(name: str, data: bytes) -> Message:
    """Return the message with this name, which follows its int16 version.

    As in Kafka's reader, a version above the highest is read as the highest, and bytes after the
    message are ignored. Raises `CodecError` and `UnknownMessageError` for other bytes.
    """
    kind = _class(name)
    version = int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
    decoded, _ = kind.decode_prefix(data, min(version, kind.entry.versions.highest), VERSION_BYTES)
    return decoded


def explain_versioned(kind: type[Message], data: bytes) -> tuple[Explanation, int] | None:
    """Explain a message that follows its int16 version. Return None for other bytes.

    Offsets are counted from the first byte of the version. The second result is the version.
    """
    version = int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
    if len(data) < VERSION_BYTES or version < 0:
        return None
    try:
        inner = explain(kind, data[VERSION_BYTES:], version)
    except UnknownMessageError:
        return None
    if inner.error is not None:
        return None
    inner = with_nested(inner, kind.entry.name)
    shifted = tuple(
        _shifted(annotation, VERSION_BYTES, annotation.path) for annotation in inner.annotations
    )
    first = Annotation(0, VERSION_BYTES, "version", "INT16", version)
    return Explanation((first, *shifted), inner.rest + VERSION_BYTES, None), version


def _opened(explanation: Explanation, message_name: str) -> Iterator[Annotation]:
    # The protocol type precedes the members' data, in versions that contain the type.
    protocol_type = None
    for annotation in explanation.annotations:
        if annotation.path.rpartition(".")[2] == _PROTOCOL_TYPE:
            protocol_type = annotation.value
        at = (message_name, _INDEX.sub("", annotation.path))
        if at in _OF_GROUPS or at in _ALWAYS:
            yield from _expanded(annotation, _candidates(at, protocol_type))
        else:
            yield annotation


def _candidates(at: tuple[str, str], protocol_type: object) -> list[str]:
    """Return the messages that the bytes may be, the most likely first."""
    if at in _ALWAYS:
        return [_ALWAYS[at]]
    which = _OF_GROUPS[at]
    if isinstance(protocol_type, str) and protocol_type:
        messages = GROUP_MESSAGES.get(protocol_type)
        return [] if messages is None else [messages[which]]
    return [names[which] for names in GROUP_MESSAGES.values()]


def _expanded(annotation: Annotation, names: list[str]) -> Iterator[Annotation]:
    content = annotation.value if isinstance(annotation.value, bytes) else b""
    for name in names:
        inner = explain_versioned(_class(name), content)
        if inner is None:
            continue
        start = annotation.offset + annotation.length - len(content)
        kind = f"length of {name}"
        yield Annotation(
            annotation.offset, start - annotation.offset, annotation.path, kind, len(content)
        )
        for part in inner[0].annotations:
            yield _shifted(part, start, f"{annotation.path}.{part.path}")
        return
    yield annotation


def _shifted(annotation: Annotation, by: int, path: str) -> Annotation:
    return Annotation(
        annotation.offset + by, annotation.length, path, annotation.type, annotation.value
    )
