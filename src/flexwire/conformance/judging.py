"""Judge the outcome of a case by the spec of its version, the KIPs, and Apache Kafka's behavior.

A response is judged from its first byte to its last: correlation id, header version, fields, and
end. Then its values are judged. An error code alone is never a deviation, because there is no list
of the error codes of an API. If a permission is missing or a feature is disabled, the case is not
judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from flexwire.codec import message
from flexwire.conformance import rules
from flexwire.conformance.cases import Case, CaseExpectation, Kind, entity_types, entity_values
from flexwire.conformance.rules import NOT_JUDGED_CODES, SEEN_CODES, ConformanceRule, find_quirk
from flexwire.errors import DecodeError, UnknownMessageError
from flexwire.facts.units import plural
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.error_codes import NO_ERROR, RETRIABLE
from flexwire.protocol.headers import (
    UNSUPPORTED_VERSION,
    parse_correlation_id,
    response_header_version,
    response_name,
)
from flexwire.protocol.readable_json import (
    describe_error_code,
    error_code_names,
    walk_structures,
)
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions
from flexwire.wire.segment_layout import CORRELATION_ID_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.codec import Message


MOST_DECODED: Final = 8 * 1024 * 1024
"""The maximum size of a response that is judged, in bytes. Decoding one byte may require 100 bytes
of memory.
"""


class Ending(Enum):
    """The way in which an exchange ended without a response."""

    CLOSED = "the broker closed the connection"
    SILENT = "no answer within the time limit"
    NO_FRAME = "the received bytes are not a frame"


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a request: the payload of a response, or how the exchange ended without one.

    ``unread`` is the number of bytes that arrived together with the response, but after its end.
    """

    payload: bytes | None = None
    ending: Ending | None = None
    detail: str = ""
    unread: int = 0

    @property
    def told(self) -> str:
        """A description of how the exchange ended, or "" if a response arrived."""
        words = self.ending.value if self.ending else ""
        return f"{words}: {self.detail}" if self.detail else words


