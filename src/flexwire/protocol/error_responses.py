"""Make error responses from a request alone or from a broker's own response.

The source is the ``getErrorResponse`` method of the requests in Kafka's clients, 3.9 and 4.4. This
method builds a broker's response if a complete request fails. Most of these methods follow one
pattern, for which the specs of the request and the response suffice:

- An error field is set to the code, and the lists in a structure with an error field are empty.
- Any other list contains one element for each element of a list in the request. The elements of
  both lists are identified by the same fields (the name or id of a topic, the index of a partition,
  a group). These fields are copied.
- All other fields are set to their default values.

The tables below list the exceptions in Kafka's methods.

The code is written unchanged. If a broker replaces a code that an old version does not know, it
does so before it calls the method: KAFKA_STORAGE_ERROR in Fetch up to 5, PRODUCER_FENCED in EndTxn
up to 1.
"""

from __future__ import annotations

import re
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.arguments import refuse, to_int, to_kind, to_version
from flexwire.codec import Message, message
from flexwire.errors import ArgumentError
from flexwire.protocol.conversation import ASKS_FOR_RESPONSE
from flexwire.protocol.error_codes import is_error_code
from flexwire.protocol.headers import FALLING_BACK, UNSUPPORTED_VERSION
from flexwire.schema.catalog import per_catalog
from flexwire.schema.resolve import ZERO_UUID
from flexwire.schema.spec import MessageType, snake_case
from flexwire.versions import Versions
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.types import ArrayType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

    from flexwire.codec import MessageStruct
    from flexwire.schema.spec import FieldSpec
    from flexwire.wire.schema import Field

    _IsTopic = Callable[[str | None, UUID | None], bool]
    # An API, and a path of fields in its response.
    _Place = tuple[str, str]
    # A list in a structure, after the lists that contain it.
    _Chain = tuple[FieldSpec, ...]

_CODE_BITS: Final = 16
_DEFAULT: Final = object()
_RECORDS: Final = "records"
# "Partitions" and "PartitionIndexes" are lists of "PartitionIndex" and "PartitionId" values.
_PLURAL: Final = re.compile(r"(?:Index(?:es)?|Ids?|s)$")

# Exceptions to the pattern in Kafka's methods, by API and path of fields in the response.

