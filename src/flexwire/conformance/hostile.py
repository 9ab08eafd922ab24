"""Requests that no client sends: unreadable requests, and requests that only Kafka accepts.

Each request is a read-only request with one fault. Requests that a broker must refuse are derived
from the emptiest request, so a broker that accepts one of them reads no name or value that could
change anything. Requests that Apache Kafka accepts contain the values of the plain request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.codec import explain
from flexwire.codec.hostile import (
    LENIENT_TAG_SECTIONS,
    OVERLONG_VARINT,
    TAG_COUNT,
    UNREADABLE_TAG_SECTIONS,
    prefix_width,
)
from flexwire.conformance.cases import (
    Asking,
    Case,
    CaseExpectation,
    Kind,
    RequestWriter,
    asked_versions,
)
from flexwire.conformance.questions import filled
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.frames import to_frame
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.wire.limits import INT32_MAX
from flexwire.wire.segment_layout import PREFIX_LENGTH
from flexwire.wire.varint import write_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.codec.explanation import Annotation
    from flexwire.versions import Versions

_SHORT_HEADER: Final = 3
_ARRAY: Final = "ARRAY"
_COMPACT: Final = "COMPACT"
_NO_MORE_THAN_NULL: Final = (-2).to_bytes(4, "big", signed=True)


class _Damage(NamedTuple):
    """A damaged payload, with a description of the fault."""

    payload: bytes
    words: str
    expected: CaseExpectation


def hostile_cases(
    offered: Mapping[int, Versions], asking: Asking, correlation_id: int
) -> Iterator[Case]:
    """Yield damaged requests for each API, in its newest version and its newest inflexible version.

    ``correlation_id`` is the id of the first request. Each further request has an id of its own.
    """
    for api_key in sorted(offered):
        if not asking.asks(api_key):
            continue
        for version in _versions(api_key, offered[api_key]):
            writer = RequestWriter(api_key, version, asking)
            for case in _cases(writer, correlation_id):
                yield case
                correlation_id += 1


def _versions(api_key: int, offered: Versions) -> list[int]:
    """Return the newest flexible and the newest inflexible version for which there is a question.

    Also return the newest version whose question contains an empty list that may be null.
    """
    newest: dict[bool, int] = {}
    empty: set[int] = set()
    for version in asked_versions(api_key, offered):
        writer = RequestWriter(api_key, version, Asking(""))
        newest[writer.schema.flexible] = version
        if [] in writer.form.values():
            empty = {version}
    return sorted({*newest.values()} | empty)


def _cases(writer: RequestWriter, correlation_id: int) -> Iterator[Case]:
    plain = filled(writer.form)
    emptiest = writer.empty_form()
    damages = [*_taken(writer, plain, correlation_id)]
    if emptiest is not None or not writer.has_names:
        harmless = plain if emptiest is None else filled(emptiest)
        damages += _refused(writer, harmless, correlation_id)
    for number, damage in enumerate(damages):
        case = writer.case(Kind.HOSTILE, correlation_id + number, plain, expected=damage.expected)
        yield replace(case, data=to_frame(_numbered(damage.payload, number)), damage=damage.words)
    if writer.api_key == api_key_of(NEGOTIATES) and writer.schema.flexible:
        case = writer.case(
            Kind.HOSTILE, correlation_id + len(damages), plain, expected=CaseExpectation.REFUSED
        )
        for data, words in _lengths(case.data):
            yield replace(case, data=data, damage=words)


def _numbered(payload: bytes, number: int) -> bytes:
    """Return a payload whose correlation id is increased by a number."""
    start, stop = 4, 8
    told = int.from_bytes(payload[start:stop], "big", signed=True) + number
    return payload[:start] + told.to_bytes(stop - start, "big", signed=True) + payload[stop:]


def _lengths(data: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield frames whose length is invalid."""
    for length in (0, -1, INT32_MAX):
        yield length.to_bytes(PREFIX_LENGTH, "big", signed=True), f"a frame of length {length}"
    head = data[PREFIX_LENGTH : PREFIX_LENGTH + _SHORT_HEADER]
    yield to_frame(head), f"a frame of {_SHORT_HEADER} bytes"


def _taken(
    writer: RequestWriter, form: Mapping[str, object], correlation_id: int
) -> Iterator[_Damage]:
    header, body, places = _request(writer, form, correlation_id)
    yield _Damage(header + body + b"\0", "a byte after the body", CaseExpectation.TAKEN_BY_KAFKA)
    section = _last_tag_section(places)
    if section is not None:
        start, stop = section.offset, section.offset + section.length
        overlong = (b"\x80\0", "a varint that is longer than needed")
        for raw, words in (*LENIENT_TAG_SECTIONS, overlong):
            damaged = body[:start] + raw + body[stop:]
            yield _Damage(header + damaged, words, CaseExpectation.TAKEN_BY_KAFKA)
    empty = next((place for place in places if _is_open_list(place, writer)), None)
    if empty is not None:
        start, stop = empty.offset, empty.offset + len(_NO_MORE_THAN_NULL)
        damaged = body[:start] + _NO_MORE_THAN_NULL + body[stop:]
        yield _Damage(header + damaged, "a list of length -2", CaseExpectation.TAKEN_BY_KAFKA)


def _is_open_list(place: Annotation, writer: RequestWriter) -> bool:
    """Return whether a place is the int32 length of an empty, nullable list."""
    field = next((one for one in writer.schema.fields if one.json_name == place.path), None)
    is_list = _is_list(place) and not place.type.startswith(_COMPACT)
    return is_list and field is not None and field.nullable and writer.form.get(place.path) == []


def _refused(
    writer: RequestWriter, form: Mapping[str, object], correlation_id: int
) -> Iterator[_Damage]:
    header, body, places = _request(writer, form, correlation_id)
    if body:
        yield _Damage(header + body[:-1], "a body that is cut off", CaseExpectation.REFUSED)
    section = _last_tag_section(places)
    if section is not None:
        start, stop = section.offset, section.offset + section.length
        six = (OVERLONG_VARINT, "a varint of 6 bytes")
        for raw, words in (*UNREADABLE_TAG_SECTIONS, six):
            yield _Damage(header + body[:start] + raw + body[stop:], words, CaseExpectation.REFUSED)
    place = next((place for place in places if _is_list(place)), None)
    if place is not None:
        is_compact = place.type.startswith(_COMPACT)
        huge = write_unsigned_varint(INT32_MAX) if is_compact else INT32_MAX.to_bytes(4, "big")
        # The place of an empty list is the list itself. Otherwise, the elements follow the place.
        damaged = body[: place.offset] + huge + body[place.offset + (1 if is_compact else 4) :]
        yield _Damage(
            header + damaged, "a list that is longer than the frame", CaseExpectation.REFUSED
        )


def _is_list(place: Annotation) -> bool:
    return _ARRAY in place.type and prefix_width(place) is not None


def _request(
    writer: RequestWriter, form: Mapping[str, object], correlation_id: int
) -> tuple[bytes, bytes, tuple[Annotation, ...]]:
    """Return the header, the body, and the places in the body."""
    body = writer.body(form).encode(writer.version)
    places = explain(writer.message_class, body, writer.version).annotations
    return writer.header(correlation_id), body, places


def _last_tag_section(places: tuple[Annotation, ...]) -> Annotation | None:
    """Return the place of the count of the message's own tagged fields; this count is 0."""
    return next(
        (place for place in reversed(places) if place.type == TAG_COUNT and not place.value), None
    )
