"""The message fields that contain credentials, and how these fields are withheld.

A single list contains the fields, and all code that shows messages uses this list. In case of
doubt, a value is withheld: a configuration counts as secret because of its name, because of its
value, or because a broker marks it as sensitive. A frame that cannot be decoded has no fields and
is withheld completely (`flexwire.protocol.sasl`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msgspec import Struct

from flexwire.codec.structs import structs_at
from flexwire.schema.spec import snake_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec import Message

    _Hide = Callable[[bytes | str], bytes | str]

WITHHELD: Final = "withheld"
_WITHHELD: Final = WITHHELD.encode()

# Names of configurations of Kafka's type "password", with any listener prefix, and likely names in
# plug-ins and clients.
_SECRET_CONFIG: Final = re.compile(
    r"passw|passphrase|passcode|(^|[._-])(pwd|pass|pin|auth)([._-]|$)|secret|credential|token|jaas"
    r"|(private|access|api|account|encryption|signing|session|shared)[._-]?keys?([._-]|$)"
    r"|user[._-]?info|(key|trust)store\.(key|certificate|certificates)"
    r"|connection[._-]?string|connection[._-]?url",
    re.IGNORECASE,
)
# Values that contain a secret: JAAS options, user and password in a URL, or a PEM key.
_SECRET_VALUE: Final = re.compile(
    r"(passw|secret|token|credential)[\w.-]*[\"']?\s*[=:]|://[^/\s@]*:[^/\s@]*@|PRIVATE KEY",
    re.IGNORECASE,
)
SECRET_CONFIG: Final = _SECRET_CONFIG.pattern
"""A pattern for the names of secret configurations, in any case, for Python and Java."""
SECRET_VALUE: Final = _SECRET_VALUE.pattern
"""A pattern for the values of secret configurations."""
# The name and the fixed id of the cluster's metadata log (KIP-595). The records of this log contain
# SCRAM salts and keys, and all configurations.
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = UUID(int=1)
# The message that contains the records of this log, the attribute that contains its topics, and the
# attributes that contain a topic's name and id.
METADATA_CARRIER: Final = ("FetchResponse", "responses", "topic", "topic_id")


@dataclass(frozen=True, slots=True)
class CredentialField:
    """A field that contains a credential: its message, its path of spec names, and the reason.

    If ``if_secret`` is not empty, it names the sibling field that contains the name of a
    configuration, and the value belongs to this configuration. The value is a credential if the
    configuration's name, the value or a broker's ``IsSensitive`` indicates this. If ``if_quoting``
    is true, the field is a broker's text, which may quote the request. The text counts as a
    credential unless the request is known to contain no credential.
    """

    message_name: str
    path: tuple[str, ...]
    reason: str
    if_secret: str = ""
    if_quoting: bool = False

    @property
    def attributes(self) -> tuple[str, ...]:
        """The path as attribute names."""
        return tuple(map(snake_case, self.path))


def _field(
    message_name: str, path: str, reason: str, if_secret: str = "", *, if_quoting: bool = False
) -> CredentialField:
    return CredentialField(message_name, tuple(path.split(".")), reason, if_secret, if_quoting)


_TOKEN = "a SASL token contains the password (PLAIN) or enough to guess it offline (SCRAM)"  # noqa: S105  # this is a reason, not a password
_HMAC = "anyone who has a delegation token's HMAC can log in"
_SCRAM = "a SCRAM user's salt and hashed password are enough to guess the password offline"
_REPLY = "the broker's response to a SASL token can quote the token"
_METADATA = "the cluster's metadata contains SCRAM keys and all configurations"
_CONFIG = "the value of a configuration can be a password or a key"
_QUOTE = "a broker quotes the value that it rejects, and a plug-in can return any text"
_TOPOLOGY = "a broker keeps the topology of an earlier request and quotes it in later responses"
_ENVELOPE = "a complete forwarded message, which can contain any credential"

CREDENTIALS: Final = (
    _field("SaslAuthenticateRequest", "AuthBytes", _TOKEN),
    _field("SaslAuthenticateResponse", "AuthBytes", _TOKEN),
    _field("SaslAuthenticateResponse", "ErrorMessage", _REPLY),
    _field("AlterUserScramCredentialsRequest", "Upsertions.Salt", _SCRAM),
    _field("AlterUserScramCredentialsRequest", "Upsertions.SaltedPassword", _SCRAM),
    _field("CreateDelegationTokenResponse", "Hmac", _HMAC),
    _field("RenewDelegationTokenRequest", "Hmac", _HMAC),
    _field("ExpireDelegationTokenRequest", "Hmac", _HMAC),
    _field("DescribeDelegationTokenResponse", "Tokens.Hmac", _HMAC),
    _field("EnvelopeRequest", "RequestData", _ENVELOPE),
    _field("EnvelopeResponse", "ResponseData", _ENVELOPE),
    _field("AlterConfigsRequest", "Resources.Configs.Value", _CONFIG, "Name"),
    _field("IncrementalAlterConfigsRequest", "Resources.Configs.Value", _CONFIG, "Name"),
    _field("DescribeConfigsResponse", "Results.Configs.Value", _CONFIG, "Name"),
    _field("DescribeConfigsResponse", "Results.Configs.Synonyms.Value", _CONFIG, "Name"),
    _field("CreateTopicsRequest", "Topics.Configs.Value", _CONFIG, "Name"),
    _field("CreateTopicsResponse", "Topics.Configs.Value", _CONFIG, "Name"),
    *(
        _field(
            message_name,
            f"{groups}Topology.Subtopologies.{topics}.TopicConfigs.Value",
            _CONFIG,
            "Key",
        )
        for message_name, groups in (
            ("StreamsGroupHeartbeatRequest", ""),
            ("StreamsGroupDescribeResponse", "Groups."),
        )
        for topics in ("StateChangelogTopics", "RepartitionSourceTopics")
    ),
    *(
        _field(message_name, path, _QUOTE, if_quoting=True)
        for message_name, path in (
            ("AlterConfigsResponse", "Responses.ErrorMessage"),
            ("IncrementalAlterConfigsResponse", "Responses.ErrorMessage"),
            ("CreateTopicsResponse", "Topics.ErrorMessage"),
            ("AlterUserScramCredentialsResponse", "Results.ErrorMessage"),
        )
    ),
    _field("StreamsGroupHeartbeatResponse", "ErrorMessage", _TOPOLOGY),
    _field("StreamsGroupHeartbeatResponse", "Status.StatusDetail", _TOPOLOGY),
    _field("FetchSnapshotResponse", "Topics.Partitions.UnalignedRecords", _METADATA),
    _field("UserScramCredentialRecord", "Salt", _SCRAM),
    _field("UserScramCredentialRecord", "StoredKey", _SCRAM),
    _field("UserScramCredentialRecord", "ServerKey", _SCRAM),
    _field("ConfigRecord", "Value", _CONFIG, "Name"),
)

_OF_MESSAGE: Final = {
    name: tuple(field for field in CREDENTIALS if field.message_name == name)
    for name in {field.message_name for field in CREDENTIALS}
}
# The requests for records, which may belong to the cluster's metadata.
_FETCHES: Final = re.sub("Response$", "Request", METADATA_CARRIER[0])
# Requests that carry credentials, or whose responses carry credentials.
_HIDING: Final = frozenset(re.sub("Response$", "Request", name) for name in _OF_MESSAGE)


def credential_fields(message_name: str) -> tuple[CredentialField, ...]:
    """Return a message's fields that contain credentials. Most messages have no such field."""
    return _OF_MESSAGE.get(message_name, ())