# Values that differ from the spec's default and do not come from the request.
_VALUES: Final[dict[_Place, Any]] = {
    ("CreateDelegationToken", "PrincipalType"): "User",  # the anonymous principal owns no token
    ("CreateDelegationToken", "PrincipalName"): "ANONYMOUS",
    # The anonymous principal requests no token.
    ("CreateDelegationToken", "TokenRequesterPrincipalType"): "User",
    ("CreateDelegationToken", "TokenRequesterPrincipalName"): "ANONYMOUS",
    ("CreateDelegationToken", "IssueTimestampMs"): -1,  # No token was issued.
    ("CreateDelegationToken", "ExpiryTimestampMs"): -1,
    ("CreateDelegationToken", "MaxTimestampMs"): -1,
    # The error from reading configurations. The broker did not try to read them.
    ("CreateTopics", "Topics.TopicConfigErrorCode"): 0,
    ("DeleteRecords", "Topics.Partitions.LowWatermark"): -1,  # This value means unknown.
    ("DescribeClientQuotas", "Entries"): None,  # "null if there was an error", as its spec says
    ("Fetch", "Responses.Partitions.HighWatermark"): -1,  # This value means unknown.
    ("FindCoordinator", "NodeId"): -1,  # No broker is the coordinator.
    ("FindCoordinator", "Port"): -1,
    ("FindCoordinator", "Coordinators.NodeId"): -1,
    ("FindCoordinator", "Coordinators.Port"): -1,
    ("InitProducerId", "ProducerEpoch"): -1,  # no producer received an epoch
    # No protocol was chosen. Up to version 6, the error message is empty.
    ("JoinGroup", "ProtocolName"): None,
    ("OffsetFetch", "Topics.Partitions.CommittedOffset"): -1,  # No offset was committed.
    ("Produce", "Responses.PartitionResponses.BaseOffset"): -1,  # no record received an offset
    # The value is not the one in the request.
    ("ReadShareGroupStateSummary", "Results.Partitions.LeaderEpoch"): 0,
}
# Lists that are filled although a structure around them has an error field, with the versions.
_FILLED: Final = {
    ("AlterClientQuotas", "Entries.Entity"): "0+",  # The element shows which entry failed.
    ("AlterPartitionReassignments", "Responses"): "0+",  # Each partition repeats the error.
    # One element for each user, without the name.
    ("DescribeUserScramCredentials", "Results"): "0+",
    ("ElectLeaders", "ReplicaElectionResults"): "0+",  # Each partition repeats the error.
    ("Fetch", "Responses"): "0-12",  # One element for each partition, unless topics have ids.
    ("LeaderAndIsr", "PartitionErrors"): "0-4",  # Each partition repeats the error.
    ("LeaderAndIsr", "Topics"): "5+",
    # One element for each partition, without an error.
    ("ListPartitionReassignments", "Topics"): "0+",
    ("ListPartitionReassignments", "Topics.Partitions"): "0+",
    ("Metadata", "Topics"): "0+",  # Each topic has the error, even if the message has one.
    ("StopReplica", "PartitionErrors"): "0+",  # Each partition repeats the error.
}
# Identifying strings that are empty in the response if they are null in the request.
_NEVER_NULL: Final = frozenset(
    {
        ("Metadata", "Topics.Name"),  # The request may contain only the topic's id.
    }
)
# Other fields, in the response itself, that are copied from the request.
_COPIED: Final = frozenset(
    {
        ("Fetch", "SessionId"),  # The client's session continues.
    }
)
# Lists that have several sources in the request, or one that does not follow from the specs.
_MIRRORED: Final = {
    # One result for each element.
    ("AlterUserScramCredentials", "Results"): ("Deletions", "Upsertions"),
    ("CreateAcls", "Results"): ("Creations",),  # The order is that of the request.
    ("DeleteAcls", "FilterResults"): ("Filters",),  # The order is that of the request.
    ("DescribeUserScramCredentials", "Results"): ("Users",),  # The order is that of the request.
}
# Lists that have only one element if the elements of several sources would be equal.
_ONCE: Final = frozenset(
    {
        ("AlterUserScramCredentials", "Results"),  # A user may have several mechanisms.
    }
)
# The names in the response for identifying fields of the request.
_NAMES: Final = {
    ("AlterUserScramCredentials", "Name"): "User",
    ("FindCoordinator", "CoordinatorKeys"): "Key",
}
# Lists in requests that mean "everything" if they are empty, with the versions.
_ALL: Final = {
    ("Metadata", "Topics"): "0",  # This version cannot contain null.
}


def error_response(request: Message, version: int, code: int) -> Message:
    """Return the response body that Kafka builds if a complete request fails.

    ``version`` is the version of both the request and the response. ``code`` is a 16-bit error
    code. Error messages are null, or empty if they cannot be null, because Kafka's texts differ
    between releases. Raises `ArgumentError` if there is no response (Produce with acks 0). Also
    raises `ArgumentError` if only a broker knows the content of the response: the error belongs in
    the elements of a list, and the request has no such list, or its list means everything.

    >>> request = message("HeartbeatRequest")(group_id="readers")
    >>> error_response(request, 4, 16)
    HeartbeatResponse(error_code=16)
    >>> Topic = message("MetadataRequest").MetadataRequestTopic
    >>> request = message("MetadataRequest")(topics=[Topic(name="orders")])
    >>> error_response(request, 9, 5).topics[0].error_code
    5
    """
    request = to_kind(request, "request", Message)
    if request.entry.type is not MessageType.REQUEST:
        raise refuse("request", "a request", type(request).__name__)
    version, code = to_version(version), to_int(code, "code", bits=_CODE_BITS)
    name, acks = ASKS_FOR_RESPONSE
    if request.entry.name == name and getattr(request, snake_case(acks)) == 0:
        raise ArgumentError(f"{name} with {acks} 0 has no response that could contain an error")
    return _Builder(request, version, code).response()


def set_errors(
    response: Message, version: int, code: int, *, topics: _IsTopic | None = None
) -> int:
    """Set the error fields of a decoded response to a code, and return their number.

    ``response`` is modified in place. With ``topics``, only the error fields of topics are set.
    These are the fields in a structure that identifies a topic for which
    ``topics(name, topic_id)`` is true, and in the structures inside it. The name is None if the
    structure contains only the id, and the id is None if the structure contains only the name.

    In a structure whose error field is set, the records become empty and the error message becomes
    null, or empty if it cannot be null. Nothing else changes. The result is 0 if the version has no
    error field, or if no element has one.

    >>> kind = message("HeartbeatResponse")
    >>> response = kind.decode(bytes(6), 3)
    >>> set_errors(response, 3, 27), response.error_code
    (1, 27)
    """
    response = to_kind(response, "response", Message)
    version, code = to_version(version), to_int(code, "code", bits=_CODE_BITS)
    layout = _layout(type(response), version)
    return _set_errors(layout, response, code, topics)