class CaseVerdict(Enum):
    """The verdict about a case."""

    AS_KAFKA = "as Kafka"
    QUIRK = "as Kafka (a known Kafka quirk)"
    DIFFERS = "differs"
    DEVIATES = "deviates"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class CaseDeviation:
    """A broken rule, with a description of what was found.

    ``offset`` is a position in the response, counted from the end of the length prefix, or None if
    the finding does not concern a byte. ``path`` is the path of the field, with the names used in
    the JSON form.
    """

    rule: ConformanceRule
    found: str
    offset: int | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case, its outcome, and the verdict.

    ``deviation`` is the first broken rule. ``remark`` is a useful observation about a case that
    breaks no rule. ``error_codes`` contains the response's error codes other than 0.
    """

    case: Case
    verdict: CaseVerdict
    outcome: CaseOutcome
    deviation: CaseDeviation | None = None
    remark: str = ""
    error_codes: frozenset[int] = frozenset()


class _Broken(Exception):  # noqa: N818 - not an error: it ends the judging of a case
    """An exception that reports a broken rule."""

    def __init__(
        self, rule: ConformanceRule, found: str, offset: int | None = None, path: str = ""
    ) -> None:
        super().__init__(found)
        self.deviation = CaseDeviation(rule, found, offset, path)


_RULE_OF_KIND: Final = {
    Kind.PLAIN: rules.ANSWERED,
    Kind.BODY_TAGS: rules.TAGS,
    Kind.HEADER_TAGS: rules.TAGS,
    Kind.NULL_CLIENT_ID: rules.CLIENT_ID,
    Kind.EMPTY: rules.LISTS,
    Kind.MANY: rules.LISTS,
    Kind.UNOFFERED: rules.REFUSED,
    Kind.HOSTILE: rules.DAMAGED,
}


def judge(
    case: Case, outcome: CaseOutcome, *, release: str, plain: CaseResult | None = None
) -> CaseResult:
    """Return the verdict about a case.

    The broker is compared with ``release``. ``plain`` is the result of the plain request of the
    same API and version.
    """
    result = CaseResult(case, CaseVerdict.AS_KAFKA, outcome)
    try:
        if case.expected is CaseExpectation.REFUSED:
            _judge_refusal(case, outcome)
        elif case.expected is CaseExpectation.FALLEN_BACK:
            _judge_fallback(case, outcome)
        elif case.expected is CaseExpectation.TAKEN_BY_KAFKA and outcome.payload is None:
            deviation = CaseDeviation(rules.KAFKA_TAKES, outcome.told)
            return replace(result, verdict=CaseVerdict.DIFFERS, deviation=deviation)
        else:
            result = _judge_answer(result, release, plain)
    except _Broken as broken:
        deviation = broken.deviation
        quirk = find_quirk(deviation.rule, case.api_name, case.version, release)
        if quirk is not None:
            return replace(result, verdict=CaseVerdict.QUIRK, remark=quirk.reason)
        return replace(result, verdict=CaseVerdict.DEVIATES, deviation=deviation)
    return result


def _judge_refusal(case: Case, outcome: CaseOutcome) -> None:
    if outcome.ending is Ending.CLOSED:
        return
    rule = _RULE_OF_KIND[case.kind]
    if outcome.payload is None:
        raise _Broken(rule, outcome.told)
    raise _Broken(
        rule, f"expected the broker to close the connection, got {len(outcome.payload)} bytes", 0
    )


def _payload(case: Case, outcome: CaseOutcome, rule: ConformanceRule) -> bytes:
    """Return the payload of a response, or raise the broken rule if the outcome has no payload."""
    if outcome.ending is Ending.NO_FRAME:
        raise _Broken(rules.FRAME, outcome.detail or outcome.ending.value)
    if outcome.payload is None:
        raise _Broken(rule, outcome.told)
    _check_correlation_id(case, outcome.payload)
    return outcome.payload


def _check_correlation_id(case: Case, payload: bytes) -> None:
    if len(payload) < CORRELATION_ID_SIZE:
        found = f"expected a correlation id of 4 bytes, got {len(payload)} bytes"
        raise _Broken(rules.CORRELATION_ID, found, 0, "correlationId")
    got = parse_correlation_id(payload)
    if got != case.correlation_id:
        found = f"expected correlation id {case.correlation_id}, got {got}"
        raise _Broken(rules.CORRELATION_ID, found, 0, "correlationId")


def _judge_fallback(case: Case, outcome: CaseOutcome) -> None:
    payload = _payload(case, outcome, rules.FALLBACK)
    kind, body = (
        message(f"{NEGOTIATES.removesuffix('Request')}Response"),
        payload[CORRELATION_ID_SIZE:],
    )
    try:
        answer: Any = kind.decode(body, 0)
    except DecodeError as error:
        found = f"the body cannot be decoded as version 0: {error.reason}"
        offset = CORRELATION_ID_SIZE + (error.offset or 0)
        raise _Broken(rules.FALLBACK, found, offset, error.path) from None
    if answer.error_code != UNSUPPORTED_VERSION:
        found = f"error code {code_names([answer.error_code])}"
        raise _Broken(rules.FALLBACK, found, CORRELATION_ID_SIZE, "errorCode")
    listed = {api.api_key for api in answer.api_keys}
    if api_key_of(NEGOTIATES) not in listed:
        found = f"the response lists {len(listed)} APIs, but not ApiVersions"
        raise _Broken(rules.FALLBACK, found, CORRELATION_ID_SIZE + 2, "apiKeys")


def _judge_answer(result: CaseResult, release: str, plain: CaseResult | None) -> CaseResult:
    """Judge a response to a request that the broker must accept."""
    case, outcome = result.case, result.outcome
    rule = _RULE_OF_KIND[case.kind]
    if outcome.payload is not None and len(outcome.payload) > MOST_DECODED:
        remark = f"a response of {len(outcome.payload)} bytes is too large to decode"
        return replace(result, verdict=CaseVerdict.NOT_JUDGED, remark=remark)
    payload = _payload(case, outcome, rule)
    reading = ResponseReading(case, release)
    body = reading.read(payload)
    if outcome.unread:
        found = f"{plural(outcome.unread, 'byte')} after the response"
        raise _Broken(rules.ONE_RESPONSE, found, len(payload))
    form = body.to_json(case.version)
    codes = error_codes(form, type(body), case.version)
    result = replace(result, error_codes=frozenset(codes.values()) - {NO_ERROR})
    refused = result.error_codes & NOT_JUDGED_CODES
    if refused:
        remark = f"the answer is {code_names(refused)}"
        return replace(result, verdict=CaseVerdict.NOT_JUDGED, remark=remark)
    # The plain request may have created or removed something, which changes the state.
    if rule is rules.TAGS and plain is not None and not case.writes:
        _compare_with_plain(result, codes, plain)
    _check_echo(case, form, type(body), codes)
    return replace(result, remark=_remark_on(case, result.error_codes))


def _remark_on(case: Case, codes: frozenset[int]) -> str:
    """Return a remark on error codes that Kafka did not return in flexwire's runs, if any."""
    unseen = codes - RETRIABLE - SEEN_CODES.get(case.api_name, frozenset())
    if not unseen:
        return ""
    return f"error code {code_names(unseen)}, which Apache Kafka did not return in our runs"


def code_names(codes: Iterable[int]) -> str:
    """Return error codes with their names.

    >>> code_names({87, 3})
    '3 UNKNOWN_TOPIC_OR_PARTITION, 87 INVALID_RECORD'
    """
    return ", ".join(f"{code} {describe_error_code(code)}" for code in sorted(codes))


def _compare_with_plain(result: CaseResult, codes: dict[str, int], plain: CaseResult) -> None:
    new = result.error_codes - plain.error_codes - RETRIABLE
    for path, code in codes.items():
        if code in new:
            found = (
                f"error code {code_names([code])}, which the response to the plain request does "
                "not contain"
            )
            raise _Broken(rules.TAGS, found, None, path)


