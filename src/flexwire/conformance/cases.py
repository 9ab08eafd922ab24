"""The cases: requests in several forms for each API and version, and their expected outcomes.

The requests are those in `flexwire.conformance.questions`, encoded according to the spec of their
version. Each correlation id in a run is unique and needs more than 24 bits, in order to find
brokers that mix up answers or keep only a part of an id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from flexwire.client.broker import read_body
from flexwire.client.cluster import ANY
from flexwire.codec import message
from flexwire.conformance.questions import (
    NOTHING_LEARNED,
    filled,
    has_names,
    question,
    why_not_asked,
)
from flexwire.errors import UnknownMessageError
from flexwire.protocol.apis import (
    api_key_of,
    api_name,
    is_released,
    released_versions,
    request_entries,
)
from flexwire.protocol.frames import to_frame
from flexwire.protocol.headers import request_header_version, request_name
from flexwire.protocol.readable_json import walk_structures
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.schema.catalog import catalog
from flexwire.versions import HIGHEST, Versions
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Presence, struct_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from flexwire.client.cluster import Route
    from flexwire.codec import Message
    from flexwire.conformance.questions import Question
    from flexwire.wire.schema import Schema

    QuestionOf = Callable[[str, int], Question | None]
    """The function that returns the request for an API in a version, or None if no request is sent.
    """

FIRST_CORRELATION_ID: Final = 0x4B61_0000
CLIENT_ID: Final = "flexwire"
MANY: Final = 200
"""The number of elements in a long list. A one-byte varint cannot represent this number."""
UNKNOWN_TAGS: Final = {500: b"", 20_000: b"flexwire", 2_000_000: bytes(200)}
"""Tagged fields that no release defines. Their tags and sizes take one to three bytes."""


class CaseExpectation(Enum):
    """The expected outcome of a case, if the broker behaves like Apache Kafka."""

    TAKEN = "must take"
    REFUSED = "must refuse"
    TAKEN_BY_KAFKA = "Kafka takes"
    FALLEN_BACK = "must fall back"


class Kind(Enum):
    """The kind of a request. The value is the kind's display name."""

    PLAIN = "plain"
    BODY_TAGS = "unknown tags"
    HEADER_TAGS = "header tags"
    NULL_CLIENT_ID = "null client id"
    EMPTY = "empty lists"
    MANY = "long lists"
    UNOFFERED = "not offered"
    HOSTILE = "hostile"


@dataclass(frozen=True, slots=True)
class Case:
    """A request and its expected outcome.

    ``data`` contains the bytes to send, starting with the length prefix. ``body_offset`` is counted
    from the end of the length prefix. ``damage`` describes the fault in a hostile request.
    ``asked`` contains the values that the answer must repeat, keyed by the spec's entity type.
    ``writes`` is true if the request changes something. ``route`` determines which broker of the
    cluster has to answer.
    """

    api_key: int
    api_name: str
    version: int
    kind: Kind
    expected: CaseExpectation
    correlation_id: int
    data: bytes
    body: Mapping[str, Any]
    asked: Mapping[str, frozenset[str]]
    damage: str = ""
    is_alone: bool = False
    writes: bool = False
    route: Route = ANY

    @property
    def name(self) -> str:
        """The API, the version and the kind, in human-readable form."""
        return f"{self.api_name} {self.version}, {self.damage or self.kind.value}"


@dataclass(frozen=True, slots=True)
class Unasked:
    """The offered versions of an API, some or all, that are not tested, and the reason."""

    api_key: int
    api_name: str | None
    versions: Versions
    reason: str


@dataclass(frozen=True, slots=True)
class CasePlan:
    """The cases for the versions that a broker offers, and the APIs that are omitted."""

    cases: tuple[Case, ...]
    unasked: tuple[Unasked, ...]