def unsupported_answer(correlation_id: int, api_key: int, offered: Versions) -> bytes:
    """Return a broker's response to a version of ApiVersions that it lacks (KIP-511).

    The response is in version 0 and lists only the versions of this API.
    """
    kind: Any = message(FALLING_BACK)
    versions = {"min_version": offered.lowest, "max_version": offered.highest}
    body = kind.of(error_code=UNSUPPORTED_VERSION, api_keys=[{"api_key": api_key, **versions}])
    header = message("ResponseHeader")(correlation_id=correlation_id)
    answer: bytes = header.encode(0) + body.encode(0)
    return answer


class _Structure(NamedTuple):
    """The fields of a structure in one version, and their values after an error."""

    fields: tuple[FieldSpec, ...]
    # The attributes of error fields, and the fields that are empty after an error, each with its
    # empty value.
    errors: tuple[str, ...]
    data: dict[str, bytes | str | None]
    # The attributes that identify a topic, each None if the structure lacks it.
    topic: str | None
    topic_id: str | None


class _Layout:
    """The fields in a version of a message, by structure, as the spec describes them."""

    def __init__(self, kind: type[Message], version: int) -> None:
        self.api = kind.entry.type.api_name(kind.entry.name)
        self.version = version
        spec = kind.entry.spec(version, kind.definition.served.release)
        specs = spec.fields_by_structure()
        # The fields in this version, by structure and attribute.
        self._wire: dict[str, Mapping[str, Field]] = {}
        self._see(kind.entry.name, kind.definition.schema(version), specs)
        self.structures = {name: self._structure(name, specs[name]) for name in self._wire}
        # The fields whose structures contain an error field, by structure.
        self.inner = {
            name: [
                field
                for field in structure.fields
                if field.type.is_struct and self._holds_error(field.type.name)
            ]
            for name, structure in self.structures.items()
        }

    def _see(self, name: str, schema: Schema, specs: Mapping[str, tuple[FieldSpec, ...]]) -> None:
        """Record the fields of a structure and of the structures inside it."""
        self._wire[name] = schema.by_attribute
        for field in specs[name]:
            if field.type.is_struct and field.type.name not in self._wire:
                kind = schema.by_attribute[field.attribute].type
                inner = kind.element if isinstance(kind, ArrayType) else kind
                inner = inner.schema if isinstance(inner, NullableStruct) else inner
                assert isinstance(inner, Schema)  # noqa: S101 - the spec guarantees this type
                self._see(field.type.name, inner, specs)

    def is_nullable(self, structure: str, field: FieldSpec) -> bool:
        """Return whether a field of a structure may be null in this version."""
        wire = self._wire[structure][field.attribute]
        return wire.nullable or bool(getattr(wire.type, "nullable", False))

    def _structure(self, name: str, every: tuple[FieldSpec, ...]) -> _Structure:
        wire = self._wire[name]
        fields = tuple(one for one in every if wire[one.attribute].presence is not Presence.ABSENT)
        return _Structure(
            fields,
            tuple(one.attribute for one in fields if _is_error(one)),
            {one.attribute: self._without_data(name, one) for one in fields if _is_data(one)},
            next((one.attribute for one in fields if one.names_topic), None),
            next((one.attribute for one in fields if one.identifies_topic), None),
        )

    def _without_data(self, structure: str, field: FieldSpec) -> bytes | str | None:
        if field.type.name == _RECORDS:
            return b""
        return None if self.is_nullable(structure, field) else ""

    def _holds_error(self, structure: str) -> bool:
        of_it = self.structures[structure]
        return bool(of_it.errors) or any(
            self._holds_error(field.type.name) for field in of_it.fields if field.type.is_struct
        )

    def identity(self, field: FieldSpec) -> dict[str, str]:
        """Return the attributes that identify an element of a list, by their keys.

        An element of a primitive type identifies itself.
        """
        if not field.type.is_struct:
            return {self.key(field): ""}
        fields = self.structures[field.type.name].fields
        return {self.key(one): one.attribute for one in fields if _is_identifying(one)}

    def key(self, field: FieldSpec) -> str:
        """Return the key by which a request's field and a response's field match as an identity."""
        name = field.entity_type or _NAMES.get((self.api, field.name), field.name)
        return f"{field.type.name} {_PLURAL.sub('', name)}"

    def lists(self, structure: str) -> Iterator[_Chain]:
        """Yield each list in a structure after the lists that contain it, outer lists first."""
        waiting: deque[tuple[_Chain, str]] = deque([((), structure)])
        while waiting:
            around, name = waiting.popleft()
            for field in self.structures[name].fields:
                if field.type.is_array:
                    yield (*around, field)
                    if field.type.is_struct:
                        waiting.append(((*around, field), field.type.name))


