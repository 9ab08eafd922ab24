"""Cases match their description: valid by the spec, with unknown tags everywhere, or damaged."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import message
from flexwire.conformance import Asking, CaseExpectation, CasePlan, Kind, plan_with_hostile
from flexwire.conformance.cases import FIRST_CORRELATION_ID, MANY, UNKNOWN_TAGS
from flexwire.conformance.hostile import hostile_cases
from flexwire.errors import CodecError, FrameError
from flexwire.protocol import FrameSplitter, read_request
from flexwire.protocol.audit.evidence import stable_versions
from flexwire.protocol.headers import request_name
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Presence, struct_of

NEWEST = "4.4.0"


@pytest.fixture(scope="module")
def plan() -> CasePlan:
    offered = {key: stable_versions(key, NEWEST) for key in catalog().api_keys()}
    return plan_with_hostile(
        {key: versions for key, versions in offered.items() if versions},
        Asking(NEWEST, hostile=True, client_id="größe"),
    )


def decoded(data: bytes, *, lenient: bool = False) -> Any:
    """Return the body of a request, read by the spec of its own version."""
    [payload] = FrameSplitter().feed(data)
    request = read_request(payload)
    kind = message(request_name(request.api_key, request.api_version))
    return kind.decode(payload[request.body_offset :], request.api_version, lenient=lenient)


def unread(data: bytes) -> int:
    """Return the number of bytes that a lenient reader leaves unread in a request."""
    request = read_request(data[4:])
    kind = message(request_name(request.api_key, request.api_version))
    body = data[4 + request.body_offset :]
    return len(body) - kind.decode_prefix(body, request.api_version, lenient=True)[1]


@pytest.mark.slow
def test_what_must_be_taken_is_a_request_to_its_last_byte(plan: CasePlan) -> None:
    for case in plan.cases:
        if case.expected is CaseExpectation.TAKEN:
            request = read_request(case.data[4:])
            assert (request.api_key, request.api_version) == (case.api_key, case.version)
            assert request.correlation_id == case.correlation_id
            assert decoded(case.data).to_json(case.version) == case.body


def test_no_correlation_id_is_used_twice_but_for_frames_without_one(plan: CasePlan) -> None:
    told = [case.correlation_id for case in plan.cases if not case.damage.startswith("a frame of")]
    assert len(told) == len({*told})
    assert min(told) == FIRST_CORRELATION_ID > 1 << 24


def tags_of(value: Any, schema: Any) -> list[dict[int, bytes]]:
    """Return the unknown tagged fields of each structure of a message."""
    found = [getattr(value, UNKNOWN_TAGGED_FIELDS)] if schema.flexible else []
    for field in schema.fields:
        struct = struct_of(field.type)
        if struct is None or field.presence is Presence.ABSENT:
            continue
        inner = getattr(value, field.attribute)
        for element in inner if isinstance(inner, list) else [inner]:
            found += [] if element is None else tags_of(element, struct)
    return found


def test_unknown_tags_are_in_every_structure(plan: CasePlan) -> None:
    deepest = 0
    for case in plan.cases:
        if case.kind is Kind.BODY_TAGS:
            body = decoded(case.data)
            tags = tags_of(body, type(body).definition.schema(case.version))
            assert all(one == UNKNOWN_TAGS for one in tags)
            deepest = max(deepest, len(tags))
        elif case.kind is Kind.HEADER_TAGS:
            header: Any = read_request(case.data[4:]).header
            assert header.unknown_tagged_fields == UNKNOWN_TAGS
    assert deepest >= 3


def test_each_kind_has_what_its_name_says(plan: CasePlan) -> None:
    seen = {case.kind for case in plan.cases}
    assert seen == {*Kind}
    for case in plan.cases:
        if case.kind is Kind.HOSTILE:
            continue
        header: Any = read_request(case.data[4:]).header
        assert header.client_id == (None if case.kind is Kind.NULL_CLIENT_ID else "größe")
        if case.kind is Kind.MANY:
            assert MANY in {len(value) for value in case.body.values() if isinstance(value, list)}
        if case.kind is Kind.EMPTY:
            assert [] in case.body.values()


def test_hostile_requests_have_versions_of_each_kind() -> None:
    """Each kind occurs: the newest flexible version, the newest inflexible one, and one with a
    nullable list.
    """
    asking = Asking(NEWEST, hostile=True)
    cases = [*hostile_cases({3: Versions(0, 13), 18: Versions(0, 4)}, asking, 1)]
    found: dict[tuple[str, int], list[str]] = {}
    for case in cases:
        found.setdefault((case.api_name, case.version), []).append(case.damage)
    flexible = [
        *("a byte after the body", "the same tag twice", "tags out of order"),
        *("a varint that is longer than needed", "a body that is cut off"),
        *("a tagged field that does not end", "more tagged fields than bytes"),
        "a varint of 6 bytes",
    ]
    others = ["a byte after the body", "a body that is cut off"]
    too_long = "a list that is longer than the frame"
    lengths = [f"a frame of length {length}" for length in (0, -1, 2**31 - 1)]
    assert found == {
        ("Metadata", 3): ["a byte after the body", "a list of length -2", others[1], too_long],
        ("Metadata", 8): [*others, too_long],
        ("Metadata", 13): [*flexible, too_long],
        ("ApiVersions", 2): ["a byte after the body"],
        ("ApiVersions", 4): [*flexible, *lengths, "a frame of 3 bytes"],
    }
    numbers = [case.correlation_id for case in cases if not case.damage.startswith("a frame of")]
    assert numbers == [*range(1, 1 + len(numbers))]


def test_hostile_requests_are_damaged_as_they_are_expected(plan: CasePlan) -> None:
    """The reference decoder accepts or refuses each case as intended, strictly and leniently."""
    damages: dict[CaseExpectation, set[str]] = {}
    plain = {
        (case.api_key, case.version): case.body for case in plan.cases if case.kind is Kind.PLAIN
    }
    for case in plan.cases:
        if case.kind is not Kind.HOSTILE:
            continue
        damages.setdefault(case.expected, set()).add(case.damage)
        with pytest.raises((CodecError, FrameError, ValueError)):
            decoded(case.data)
        if case.expected is CaseExpectation.REFUSED:
            with pytest.raises((CodecError, FrameError, ValueError)):
                decoded(case.data, lenient=True)
        else:
            body = decoded(case.data, lenient=True).to_json(case.version)
            assert unread(case.data) == ("after" in case.damage), case.name
            body.pop("_unknownTaggedFields", None)
            same = {**plain[case.api_key, case.version]}
            if "-2" in case.damage:
                same["topics"] = None
            assert body == same, case.name
    assert {name: len(words) for name, words in damages.items()} == {
        CaseExpectation.REFUSED: 9,
        CaseExpectation.TAKEN_BY_KAFKA: 5,
    }