@dataclass(frozen=True, slots=True)
class Asking:
    """The options of a run.

    ``release`` is the release whose layouts are used and with which the broker is compared.
    ``apis`` contains the api keys to test, or is None for all APIs. With ``hostile``, the run also
    sends requests that no client would send. ``own`` is the name that the topic, the groups and the
    transactional id share; requests may create and change only these. If ``own`` is "", requests
    only read. With ``disposable``, requests may affect the whole cluster.
    """

    release: str
    apis: frozenset[int] | None = None
    hostile: bool = False
    client_id: str = CLIENT_ID
    own: str = ""
    disposable: bool = False

    def asks(self, api_key: int) -> bool:
        """Return whether an API is in the catalog and selected by the options."""
        is_chosen = self.apis is None or api_key in self.apis
        return is_chosen and bool(request_entries(api_key))

    def with_client_id(self, client_id: str) -> Asking:
        """Return the same options with a different client id in the headers."""
        return replace(self, client_id=client_id)


def plan_cases(offered: Mapping[int, Versions], asking: Asking) -> CasePlan:
    """Return the cases for a broker that offers these versions, grouped by API."""
    cases: list[Case] = []
    unasked: list[Unasked] = []
    for api_key in sorted(offered):
        if asking.apis is not None and api_key not in asking.apis:
            continue
        if not request_entries(api_key):
            reason = "no Kafka release in the catalog has this API"
            unasked.append(Unasked(api_key, None, offered[api_key], reason))
            continue
        unasked += _unasked(api_key, offered[api_key])
        cases += api_cases(api_key, offered[api_key], asking, len(cases))
    return CasePlan(tuple(cases), tuple(unasked))


def asked_versions(api_key: int, offered: Versions, asks: QuestionOf = question) -> list[int]:
    """Return the offered versions that the catalog contains and for which there is a question."""
    name = api_name(api_key)
    known = offered & released_versions(api_key)
    return [version for version in known if asks(name, version) is not None]


def api_cases(
    api_key: int, offered: Versions, asking: Asking, before: int, asks: QuestionOf = question
) -> list[Case]:
    """Return the cases for one API. ``before`` is the number of preceding cases."""
    cases: list[Case] = []
    for version in asked_versions(api_key, offered, asks):
        cases += _cases(RequestWriter(api_key, version, asking, asks), before + len(cases))
    cases += _version_cases(api_key, offered, asking, before + len(cases), asks)
    return cases


def _unasked(api_key: int, offered: Versions) -> Iterator[Unasked]:
    name, released = api_name(api_key), released_versions(api_key)
    without = [version for version in offered & released if question(name, version) is None]
    if without:
        yield Unasked(api_key, name, Versions.of(without), why_not_asked(api_key, name))
    unknown = beyond(offered, released)
    if unknown:
        reason = "no Kafka release in the catalog has these versions"
        yield Unasked(api_key, name, unknown, reason)


def beyond(offered: Versions, known: Versions) -> Versions:
    """Return those offered versions that are not known. A broker may offer 32,768 versions.

    >>> beyond(Versions(0, 9), Versions(2, 7))
    Versions('0-1,8-9')
    """
    if not known:
        return offered
    unknown = offered & Versions(0, known.lowest - 1)
    for first, last in (*known.holes, (known.highest + 1, HIGHEST)):
        unknown |= offered & Versions(first, last)
    return unknown