@per_catalog
@cache
def _layout(kind: type[Message], version: int) -> _Layout:
    return _Layout(kind, version)


def _applies(table: Mapping[_Place, str], place: _Place, version: int) -> bool:
    return version in Versions.parse(table.get(place, "none"))


def _is_error(field: FieldSpec) -> bool:
    return is_error_code(field.name, str(field.type))


def _is_data(field: FieldSpec) -> bool:
    """Return whether a field is empty after an error: it contains records or Kafka's texts."""
    is_text = str(field.type) == "string" and field.name.endswith("ErrorMessage")
    return is_text or field.type.name == _RECORDS


def _is_identifying(field: FieldSpec) -> bool:
    """Return whether a field may identify a structure: it has no default and is always set."""
    kind = field.type
    if kind.is_array or kind.is_struct or _is_error(field) or _is_data(field):
        return False
    return bool(field.entity_type) or not field.default


class _Element(NamedTuple):
    """An element of a list in the request: its structure, if any, and its identity."""

    structure: MessageStruct | None
    identity: Mapping[str, Any]


class _Plan(NamedTuple):
    """The content of a structure in the response, at one place."""

    # The values that are equal in all elements, by attribute.
    fixed: dict[str, Any]
    # The key of the field to copy, and whether null becomes an empty string, by attribute.
    copied: dict[str, tuple[str, bool]]
    # Lists to fill, with their paths.
    lists: list[tuple[FieldSpec, str]]


