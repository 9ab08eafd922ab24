"""Read-only cases send requests that only read, in every version that a broker may assume."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client.write_requests import READING, why_it_writes
from flexwire.codec import message
from flexwire.conformance import (
    Asking,
    CaseExpectation,
    CasePlan,
    Kind,
    plan_cases,
    plan_with_hostile,
)
from flexwire.conformance.cases import MANY
from flexwire.conformance.questions import (
    NAME,
    NOT_ASKED,
    QUESTIONS,
    filled,
    has_names,
    question,
    why_not_asked,
)
from flexwire.errors import CodecError, FrameError
from flexwire.protocol import read_request
from flexwire.protocol.apis import (
    api_key_of,
    api_name,
    is_released,
    released_versions,
)
from flexwire.protocol.headers import request_name
from flexwire.schema.catalog import catalog
from flexwire.versions import HIGHEST, Versions
from tests.conformance.forms import api_fields, form_fields
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.conformance import Case

NEWEST = "4.4.0"
# With an empty or null list, which means "all", or with a name that need not exist, these APIs do
# more than read. docs/conformance.md describes what Apache Kafka does for each of them.
NEVER = {"FindCoordinator": Versions(0, 3)}


def every_version() -> dict[int, Versions]:
    """Return all versions that exist in any release, by api key."""
    return {key: released_versions(key) for key in catalog().api_keys()}


@pytest.fixture(scope="module")
def plan() -> CasePlan:
    return plan_with_hostile(every_version(), Asking(NEWEST, hostile=True))


def readings(case: Case) -> Iterator[tuple[str, Any]]:
    """Yield what a broker may read in a request: its body as Kafka reads it in each
    nearby version.
    """
    payload = case.data[4:]
    try:
        request = read_request(payload)
    except (CodecError, FrameError):
        return
    for version in {case.version, case.version - 1, case.version + 1}:
        if not is_released(case.api_key, version):
            continue
        kind = message(request_name(case.api_key, version))
        for start in {request.body_offset, request.body_offset + 1}:
            try:
                body, _ = kind.decode_prefix(payload[start:], version, lenient=True)
            except CodecError:
                continue
            if version == case.version or case.kind is Kind.UNOFFERED:
                yield api_name(case.api_key), body


@pytest.mark.slow
def test_every_request_only_reads_whatever_is_made_of_it(plan: CasePlan) -> None:
    read = 0
    for case in plan.cases:
        for name, body in readings(case):
            read += 1
            assert why_it_writes(name, body) is None, case.name
    assert read > len(plan.cases) // 2


def test_every_version_of_every_api_is_asked_or_it_is_said_why_not(plan: CasePlan) -> None:
    asked = {(case.api_key, case.version) for case in plan.cases if case.kind is Kind.PLAIN}
    left_out = {(one.api_key, version) for one in plan.unasked for version in one.versions}
    every = {(key, version) for key, versions in every_version().items() for version in versions}
    assert asked | left_out == every
    assert not asked & left_out
    assert all(one.reason for one in plan.unasked)


@pytest.mark.long
@pytest.mark.slow
def test_a_broker_that_offers_every_number_is_asked_what_releases_have() -> None:
    offered = {key: Versions(0, HIGHEST) for key in (*catalog().api_keys(), 30_000)}
    whole = plan_with_hostile(offered, Asking(NEWEST, hostile=True))
    assert {case.version for case in whole.cases if case.api_name == "Fetch"} == {*range(19)}
    unknown = {one.api_key: str(one.versions) for one in whole.unasked if "versions" in one.reason}
    assert unknown[1] == "19+"
    assert {*unknown} == {*catalog().api_keys()}
    assert str(whole.unasked[-1].versions) == "0+"
    some = plan_cases({2: Versions(3, 5), 4: Versions(0, 0)}, Asking(NEWEST))
    assert [str(one.versions) for one in some.unasked] == ["0"]


def test_only_apis_that_only_read_have_questions() -> None:
    assert {*QUESTIONS} <= READING
    # ListOffset is an old name of ListOffsets, and ListClientMetricsResources of
    # ListConfigResources.
    names = {api_name(api_key_of(name)) for name in READING}
    assert names - {*QUESTIONS} == {*NOT_ASKED} - {*NEVER}
    for name, versions in NEVER.items():
        assert all(question(name, version) is None for version in versions)
        assert why_not_asked(api_key_of(name), name) == NOT_ASKED[name]


def test_old_metadata_requests_name_no_topic(plan: CasePlan) -> None:
    metadata = [case for case in plan.cases if case.api_name == "Metadata"]
    for case in metadata:
        if case.version < 4:
            assert case.body["topics"] == [], case.name
        elif "allowAutoTopicCreation" in case.body:
            assert case.body["allowAutoTopicCreation"] is False, case.name
    assert {case.version for case in metadata} >= {0, 3, 4, 13}


def test_a_fetch_takes_no_place_for_sessions_and_does_not_wait(plan: CasePlan) -> None:
    fetches = [case for case in plan.cases if case.api_name == "Fetch"]
    assert len(fetches) > 40
    for case in fetches:
        assert case.body.get("sessionEpoch", -1) == -1
        assert case.body["maxWaitMs"] == 0
        assert case.body.get("replicaId", -1) == -1


def test_no_list_of_names_is_null(plan: CasePlan) -> None:
    for case in plan.cases:
        for api_question in QUESTIONS[case.api_name]:
            for field, value in api_question.form.items():
                if isinstance(value, list) and field in case.body:
                    assert case.body[field] is not None, case.name


def test_no_place_of_a_name_is_sent_unfilled(plan: CasePlan) -> None:
    for case in plan.cases:
        assert b"{number}" not in case.data, case.name


def test_names_are_those_that_nobody_has(plan: CasePlan) -> None:
    names = {filled(form, number) for form in (NAME, f"id of {NAME}") for number in range(MANY)}
    for case in plan.cases:
        if case.kind is Kind.MANY:
            told = json.dumps(case.body)
            assert sum(json.dumps(name) in told for name in names) >= MANY, case.name


@each("name", sorted(QUESTIONS))
def test_every_field_of_a_form_is_one_of_the_api(name: str) -> None:
    for api_question in QUESTIONS[name]:
        # Each field exists in some version, except the topic id, which `_about` always adds.
        assert {*form_fields(api_question.form)} - {"topicId"} <= api_fields(name)


def test_a_form_is_filled_everywhere() -> None:
    for questions in QUESTIONS.values():
        for api_question in questions:
            assert "{" not in json.dumps(filled(dict(api_question.form))).replace('{"', "").replace(
                "{}", ""
            )
            assert has_names(api_question.form) == (NAME in json.dumps(api_question.form))


def test_a_version_that_is_not_offered_is_asked_by_its_own_question() -> None:
    # A broker that offers Metadata from version 4, but accepts 3, must find no name in the request.
    cases = plan_cases({3: Versions(4, 9)}, Asking(NEWEST)).cases
    [below] = [
        case for case in cases if case.expected is CaseExpectation.REFUSED and case.version == 3
    ]
    assert below.body == {"topics": []}
    # If there is no request for the version below, none is sent.
    cases = plan_cases({10: Versions(4, 6)}, Asking(NEWEST)).cases
    assert [case.version for case in cases if case.expected is CaseExpectation.REFUSED] == [7]