class RequestWriter:
    """Create the requests for one API and version, in the layout of a release."""

    def __init__(
        self, api_key: int, version: int, asking: Asking, asks: QuestionOf = question
    ) -> None:
        self.api_key = api_key
        self._client_id = asking.client_id
        self.version = version
        self.name = request_name(api_key, version)
        self.message_class = _message_of(self.name, version, asking.release)
        self.schema = self.message_class.definition.schema(version)
        self.header_version = request_header_version(api_key, version)
        found = asks(api_name(api_key), version)
        if found is None:
            raise UnknownMessageError(f"{self.name} v{version} has no question")
        self.question: Question = found
        self.form = fitting(found.form, self.schema)

    def body(self, form: Mapping[str, Any]) -> Message:
        """Return the message for a form, with a client's defaults."""
        return read_body(self.message_class, form, self.version)

    def header(
        self,
        correlation_id: int,
        *,
        has_client_id: bool = True,
        tags: Mapping[int, bytes] | None = None,
        version: int | None = None,
    ) -> bytes:
        """Return the bytes of a request header. ``version`` is the version in the header."""
        client_id = self._client_id if has_client_id else None
        fields = {
            "request_api_key": self.api_key,
            "request_api_version": self.version if version is None else version,
            "correlation_id": correlation_id,
            "client_id": client_id if self.header_version else "",
            UNKNOWN_TAGGED_FIELDS: dict(tags or {}),
        }
        return message("RequestHeader")(**fields).encode(self.header_version)

    def case(
        self,
        kind: Kind,
        correlation_id: int,
        form: Mapping[str, Any],
        *,
        expected: CaseExpectation = CaseExpectation.TAKEN,
        body: Message | None = None,
        **header: Any,
    ) -> Case:
        """Return the case whose body has this form. ``header`` contains arguments for `header`."""
        sent = self.body(form) if body is None else body
        data = to_frame(self.header(correlation_id, **header) + sent.encode(self.version))
        return Case(
            self.api_key,
            api_name(self.api_key),
            header.get("version", self.version),
            kind,
            expected,
            correlation_id,
            data,
            sent.to_json(self.version),
            {} if self.question.is_filter else self._asked(form),
            is_alone=self.question.ends_connection or expected is not CaseExpectation.TAKEN,
            writes=self.question.writes,
            route=self.question.route,
        )

    def _asked(self, form: Mapping[str, Any]) -> dict[str, frozenset[str]]:
        return entity_values(dict(form), self.schema, self.message_class, self.version)

    @property
    def has_names(self) -> bool:
        """True if the request contains names."""
        return has_names(self.form)

    def empty_form(self) -> dict[str, Any] | None:
        """Return the form with empty lists of names, or None if the form contains no list."""
        names = [key for key, value in self.form.items() if _is_list_of_names(value)]
        if not names or self.question.one_only:
            return None
        return {**self.form, **{name: [] for name in names}}

    def long_form(self) -> dict[str, Any] | None:
        """Return the form with `MANY` elements in each list of names, or None if none exists."""
        names = [key for key, value in self.form.items() if _is_list_of_names(value)]
        if not names or self.question.one_only:
            return None
        longer = {
            name: [filled(element, number) for number in range(MANY) for element in self.form[name]]
            for name in names
        }
        return {**self.form, **longer}


def _message_of(name: str, version: int, release: str) -> type[Message]:
    """Return the message in a release's layout, or in the newest layout with this version."""
    has = version in catalog().entry(name).releases.get(release, Versions.NONE)
    return message(name, release if has else None)


def _cases(writer: RequestWriter, before: int) -> list[Case]:
    return [
        writer.case(kind, number, form, **options)
        for number, (kind, form, options) in enumerate(
            _forms(writer, NOTHING_LEARNED), FIRST_CORRELATION_ID + before
        )
    ]


def written_again(writer: RequestWriter, case: Case, known: Mapping[str, Any]) -> Case:
    """Return a case with the values that the broker has sent since the case was planned."""
    form, options = next(
        (form, options) for kind, form, options in _forms(writer, known) if kind is case.kind
    )
    return writer.case(case.kind, case.correlation_id, form, **options)


def _forms(
    writer: RequestWriter, known: Mapping[str, Any]
) -> Iterator[tuple[Kind, dict[str, Any], dict[str, Any]]]:
    """Yield the kinds of a question, each with its form and options for `RequestWriter.case`."""
    plain = filled(writer.form, known=known)
    yield Kind.PLAIN, plain, {}
    if writer.schema.flexible:
        tagged = writer.body(plain)
        add_tags(tagged, writer.schema)
        yield Kind.BODY_TAGS, plain, {"body": tagged}
    if message("RequestHeader").definition.schema(writer.header_version).flexible:
        yield Kind.HEADER_TAGS, plain, {"tags": UNKNOWN_TAGS}
    if writer.header_version:
        yield Kind.NULL_CLIENT_ID, plain, {"has_client_id": False}
    for kind, form in ((Kind.EMPTY, writer.empty_form()), (Kind.MANY, writer.long_form())):
        if form is not None:
            yield kind, filled(form), {}


