"""A run finds planted deviations by their rule and place, and none if none is planted.

The broker runs on loopback and knows nothing of conformance runs (`tests.conformance.brokers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.conformance import (
    Asking,
    CaseResult,
    CaseVerdict,
    ConformanceRun,
    Ending,
    Kind,
    conform,
    formats,
    rules,
)
from flexwire.conformance.first_answer import VERSIONS_UNREAD
from flexwire.conformance.questions import QUESTIONS
from flexwire.errors import CallError
from flexwire.protocol import parse_response, response_header_version
from flexwire.protocol.apis import api_key_of
from tests.conformance.brokers import (
    API_VERSIONS,
    METADATA,
    RELEASE,
    SILENCE,
    kafka_like,
    soundly,
    with_correlation_id,
)
from tests.protocol.payloads import frame, response_payload
from tests.searching import in_make_long

if TYPE_CHECKING:
    from flexwire.conformance import ConformanceRule
    from flexwire.protocol import RequestFrame
    from tests.conformance.brokers import Plant

SECONDS = 300.0
BRIEF = 5.0
"""How long a run waits for a broker that is silent on purpose; other brokers answer in time."""
FLEXIBLE = 9
"""The first flexible version of Metadata."""


def ran(
    plant: Plant = soundly, *apis: str, hostile: bool = False, **options: Any
) -> ConformanceRun:
    of_damaged = options.pop("of_damaged", None)
    with kafka_like(plant, of_damaged) as (address, _):
        keys = frozenset(map(api_key_of, apis)) or None
        asking = Asking(RELEASE, keys, hostile=hostile)
        return conform(address, asking, **{"timeout": SECONDS, **options})


def found(run: ConformanceRun) -> list[tuple[str, ConformanceRule, int | None, str]]:
    """For each deviating case, return its name, the rule, the byte and the field."""
    return [
        (one.case.name, one.deviation.rule, one.deviation.offset, one.deviation.path)
        for one in run.deviations
        if one.deviation is not None
    ]


def only(api: str, version: int, kind: Kind, altered: Plant) -> Plant:
    """Plant a deviation in the answers to one version of an API."""

    def plant(request: RequestFrame, payload: bytes, answer: bytes) -> bytes | None:
        header: Any = request.header
        body: Any = None
        if request.api_name == api and request.api_version == version:
            body = message(request.message_name).decode(payload[request.body_offset :], version)
        kinds = {
            Kind.HEADER_TAGS: bool(header.unknown_tagged_fields),
            Kind.BODY_TAGS: bool(body is not None and body.unknown_tagged_fields),
            Kind.NULL_CLIENT_ID: header.client_id is None,
        }
        is_other = any(kinds.values()) if kind is Kind.PLAIN else not kinds.get(kind)
        return frame(answer) if body is None or is_other else altered(request, payload, answer)

    return plant


@pytest.mark.long
@pytest.mark.slow
def test_nothing_is_found_in_a_broker_that_answers_as_kafka_does() -> None:
    run = ran(hostile=True)
    assert found(run) == []
    assert run.counts[CaseVerdict.DIFFERS] == run.counts[CaseVerdict.NOT_JUDGED] == 0
    assert run.as_kafka == run.judged == len(run.plan.cases) > 750
    assert {one.remark for one in run.results} == {""}
    assert run.summary.endswith(
        f"answers as Apache Kafka 4.4.0 in {run.judged} of {run.judged} cases"
    )


def test_a_wrong_correlation_id() -> None:
    def wrong(_: RequestFrame, __: bytes, answer: bytes) -> bytes:
        return frame(with_correlation_id(answer, 1))

    run = ran(only("Metadata", 4, Kind.NULL_CLIENT_ID, wrong), "Metadata")
    assert found(run) == [("Metadata 4, null client id", rules.CORRELATION_ID, 0, "correlationId")]


def test_a_correlation_id_that_keeps_two_bytes() -> None:
    def short(_: RequestFrame, __: bytes, answer: bytes) -> bytes:
        return frame(b"\0\0" + answer[2:])

    run = ran(only("DescribeCluster", 0, Kind.PLAIN, short), "DescribeCluster")
    assert found(run) == [("DescribeCluster 0, plain", rules.CORRELATION_ID, 0, "correlationId")]


@pytest.mark.parametrize("version", [4, 12])
def test_a_byte_too_many(version: int) -> None:
    lengths = []

    def longer(_: RequestFrame, __: bytes, answer: bytes) -> bytes:
        lengths.append(len(answer))
        return frame(answer + b"\0")

    run = ran(only("Metadata", version, Kind.NULL_CLIENT_ID, longer), "Metadata")
    [length] = lengths
    assert found(run) == [(f"Metadata {version}, null client id", rules.END, length, "")]
    assert "Java client accepts this response" in told(run.deviations[0])


def told(result: CaseResult) -> str:
    return "" if result.deviation is None else result.deviation.found


@pytest.mark.long
def test_a_byte_too_many_that_may_also_be_the_other_header() -> None:
    """For a response of zeros, the finding names both possible causes."""

    def longer(_: RequestFrame, __: bytes, answer: bytes) -> bytes:
        return frame(answer[:4] + bytes(15))

    run = ran(only("Fetch", 11, Kind.NULL_CLIENT_ID, longer), "Fetch")
    assert found(run) == [("Fetch 11, null client id", rules.RESPONSE_HEADER, 4, "header")]
    assert told(run.deviations[0]) == (
        "expected header version 0, got 1; or the response ends at byte 18, followed by 1 byte"
    )


def test_a_second_response() -> None:
    def twice(_: RequestFrame, __: bytes, answer: bytes) -> bytes:
        return frame(answer) + frame(answer)

    run = ran(only("Metadata", 4, Kind.NULL_CLIENT_ID, twice), "Metadata")
    [(name, rule, offset, _)] = found(run)
    assert (name, rule) == ("Metadata 4, null client id", rules.ONE_RESPONSE)
    result = run.deviations[0]
    assert result.outcome.payload is not None
    assert offset == len(result.outcome.payload) == result.outcome.unread


def test_a_missing_field() -> None:
    def shorter(_: RequestFrame, __: bytes, answer: bytes) -> bytes:
        # The throttle time comes first, after the correlation id.
        return frame(answer[:4] + answer[8:])

    run = ran(only("ListOffsets", 2, Kind.NULL_CLIENT_ID, shorter), "ListOffsets")
    [(name, rule, offset, path)] = found(run)
    assert (name, rule) == ("ListOffsets 2, null client id", rules.BODY)
    assert offset is not None
    assert offset >= 8
    assert path.startswith("topics")


@pytest.mark.parametrize("kind", [Kind.BODY_TAGS, Kind.HEADER_TAGS])
def test_tags_that_are_not_skipped(kind: Kind) -> None:
    def closes(_: RequestFrame, __: bytes, ___: bytes) -> None:
        return None

    run = ran(only("Metadata", FLEXIBLE, kind, closes), "Metadata")
    assert found(run) == [(f"Metadata 9, {kind.value}", rules.TAGS, None, "")]


def test_tags_that_change_the_answer() -> None:
    def invalid(request: RequestFrame, _: bytes, __: bytes) -> bytes:
        body = message("DescribeClusterResponse")(error_code=42)
        return frame(
            response_payload(
                request.api_key,
                request.api_version,
                body,
                correlation_id=request.correlation_id,
            )
        )

    run = ran(only("DescribeCluster", 1, Kind.BODY_TAGS, invalid), "DescribeCluster")
    assert found(run) == [("DescribeCluster 1, unknown tags", rules.TAGS, None, "errorCode")]


@pytest.mark.parametrize(("api", "version"), [("Metadata", 9), ("Metadata", 8), ("ApiVersions", 3)])
def test_a_wrong_header_version(api: str, version: int) -> None:
    def other_header(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        header = response_header_version(request.api_key, request.api_version)
        return frame(answer[:4] + (answer[5:] if header else b"\0" + answer[4:]))

    run = ran(only(api, version, Kind.NULL_CLIENT_ID, other_header), api)
    assert found(run) == [(f"{api} {version}, null client id", rules.RESPONSE_HEADER, 4, "header")]


def newer(altered: Plant) -> Plant:
    """Plant a deviation in the answer to an ApiVersions request in an unknown version."""

    def plant(request: RequestFrame, payload: bytes, answer: bytes) -> bytes | None:
        lacks = request.api_key == API_VERSIONS and request.api_version > 5
        return altered(request, payload, answer) if lacks else frame(answer)

    return plant


def fallback(code: int, *keys: int) -> bytes:
    kind: Any = message("ApiVersionsResponse")
    versions = [{"api_key": key, "min_version": 0, "max_version": 4} for key in keys]
    body: bytes = kind.of(error_code=code, api_keys=versions).encode(0)
    return body


FALLBACKS: dict[str, tuple[bytes | None, int | None, str]] = {
    "closes": (None, None, ""),
    "no versions": (fallback(35), 6, "apiKeys"),
    "only others": (fallback(35, 3), 6, "apiKeys"),
    "no error": (fallback(0, 18), 4, "errorCode"),
    "another error": (fallback(42, 18), 4, "errorCode"),
    "in its version": (b"\0\x23\1\0\0\0\0\0", 6, "apiKeys"),
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_a_wrong_fallback_of_api_versions(name: str) -> None:
    body, offset, path = FALLBACKS[name]

    def wrong(_: RequestFrame, __: bytes, answer: bytes) -> bytes | None:
        return None if body is None else frame(answer[:4] + body)

    run = ran(newer(wrong), "ApiVersions")
    [(case, rule, at, field)] = found(run)
    assert (case, rule, field) == ("ApiVersions 6, not offered", rules.FALLBACK, path)
    assert at == offset


def test_a_version_that_is_not_offered_and_answered() -> None:
    """The broker offers fewer versions than it reads, which counts as a remark."""

    def offers_less(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if request.api_key != API_VERSIONS:
            return frame(answer)
        header = parse_response(answer, request.api_key, request.api_version)
        body: Any = message("ApiVersionsResponse").decode(
            answer[header.body_offset :], header.body_version
        )
        for one in body.api_keys:
            if one.api_key == METADATA:
                one.min_version, one.max_version = 2, 11
        return frame(answer[: header.body_offset] + body.encode(header.body_version))

    run = ran(offers_less, "Metadata")
    assert found(run) == [
        ("Metadata 12, not offered", rules.REFUSED, 0, ""),
        ("Metadata 1, not offered", rules.REFUSED, 0, ""),
    ]


@pytest.mark.long
@pytest.mark.slow
def test_no_answer_ends_in_time_and_the_other_kinds_are_not_sent() -> None:
    def silent(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        return (
            SILENCE if (request.api_name, request.api_version) == ("Fetch", 12) else frame(answer)
        )

    run = ran(silent, "Fetch", timeout=BRIEF)
    assert found(run) == [("Fetch 12, plain", rules.ANSWERED, None, "")]
    assert run.deviations[0].outcome.ending is Ending.SILENT
    assert [case.kind for case in run.skipped] == [
        *(Kind.BODY_TAGS, Kind.HEADER_TAGS, Kind.NULL_CLIENT_ID, Kind.EMPTY, Kind.MANY)
    ]


NO_FRAMES = {
    "huge": b"\x7f\xff\xff\xff" + bytes(100),
    "negative": b"\xff\xff\xff\xff",
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("name", NO_FRAMES)
def test_a_response_that_is_no_frame(name: str) -> None:
    run = ran(only("Metadata", 4, Kind.NULL_CLIENT_ID, lambda *_: NO_FRAMES[name]), "Metadata")
    assert found(run) == [("Metadata 4, null client id", rules.FRAME, None, "")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (frame(b""), rules.CORRELATION_ID),
        (frame(b"\1\2\3"), rules.CORRELATION_ID),
        *in_make_long((b"\0\0\0\x20" + bytes(7), rules.CLIENT_ID)),
    ],
    ids=["empty", "three bytes", "cut off"],
)
def test_a_response_that_is_too_short(answer: bytes, rule: ConformanceRule) -> None:
    plant = only("Metadata", 4, Kind.NULL_CLIENT_ID, lambda *_: answer)
    run = ran(plant, "Metadata", timeout=BRIEF)
    assert [one[1] for one in found(run)] == [rule]


def test_garbage_behind_a_header_is_a_deviation_with_its_place() -> None:
    """A count that exceeds the bytes costs neither memory nor time."""

    def garbage(_: RequestFrame, __: bytes, answer: bytes) -> bytes:
        return frame(answer[:4] + b"\0" * 5 + b"\xff\xff\xff\xff\x0f" + bytes(20))

    run = ran(only("Metadata", 9, Kind.NULL_CLIENT_ID, garbage), "Metadata")
    [(_, rule, offset, path)] = found(run)
    assert (rule, path) == (rules.BODY, "brokers")
    assert offset == 9


def test_names_that_are_left_out() -> None:
    def nothing(request: RequestFrame, _: bytes, __: bytes) -> bytes:
        body = message("MetadataResponse")()
        told = request.correlation_id
        return frame(
            response_payload(request.api_key, request.api_version, body, correlation_id=told)
        )

    run = ran(only("Metadata", 12, Kind.NULL_CLIENT_ID, nothing), "Metadata")
    assert found(run) == [("Metadata 12, null client id", rules.ECHO, None, "topicName")]


@pytest.mark.parametrize(("code", "is_found"), [(16, False), (0, True)])
def test_groups_of_another_coordinator_need_not_name_their_topics(
    code: int, *, is_found: bool
) -> None:
    """In a cluster, a broker answers for some groups and returns an error for the others."""

    def half(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if (request.api_name, request.api_version) != ("OffsetFetch", 8):
            return frame(answer)
        start = parse_response(answer, request.api_key, request.api_version).body_offset
        kind: Any = message("OffsetFetchResponse")
        asked = kind.decode(answer[start:], request.api_version).groups
        if len(asked) < 2:
            return frame(answer)
        # One of the groups has the same name as the topic of the request.
        rows = [{"group_id": one.group_id, "topics": [{"name": one.group_id}]} for one in asked]
        rows[::2] = [{"group_id": one.group_id, "error_code": code} for one in asked[::2]]
        return frame(answer[:start] + kind.of(groups=rows).encode(request.api_version))

    run = ran(half, "OffsetFetch")
    wanted = [("OffsetFetch 8, long lists", rules.ECHO, None, "topicName")]
    assert found(run) == (wanted if is_found else [])


@pytest.mark.parametrize("code", [29, 31, 35, 54, 61])
def test_a_missing_right_or_feature_is_not_judged(code: int) -> None:
    def refused(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if request.api_name != "DescribeCluster":
            return frame(answer)
        body, told = message("DescribeClusterResponse")(error_code=code), request.correlation_id
        return frame(
            response_payload(request.api_key, request.api_version, body, correlation_id=told)
        )

    run = ran(refused, "DescribeCluster")
    assert found(run) == []
    # Versions that are not offered are only tested for their refusal.
    assert run.judged == 1
    assert run.counts[CaseVerdict.NOT_JUDGED] == len(run.results) - 1


def test_another_error_code_is_no_deviation() -> None:
    def other(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if request.api_name != "DescribeCluster":
            return frame(answer)
        body, told = message("DescribeClusterResponse")(error_code=87), request.correlation_id
        return frame(
            response_payload(request.api_key, request.api_version, body, correlation_id=told)
        )

    run = ran(other, "DescribeCluster")
    assert found(run) == []
    assert {one.error_codes for one in run.results} == {frozenset(), frozenset((87,))}
    # This is a remark, which the text shows once.
    remark = "error code 87 INVALID_RECORD, which Apache Kafka did not return in our runs"
    assert {one.remark for one in run.results} == {remark, ""}
    told = f"remark: DescribeCluster ({len(run.results) - 1}): {remark}"
    assert formats.to_text(run).splitlines().count(told) == 1


def test_damaged_requests_that_are_answered() -> None:
    told = frame(b"\0\0\0\1" + bytes(4))
    run = ran(soundly, "ApiVersions", hostile=True, of_damaged=told)
    broken = {(case, rule) for case, rule, _, _ in found(run)}
    assert {rule for _, rule in broken} == {rules.DAMAGED}
    assert {case for case, _ in broken} == {
        one.case.name
        for one in run.results
        if one.case.kind is Kind.HOSTILE and one.case.expected.value == "must refuse"
    }
    assert len(broken) == 8


def test_what_only_kafka_takes_may_be_refused() -> None:
    def strict(request: RequestFrame, payload: bytes, answer: bytes) -> bytes | None:
        kind = message(request.message_name)
        try:
            kind.decode(payload[request.body_offset :], request.api_version)
        except Exception:  # noqa: BLE001 - this broker closes on any request
            return frame(answer) if request.api_version > 5 else None
        return frame(answer)

    run = ran(strict, "ApiVersions", hostile=True)
    assert found(run) == []
    assert run.counts[CaseVerdict.DIFFERS] == run.judged - run.as_kafka == 5


UNREAD = {
    "no body": (b"", rules.BODY, 4, "errorCode"),
    "half a body": (b"\0\0\0\1", rules.BODY, 6, "apiKeys"),
    "all bits": (b"\xff" * 40, rules.BODY, 6, "apiKeys"),
    "bits behind no error": (bytes(4) + b"\x7f" * 30, rules.BODY, 6, "apiKeys"),
    "a fallback in no version": (b"\0\x23" + b"\xff" * 9, rules.FALLBACK, 6, "apiKeys"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_list_of_versions_that_cannot_be_read_is_a_deviation(name: str) -> None:
    answer, rule, offset, path = UNREAD[name]

    def garbage(request: RequestFrame, _: bytes, sound: bytes) -> bytes:
        return frame(sound[:4] + answer if request.api_key == API_VERSIONS else sound)

    run = ran(garbage, hostile=True)
    kind = "not offered" if rule is rules.FALLBACK else "plain"
    assert found(run) == [(f"ApiVersions 5, {kind}", rule, offset, path)]
    assert run.summary.endswith("in 0 of 1 cases")
    # All other cases are listed with the reason.
    assert {one.reason for one in run.plan.unasked} == {VERSIONS_UNREAD}
    assert {one.api_name for one in run.plan.unasked} == QUESTIONS.keys() - {"ApiVersions"}
    assert f"APIs; {VERSIONS_UNREAD}" in formats.to_text(run)


def test_a_list_of_versions_with_another_correlation_id_is_a_deviation() -> None:
    def other(request: RequestFrame, _: bytes, sound: bytes) -> bytes:
        is_asked = request.api_key == API_VERSIONS
        return frame(with_correlation_id(sound, 1) if is_asked else sound)

    run = ran(other, "Metadata")
    name = "ApiVersions 5, plain"
    assert found(run) == [(name, rules.CORRELATION_ID, 0, "correlationId")]
    assert [one.api_name for one in run.plan.unasked] == ["Metadata"]


def test_the_list_behind_a_sound_fallback_is_the_one_that_cannot_be_read() -> None:
    """The broker lacks version 5, reports this as in KIP-511, and answers version 4 wrongly."""

    def older(request: RequestFrame, _: bytes, sound: bytes) -> bytes:
        if request.api_key != API_VERSIONS:
            return frame(sound)
        return frame(sound[:4] + (fallback(35, 18) if request.api_version == 5 else b"\0"))

    assert found(ran(older)) == [("ApiVersions 4, plain", rules.BODY, 4, "errorCode")]


def test_a_second_answer_behind_an_unreadable_list_is_not_taken_for_the_next_one() -> None:
    def twice(request: RequestFrame, _: bytes, sound: bytes) -> bytes:
        return 2 * frame(sound[:4]) if request.api_key == API_VERSIONS else frame(sound)

    assert found(ran(twice)) == [("ApiVersions 5, plain", rules.BODY, 4, "errorCode")]


NO_LISTS: dict[str, tuple[bytes | None, str]] = {
    "closed": (None, "without an answer"),
    "no frame": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
    "an error code": (b"", "does not report its API versions: INVALID_REQUEST"),
}


@pytest.mark.parametrize("name", NO_LISTS)
def test_a_list_of_versions_that_does_not_come_is_an_error(name: str) -> None:
    """A peer that may not be a broker is reported, and an error code is never a deviation."""
    answer, says = NO_LISTS[name]

    def unlisted(request: RequestFrame, _: bytes, sound: bytes) -> bytes | None:
        if answer != b"":
            return answer
        kind: Any = message("ApiVersionsResponse")
        body = kind(error_code=42).encode(request.api_version)
        return frame(sound[:4] + body)

    with pytest.raises(CallError, match=says):
        ran(unlisted)


def test_a_broker_that_ends_is_an_error_that_names_the_case_before() -> None:
    with kafka_like() as (address, broker):
        asked = []

        def end(result: CaseResult, _: int) -> None:
            asked.append(result.case.name)
            if len(asked) == 3:
                broker.closes = True

        asking = Asking(RELEASE, frozenset((METADATA,)))
        run = conform(address, asking, timeout=SECONDS, watch=end)
    # The broker still accepts connections, but it closes each one at its first request.
    assert run.results[3].outcome.ending is Ending.CLOSED
    with pytest.raises(CallError, match="cannot be reached"):
        conform(address, asking, timeout=SECONDS)