def carries_credentials(message_name: str) -> bool:
    """Return whether the bytes of the message must not be shown unchanged.

    >>> carries_credentials("SaslAuthenticateRequest"), carries_credentials("FetchRequest")
    (True, False)
    """
    return bool(credential_fields(message_name))


def hides_credentials(message_name: str, payload: bytes) -> bool:
    """Return whether a request, its response or the records in it may carry credentials.

    If so, later bytes on the connection that cannot be decoded may be credentials.
    """
    if message_name in _HIDING:
        return True
    if message_name != _FETCHES:
        return False
    return METADATA_TOPIC.encode() in payload or METADATA_TOPIC_ID.bytes in payload


def may_hide_credentials(message_name: str) -> bool:
    """Return whether `hides_credentials` is true for some request with this name.

    >>> may_hide_credentials("FetchRequest"), may_hide_credentials("ProduceRequest")
    (True, False)
    """
    return message_name in _HIDING or message_name == _FETCHES


def may_be_quoted(request_name: str) -> bool:
    """Return whether a text in the response may quote a credential in the request.

    >>> may_be_quoted("CreateTopicsRequest"), may_be_quoted("DeleteTopicsRequest")
    (True, False)
    """
    answer = re.sub("Request$", "Response", request_name)
    return any(field.if_quoting for field in credential_fields(answer))