def _version_cases(
    api_key: int, offered: Versions, asking: Asking, before: int, asks: QuestionOf
) -> Iterator[Case]:
    """Yield requests in the versions next to the offered ones.

    A broker that accepts such a request may read it according to the spec of that version. The
    request is therefore the question for that version. If there is no question for it, no request
    is sent.
    """
    asked = asked_versions(api_key, offered, asks)
    if not asked:
        return
    falls_back = api_key == api_key_of(NEGOTIATES)
    expected = CaseExpectation.FALLEN_BACK if falls_back else CaseExpectation.REFUSED
    number = FIRST_CORRELATION_ID + before
    for version in (offered.highest + 1, offered.lowest - 1):
        written = version if is_released(api_key, version) else asked[-1]
        is_written_so = written == version or version > offered.highest
        if (
            not 0 <= version <= HIGHEST
            or not is_written_so
            or asks(api_name(api_key), written) is None
        ):
            continue
        writer = RequestWriter(api_key, written, asking, asks)
        form = filled(writer.form)
        yield writer.case(Kind.UNOFFERED, number, form, expected=expected, version=version)
        number += 1


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and has_names(value)


def fitting(form: Any, schema: Schema) -> Any:
    """Return a form without the fields that do not exist in a version."""
    found = {}
    for field in schema.fields:
        if field.presence is Presence.ABSENT or field.json_name not in form:
            continue
        value, struct = form[field.json_name], struct_of(field.type)
        if struct is not None and isinstance(value, list):
            value = [fitting(element, struct) for element in value]
        found[field.json_name] = value
    return found


def add_tags(value: Any, schema: Schema) -> None:
    """Add `UNKNOWN_TAGS` to each structure of a message that can contain tagged fields."""
    if schema.flexible:
        setattr(value, UNKNOWN_TAGGED_FIELDS, dict(UNKNOWN_TAGS))
    for field in schema.fields:
        struct = struct_of(field.type)
        if struct is None or field.presence is Presence.ABSENT:
            continue
        inner = getattr(value, field.attribute)
        for element in inner if isinstance(inner, list) else [inner]:
            if element is not None:
                add_tags(element, struct)


def entity_values(
    form: dict[str, Any], schema: Schema, message_class: type[Message], version: int
) -> dict[str, frozenset[str]]:
    """Return the names and topic ids in a JSON form, keyed by their entity type in the spec.

    Specs define no entity type for topic ids, so these are listed under "topicId".
    """
    types = entity_types(message_class, version)
    found: dict[str, set[str]] = {}
    for structure in walk_structures(form, schema):
        for field in structure.schema.fields:
            entity = types.get((structure.schema.name, field.json_name))
            value = structure.form.get(field.json_name)
            if entity is None or value is None:
                continue
            found.setdefault(entity, set()).update(value if isinstance(value, list) else [value])
    return {entity: frozenset(values) for entity, values in found.items()}


def entity_types(message_class: type[Message], version: int) -> dict[tuple[str, str], str]:
    """Return the entity type of each string or topic id, by structure and JSON name.

    Only fields that exist in the version are listed.
    """
    spec = message_class.entry.spec(version, message_class.definition.served.release)
    present = set(_present_fields(message_class.definition.schema(version)))
    return {
        (name, field.json_name): "topicId" if field.identifies_topic else field.entity_type
        for name, fields in spec.fields_by_structure().items()
        for field in fields
        if (name, field.json_name) in present
        and (field.identifies_topic or (field.entity_type and field.type.name == "string"))
    }


def _present_fields(schema: Schema) -> Iterator[tuple[str, str]]:
    for field in schema.fields:
        if field.presence is Presence.ABSENT:
            continue
        yield schema.name, field.json_name
        struct = struct_of(field.type)
        if struct is not None:
            yield from _present_fields(struct)