class ResponseReading:
    """Read the responses to a case in the layout of a release."""

    def __init__(self, case: Case, release: str) -> None:
        self._case = case
        name = response_name(case.api_key, case.version)
        has = case.version in catalog().entry(name).releases.get(release, Versions.NONE)
        self._kind = message(name, release if has else None)
        self._header = message("ResponseHeader")
        self._header_version = response_header_version(case.api_key, case.version)

    def read(self, payload: bytes) -> Message:
        """Return the body of a response, or raise the broken rule."""
        try:
            return self._decoded(payload, self._header_version)
        except DecodeError as error:
            for other in self._header.entry.versions:
                if other != self._header_version and self._decodes(payload, other):
                    found = f"expected header version {self._header_version}, got {other}"
                    # A body of zeros can be read completely with either header version.
                    if (end := self._end(payload)) is not None:
                        rest = plural(len(payload) - end, "byte")
                        found += f"; or the response ends at byte {end}, followed by {rest}"
                    raise _Broken(
                        rules.RESPONSE_HEADER, found, CORRELATION_ID_SIZE, "header"
                    ) from None
            raise self._wording(payload, error) from None

    def _decodes(self, payload: bytes, header_version: int) -> bool:
        try:
            self._decoded(payload, header_version)
        except DecodeError:
            return False
        return True

    def _decoded(self, payload: bytes, header_version: int) -> Message:
        _, start = self._header.decode_prefix(payload, header_version)
        try:
            return self._kind.decode(payload[start:], self._case.version)
        except DecodeError as error:
            error.offset = start + (error.offset or 0)
            raise

    def _wording(self, payload: bytes, error: DecodeError) -> _Broken:
        """Return the rule that a response breaks if it is unreadable with every header version."""
        if error.message == self._header.entry.name:
            return _Broken(rules.RESPONSE_HEADER, error.reason, error.offset, error.path)
        also = (
            "; Apache Kafka's Java client accepts this response"
            if self._is_read_by_kafka(payload)
            else ""
        )
        end = self._end(payload)
        if end is None:
            return _Broken(rules.BODY, f"{error.reason}{also}", error.offset, error.path)
        return _Broken(rules.END, f"{error.reason}{also}", end, error.path)

    def _end(self, payload: bytes) -> int | None:
        """Return the end of the last field, or None if no response is at the payload's start."""
        try:
            _, start = self._header.decode_prefix(payload, self._header_version)
            _, length = self._kind.decode_prefix(payload[start:], self._case.version)
        except DecodeError:
            return None
        return start + length

    def _is_read_by_kafka(self, payload: bytes) -> bool:
        try:
            _, start = self._header.decode_prefix(payload, self._header_version, lenient=True)
            self._kind.decode(payload[start:], self._case.version, lenient=True)
        except (DecodeError, UnknownMessageError):
            return False
        return True


def error_codes(form: Any, kind: type[Message], version: int) -> dict[str, int]:
    """Return the error codes in a JSON form, keyed by path."""
    return {
        structure.at(name): structure.form[name]
        for structure in walk_structures(form, kind.definition.schema(version))
        for name in error_code_names(structure.schema)
        if structure.form.get(name) is not None
    }


def _check_echo(case: Case, form: Any, kind: type[Message], codes: dict[str, int]) -> None:
    """Raise the broken rule if a name from the request is missing from the response.

    Names are not required if the response's spec does not define a field for them in this version.
    An entry with an error may consist of the error alone. For example, a broker that is the
    coordinator of only some groups returns the topics of only these groups.
    """
    has = set(entity_types(kind, case.version).values())
    said = entity_values(form, kind.definition.schema(case.version), kind, case.version)
    for entity, asked in case.asked.items():
        left_out = asked - said.get(entity, frozenset())
        if entity not in has or not left_out:
            continue
        is_excused = entity not in said and any(code != NO_ERROR for code in codes.values())
        if is_excused or len(left_out) <= _bare_errors(form, kind, case.version, entity):
            continue
        example = min(left_out)
        found = (
            f"{entity} {example} is missing from the response "
            f"({len(left_out)} of {len(asked)} are missing)"
        )
        raise _Broken(rules.ECHO, found, None, entity)


def _bare_errors(form: Any, kind: type[Message], version: int, entity: str) -> int:
    """Count the outermost entries that contain an error but no entity name."""
    types = entity_types(kind, version)
    fields = {place for place, one in types.items() if one == entity}
    errors: list[str] = []
    naming: set[str] = set()
    around: set[str] = set()
    for structure in walk_structures(form, kind.definition.schema(version)):
        if any((structure.schema.name, name) in fields for name in structure.form):
            naming.add(structure.path)
            around.update(_outer_paths(structure.path))
        codes = error_code_names(structure.schema)
        if any(structure.form.get(name, NO_ERROR) != NO_ERROR for name in codes):
            errors.append(structure.path)
    return sum(
        path not in around and not naming.intersection(_outer_paths(path)) for path in errors
    )


def _outer_paths(path: str) -> list[str]:
    """Return the paths of a structure and of its enclosing structures.

    >>> _outer_paths("groups[0].topics[3]")
    ['groups[0].topics[3]', 'groups[0]', '']
    """
    found = [path]
    while path:
        path, _, _ = path.rpartition(".")
        found.append(path)
    return found