class _Builder:
    """Build the response to one request."""

    def __init__(self, request: Message, version: int, code: int) -> None:
        self._request = request
        self._asked = _layout(type(request), version)
        self._api = self._asked.api
        self._kind = message(f"{self._api}Response", request.definition.served.release)
        self._answered = _layout(self._kind, version)
        self._version = version
        self._code = code
        self._plans: dict[str, _Plan] = {}
        # The key is the path of a list and the structure of the request in which the list's source
        # is searched.
        self._mirrored: dict[tuple[str, str], list[_Chain]] = {}
        self._has_error = False
        # The reasons why some lists of the response are empty although a broker may fill them.
        self._unknown: list[str] = []

    def response(self) -> Message:
        """Return the response. Raises `ArgumentError` if only a broker can build it."""
        copied = {
            self._asked.key(field): getattr(self._request, field.attribute)
            for field in self._asked.structures[self._request.entry.name].fields
            if (self._api, field.name) in _COPIED
        }
        response = self._structure(self._kind.entry.name, _Element(self._request, copied), "")
        assert isinstance(response, Message)  # noqa: S101 - the structure is the message itself
        if not self._has_error and self._unknown:
            raise ArgumentError(
                f"{self._api} version {self._version}: only a broker can create the response, "
                f"because {self._unknown[0]}"
            )
        return response

    def _structure(self, name: str, element: _Element, around: str) -> MessageStruct:
        plan = self._plans.get(around)
        if plan is None:
            plan = self._plans[around] = self._plan(name, around)
        values = dict(plan.fixed)
        for attribute, (key, is_never_null) in plan.copied.items():
            if key in element.identity:
                value = element.identity[key]
                values[attribute] = "" if value is None and is_never_null else value
        for field, path in plan.lists:
            values[field.attribute] = self._list(field, element, path)
        self._has_error = self._has_error or bool(self._answered.structures[name].errors)
        return self._kind.definition.classes[name](**values)

    def _plan(self, name: str, around: str) -> _Plan:
        structure = self._answered.structures[name]
        plan = _Plan(dict.fromkeys(structure.errors, self._code) | structure.data, {}, [])
        for field in structure.fields:
            path = f"{around}{field.name}"
            place, can_be_null = (self._api, path), self._answered.is_nullable(name, field)
            if place in _VALUES and (can_be_null or _VALUES[place] is not None):
                plan.fixed[field.attribute] = _VALUES[place]
            elif self._is_filled(field, name, place):
                plan.lists.append((field, path))
            elif _is_identifying(field) or place in _COPIED:
                is_never_null = place in _NEVER_NULL or not can_be_null
                plan.copied[field.attribute] = (self._answered.key(field), is_never_null)
        return plan

    def _is_filled(self, field: FieldSpec, structure: str, place: _Place) -> bool:
        if not (field.type.is_array and field.type.is_struct):
            return False
        if place in _FILLED:
            return _applies(_FILLED, place, self._version)
        has_error = bool(self._answered.structures[structure].errors)
        return not has_error and field in self._answered.inner[structure]

    def _list(self, field: FieldSpec, around: _Element, path: str) -> list[MessageStruct]:
        place = (path, type(around.structure).__name__)
        chains = self._mirrored.get(place)
        if chains is None:
            chains = self._mirrored[place] = self._sources(field, around, path)
        if not chains:
            self._unknown.append(f"{path} does not correspond to a list in the request")
        elements = [one for chain in chains for one in self._elements(around.structure, chain)]
        if (self._api, path) in _ONCE:
            said = self._answered.identity(field)
            by_identity = {
                tuple(one.identity[key] for key in said if key in one.identity): one
                for one in elements
            }
            elements = [*by_identity.values()]
        return [self._structure(field.type.name, one, f"{path}.") for one in elements]

    def _sources(self, field: FieldSpec, around: _Element, path: str) -> list[_Chain]:
        """Return the request's lists from which a list is made, each after its outer lists."""
        if around.structure is None:
            return []
        chains = [*self._asked.lists(type(around.structure).__name__)]
        place = (self._api, path)
        if place in _MIRRORED:
            return [chain for chain in chains if chain[-1].name in _MIRRORED[place]]
        keys = [{key for one in chain for key in self._asked.identity(one)} for chain in chains]
        wanted = self._answered.identity(field).keys() & set().union(*keys)
        for chain, own in zip(chains, keys, strict=True):
            if wanted <= own if wanted else chain[-1].name == field.name:
                return [chain]
        return []

    def _elements(self, structure: MessageStruct | None, chain: _Chain) -> Iterator[_Element]:
        """Yield the elements of a list, each with the identities of the elements around it."""
        field, *inner = chain
        values = getattr(structure, field.attribute)
        if values is None or (
            not values and _applies(_ALL, (self._api, field.name), self._version)
        ):
            empty = "null" if values is None else "empty"
            self._unknown.append(f"{field.name} in the request is {empty}, which means everything")
        identity = self._asked.identity(field)
        for value in values or ():
            if not field.type.is_struct:
                yield _Element(None, dict.fromkeys(identity, value))
                continue
            named = {key: getattr(value, attribute) for key, attribute in identity.items()}
            if not inner:
                yield _Element(value, named)
            for element in self._elements(value, tuple(inner)) if inner else ():
                yield element._replace(identity={**named, **element.identity})


def _set_errors(
    layout: _Layout, structure: MessageStruct, code: int, topics: _IsTopic | None
) -> int:
    """Set the error fields of a structure and of those inside it, and return their number."""
    name = type(structure).__name__
    of_it = layout.structures[name]
    if topics is not None and _is_topic(structure, of_it, topics):
        topics = None
    errors = of_it.errors if topics is None else ()
    for attribute in errors:
        setattr(structure, attribute, code)
    for attribute, value in of_it.data.items() if errors else ():
        setattr(structure, attribute, value)
    count = len(errors)
    for field in layout.inner[name]:
        inner = getattr(structure, field.attribute)
        for one in (inner or ()) if field.type.is_array else (inner,):
            count += 0 if one is None else _set_errors(layout, one, code, topics)
    return count


def _is_topic(structure: MessageStruct, of_it: _Structure, topics: _IsTopic) -> bool:
    """Return whether a structure identifies a topic for which ``topics`` is true."""
    if of_it.topic is None and of_it.topic_id is None:
        return False
    name = None if of_it.topic is None else getattr(structure, of_it.topic)
    topic_id = None if of_it.topic_id is None else getattr(structure, of_it.topic_id)
    return topics(name, None if topic_id == ZERO_UUID else topic_id)