def withhold(message: Message, *, keep_length: bool = False, asked_plainly: bool = False) -> int:
    """Replace every credential in a decoded message with "withheld", and return their number.

    The message is modified. Null remains null, because it reveals nothing. In a message that
    carries credentials, unknown tagged fields may also be credentials. With ``keep_length``, the
    replacement consists of asterisks, so that the message keeps its size. ``asked_plainly`` means
    that the message answers a request in which nothing was withheld. In that case, texts that could
    only quote this request are kept.
    """
    name = type(message).__name__
    hide = _filled if keep_length else _word
    if name == METADATA_CARRIER[0]:
        return _withhold_metadata(message, hide)
    fields = credential_fields(name)
    count = _withhold_unknown(message, hide) if fields else 0
    for field in fields:
        *outer, last = field.attributes
        for holders in structs_at(message, outer):
            holder = holders[-1]
            value = getattr(holder, last)
            if value is None or (field.if_secret and not _is_secret(holders, field, value)):
                continue
            if field.if_quoting and (asked_plainly or not value):
                continue
            setattr(holder, last, hide(value))
            count += 1
    return count


def _word(value: bytes | str) -> bytes | str:
    return _WITHHELD if isinstance(value, bytes) else WITHHELD


def _filled(value: bytes | str) -> bytes | str:
    if isinstance(value, bytes):
        return make_filler(len(value))
    return make_filler(len(value.encode())).decode()


def make_filler(length: int) -> bytes:
    """Return this many asterisks for a possible credential. Asterisks never look like a request."""
    return b"*" * length


def _withhold_metadata(message: Any, hide: _Hide) -> int:
    count = 0
    for topic in message.responses:
        if topic.topic != METADATA_TOPIC and topic.topic_id != METADATA_TOPIC_ID:
            continue
        count += _withhold_unknown(topic, hide)
        for partition in topic.partitions:
            if partition.records:
                partition.records = hide(partition.records)
                count += 1
    return count


def _withhold_unknown(struct: Any, hide: _Hide) -> int:
    count = len(struct.unknown_tagged_fields)
    struct.unknown_tagged_fields = {
        tag: hide(value) for tag, value in struct.unknown_tagged_fields.items()
    }
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Struct):
                count += _withhold_unknown(inner, hide)
    return count


def _is_secret(holders: tuple[Any, ...], field: CredentialField, value: str) -> bool:
    # A synonym is nested inside the configuration to which the value may belong.
    configs = [holders[-1], *(outer for outer in holders if hasattr(outer, "is_sensitive"))]
    names = [getattr(config, field.if_secret.lower()) for config in configs]
    return (
        any(getattr(config, "is_sensitive", False) for config in configs)
        # A request log may omit the name of a configuration. Without a name, the value may belong
        # to any configuration.
        or any(name is None or _SECRET_CONFIG.search(name) for name in names)
        or _SECRET_VALUE.search(value) is not None
    )
