"""`--write` changes only its own topic and group, and removes both in any case."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.cli.conform import _ended_in_order
from flexwire.codec import message
from flexwire.conformance import (
    Asking,
    CasePlan,
    CaseVerdict,
    Kind,
    SecondBroker,
    conform,
    formats,
    plan_with_hostile,
    rules,
)
from flexwire.conformance.cases import entity_values
from flexwire.conformance.removals import removals
from flexwire.conformance.write_plans import own_questions, with_writes
from flexwire.conformance.writing import PREFIX, OwnNames, own_name, write_questions
from flexwire.errors import ArgumentError, CodecError
from flexwire.protocol import read_request
from flexwire.protocol.apis import api_key_of, is_released, released_versions
from flexwire.protocol.audit.evidence import offered_versions
from flexwire.protocol.headers import request_name
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions
from tests.cli.test_messages import Run, run
from tests.conformance.brokers import RELEASE, KafkaLike, kafka_like, offering
from tests.conformance.forms import api_fields, form_fields
from tests.conformance.test_journal import StoppedError, stop_after
from tests.each import each
from tests.protocol.payloads import frame, response_payload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.conformance import Case
    from flexwire.protocol import RequestFrame

__all__ = ["run"]
OWN = f"{PREFIX}0123456789abcdef"
OWNED = {OWN, *OwnNames.of(OWN)}
WRITING = sorted(write_questions(OWN))
KEYS = frozenset(map(api_key_of, WRITING))
REMOVING = ("DeleteGroups", "DeleteTopics")
EVERY = {key: released_versions(key) for key in catalog().api_keys()}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for a leader or coordinator, because these brokers have none."""
    monkeypatch.setattr("flexwire.conformance.own.MOST_WAITED", 0)


@pytest.fixture(scope="module")
def plan() -> CasePlan:
    return plan_with_hostile(EVERY, Asking(RELEASE, hostile=True, own=OWN))


def bodies(case: Case) -> Iterator[tuple[Any, int]]:
    """Yield what a broker may read in a request, in its own version and in nearby versions."""
    payload = case.data[4:]
    request = read_request(payload)
    for version in {case.version, case.version - 1, case.version + 1}:
        if not is_released(case.api_key, version):
            continue
        kind = message(request_name(case.api_key, version))
        for start in {request.body_offset, request.body_offset + 1}:
            try:
                body, _ = kind.decode_prefix(payload[start:], version, lenient=True)
            except CodecError:
                continue
            yield body, version


def named(body: Any, version: int) -> set[str]:
    """Return the topics, groups and resources that a body names."""
    kind = type(body)
    form, schema = body.to_json(version), kind.definition.schema(version)
    found = {one for names in entity_values(form, schema, kind, version).values() for one in names}
    found |= {one["resourceName"] for one in form.get("resources") or []}
    return found - {"AAAAAAAAAAAAAAAAAAAAAA"}


@pytest.mark.slow
def test_only_the_own_topic_and_group_are_named_whatever_is_made_of_it(plan: CasePlan) -> None:
    writes = [case for case in plan.cases if case.writes]
    read = 0
    for case in writes:
        for body, version in bodies(case):
            told = named(body, version)
            if version == case.version or case.kind is Kind.UNOFFERED:
                read += 1
                # A broker that expects another header reads a part of the name.
                strange = {name for name in told - OWNED if OWN[1:] not in name}
                assert not strange, case.name
            if case.api_name in {"AlterConfigs", "IncrementalAlterConfigs"}:
                types = {one["resourceType"] for one in body.to_json(version)["resources"] or []}
                assert version != case.version or types == {2}
    assert read > len(writes) * 0.9 > 150


@pytest.mark.long
@pytest.mark.slow
def test_nothing_is_written_without_a_name_for_it_and_none_of_it_is_hostile() -> None:
    reading = plan_with_hostile(EVERY, Asking(RELEASE, hostile=True))
    assert not any(case.writes for case in reading.cases)
    both = plan_with_hostile(EVERY, Asking(RELEASE, hostile=True, own=OWN))
    count = len(reading.cases)
    # Requests that only read come first, exactly as without `--write`.
    assert both.cases[:count] == reading.cases
    assert all(case.writes for case in both.cases[count:])
    assert not any(case.kind is Kind.HOSTILE for case in both.cases[count:])
    ids = [case.correlation_id for case in both.cases if case.kind is not Kind.HOSTILE]
    assert len({*ids}) == len(ids)


def test_the_apis_stand_in_the_order_of_a_topics_life(plan: CasePlan) -> None:
    order = list(dict.fromkeys(case.api_name for case in plan.cases if case.writes))
    assert order == [*write_questions(OWN)]
    assert order[0] == "CreateTopics"
    assert (order[-2], order[-1]) == REMOVING


def test_every_version_is_asked_or_it_is_said_why_not(plan: CasePlan) -> None:
    asked = {(one.api_key, one.version) for one in plan.cases if one.kind is Kind.PLAIN}
    left_out = {(one.api_key, version) for one in plan.unasked for version in one.versions}
    every = {(key, version) for key, versions in EVERY.items() for version in versions}
    assert asked | left_out == every
    assert not asked & left_out
    reasons = {one.api_name: one.reason for one in plan.unasked}
    assert not reasons.keys() & {*WRITING}
    assert reasons["UpdateFeatures"].startswith("UpdateFeatures may change something")


@pytest.mark.parametrize("remover", sorted({one.api_name for one in removals(OWN)}))
def test_nothing_is_created_that_the_broker_cannot_remove(remover: str) -> None:
    # Other APIs only read, and planning their requests takes most of the time.
    offered = {key: EVERY[key] for key in KEYS - {api_key_of(remover)}}
    plan = plan_with_hostile(offered, Asking(RELEASE, own=OWN))
    written = {case.api_name for case in plan.cases if case.writes}
    made = {name for one in removals(OWN) if one.api_name == remover for name in one.makers}
    assert written == {*WRITING} - made - {remover}
    left_out = {one.api_name for one in plan.unasked if remover in one.reason}
    assert left_out >= made - {remover}


def test_each_api_that_changes_something_has_what_removes_it() -> None:
    made = {name for one in removals(OWN) for name in one.makers}
    # The request can only create an internal topic of the cluster.
    assert {*WRITING} - made == {"FindCoordinator"}


@pytest.mark.long
@pytest.mark.slow
def test_a_whole_cluster_is_asked_only_if_nobody_needs_it(plan: CasePlan) -> None:
    """Requests name no existing object, and contain no empty list or name, which could
    mean "all".
    """
    asking = Asking(RELEASE, own=OWN, disposable=True)
    every = plan_with_hostile(EVERY, asking)
    others = {case.api_name for case in every.cases} - {case.api_name for case in plan.cases}
    assert others == {*own_questions(asking)} - {*WRITING}
    assert len(others) == 20
    ours = {*OWNED, f"{OWN}-state", f"User:{OWN}", f"/{OWN}"}
    for case in every.cases:
        if case.api_name not in others or case.kind is Kind.UNOFFERED:
            continue
        assert case.writes
        told = dict(leaves(case.body))
        assert ours & {*map(str, told.values())} or case.api_name in NAMELESS, case.name
        nothing = {path for path, value in told.items() if value is None}
        assert nothing <= {"ownerPrincipalType", "ownerPrincipalName"}
        nodes = {told.get(name, 2**30) for name in ("voterId", "brokerId")}
        assert nodes == {2**30}
    order = list(dict.fromkeys(case.api_name for case in every.cases if case.writes))
    assert (order[0], order[-2:]) == ("CreateTopics", [*REMOVING])


# These requests are about a number, or the hash of a token.
NAMELESS = {
    *("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"),
    "UnregisterBroker",
}


def leaves(form: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a form, by path."""
    if isinstance(form, dict):
        for name, value in form.items():
            yield from leaves(value, f"{path}.{name}".lstrip("."))
    elif isinstance(form, list):
        for at, value in enumerate(form):
            yield from leaves(value, f"{path}[{at}]")
    else:
        yield path, form


def test_a_name_that_may_be_somebodys_is_refused() -> None:
    for own in ("orders", "", " flexwire-conform-1"):
        with pytest.raises(ArgumentError, match="begins with flexwire-conform-"):
            with_writes(CasePlan((), ()), EVERY, Asking(RELEASE, own=own))
    assert own_name().startswith(PREFIX)
    assert len({own_name() for _ in range(100)}) == 100


@each("name", WRITING)
def test_every_field_of_a_form_is_one_of_the_api(name: str) -> None:
    for question in write_questions(OWN)[name]:
        assert {*form_fields(question.form, whole="records")} <= api_fields(name)
        assert question.writes


def sent(broker: KafkaLike) -> list[tuple[str, int]]:
    return [(name, version) for name, version, _ in broker.asked if name != "ApiVersions"]


def removed(broker: KafkaLike) -> list[str]:
    """Return the removal APIs that a broker received, each for a name of the run."""
    found = []
    removers = {one.api_name for one in removals(OWN)}
    for name, _, payload in broker.asked:
        is_case = payload[4:6] == b"\x4b\x61"
        if name in removers and not is_case:
            assert OWN.encode() in payload
            found.append(name)
    return found


def test_a_broker_that_answers_as_kafka_passes_and_is_told_to_remove_both() -> None:
    with kafka_like(refusing(0)) as (address, broker):
        ran = conform(address, Asking(RELEASE, KEYS, own=OWN))
        # This broker assigns no member id and no producer id.
        assert removed(broker) == [one.api_name for one in removals(OWN) if not one.needed]
    assert (ran.deviations, ran.left) == ((), ())
    assert ran.as_kafka == ran.judged == len(ran.plan.cases) > 150
    assert "left behind" not in formats.to_text(ran)


@pytest.mark.parametrize(
    ("count", "removers"),
    [(0, []), (1, ["DeleteTopics"]), (150, ["DeleteGroups", "DeleteTopics"])],
)
def test_a_run_that_is_stopped_removes_what_it_may_have_made(
    count: int, removers: list[str]
) -> None:
    asking = Asking(RELEASE, KEYS, own=OWN)
    offered = {key: offered_versions(key, RELEASE) for key in KEYS}
    reading = sum(not case.writes for case in plan_with_hostile(offered, asking).cases)
    with kafka_like() as (address, broker):
        with pytest.raises(StoppedError):
            conform(address, asking, watch=stop_after(reading + count))
        assert removed(broker) == removers
        # A run that only reads has nothing to remove.
        broker.asked.clear()
        conform(address, Asking(RELEASE, frozenset((60,))))
        assert removed(broker) == []


@pytest.mark.parametrize(
    ("api", "removers"),
    [
        ("Produce", ["DeleteTopics"]),
        ("OffsetCommit", ["DeleteGroups"]),
        ("JoinGroup", ["DeleteGroups"]),
        ("EndTxn", []),
        ("TxnOffsetCommit", ["DeleteGroups"]),
        ("ShareGroupHeartbeat", ["ShareGroupHeartbeat", "DeleteGroups"]),
        ("ShareFetch", ["DeleteGroups"]),
        ("DeleteTopics", ["DeleteTopics"]),
        ("Metadata", []),
    ],
)
def test_only_what_may_have_been_created_is_removed(api: str, removers: list[str]) -> None:
    with kafka_like(refusing(0)) as (address, broker):
        asking = Asking(RELEASE, frozenset((api_key_of(api),)), own=OWN)
        ran = conform(address, asking)
        assert removed(broker) == removers
    assert ran.left == ()


def test_both_brokers_are_told_to_remove_both() -> None:
    with kafka_like() as (address, one), kafka_like() as (second, other):
        asking = Asking(RELEASE, frozenset(map(api_key_of, REMOVING)), own=OWN)
        ran = conform(address, asking, against=SecondBroker(second))
        assert ran.differences == ()
        assert removed(one) == removed(other) == [*REMOVING]


def refusing(code: int) -> Any:
    """Plant a deviation: the broker deletes nothing."""

    def planted(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if request.api_name not in REMOVING:
            return frame(answer)
        kind: Any = message(f"{request.api_name}Response")
        topics = request.api_name == "DeleteTopics"
        rows = [{"name" if topics else "group_id": OWN, "error_code": code}]
        body = kind.of(**{"responses" if topics else "results": rows})
        told = request.correlation_id
        return frame(
            response_payload(request.api_key, request.api_version, body, correlation_id=told)
        )

    return planted


def test_what_cannot_be_removed_is_told(caplog: pytest.LogCaptureFixture) -> None:
    asking = Asking(RELEASE, frozenset(map(api_key_of, REMOVING)), own=OWN)
    with kafka_like(refusing(41)) as (address, _):
        ran = conform(address, asking)
        says = [f"{noun} {OWN}: error code 41 NOT_CONTROLLER" for noun in ("group", "topic")]
        assert [*ran.left] == says
        text = formats.to_text(ran)
        assert all(f"\nleft behind: {one}\n" in text for one in says)
        assert json.loads(formats.to_json(ran))["leftBehind"] == says
        with pytest.raises(StoppedError):
            conform(address, asking, watch=stop_after(len(ran.results)))
        assert [one.getMessage() for one in caplog.records] == [f"left behind: {s}" for s in says]
    for code in (3, 69):
        with kafka_like(refusing(code)) as (address, _):
            left = conform(address, asking).left
            assert [one.split()[0] for one in left] == (["group"] if code == 3 else ["topic"])


def test_the_command_says_what_is_left_in_every_format(run: Run) -> None:
    with kafka_like(refusing(41)) as (address, _):
        for output in ("text", "json", "junit"):
            ran = run("conform", address, "--apis", "20,42", "--write", "--format", output)
            lines = ran.err.splitlines()
            assert [line.split(PREFIX)[0] for line in lines] == [
                "left behind: group ",
                "left behind: topic ",
            ]


def test_a_broker_that_ends_is_no_hindrance_to_telling_what_is_left() -> None:
    with kafka_like() as (address, broker):

        def end(_: object, __: int) -> None:
            broker.closes = True

        ran = conform(address, Asking(RELEASE, KEYS, own=OWN), watch=end)
    nouns = {f"{one.noun} {one.name}" for one in removals(OWN) if one.noun and not one.needed}
    assert {one.split(":")[0] for one in ran.left} == nouns


def test_an_error_code_beside_tags_is_no_deviation_if_the_plain_request_changed_something() -> None:
    """The plain request creates the topic, so the next request finds the topic."""
    seen: list[int] = []

    def stateful(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if request.api_name != "CreateTopics":
            return frame(answer)
        seen.append(request.api_version)
        code = 36 if len(seen) > 1 else 0
        kind: Any = message("CreateTopicsResponse")
        body = kind.of(topics=[{"name": OWN, "error_code": code}])
        told = request.correlation_id
        return frame(response_payload(19, request.api_version, body, correlation_id=told))

    with kafka_like(offering({19: (5, 7)}, stateful)) as (address, _):
        ran = conform(address, Asking(RELEASE, frozenset((19,)), own=OWN))
    assert ran.results[0].error_codes == frozenset()
    assert ran.results[1].case.kind is Kind.BODY_TAGS
    assert ran.results[1].error_codes == {36}
    # This broker reads more versions than it offers.
    assert [one.case.name for one in ran.deviations] == ["CreateTopics 4, not offered"]


def test_a_deviation_in_a_request_that_writes_is_found() -> None:
    def longer(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        is_it = (request.api_name, request.api_version) == ("DeleteRecords", 1)
        return frame(answer + b"\0" if is_it else answer)

    with kafka_like(longer) as (address, _):
        ran = conform(address, Asking(RELEASE, KEYS, own=OWN))
    assert [(one.case.name, one.deviation and one.deviation.rule) for one in ran.deviations] == [
        ("DeleteRecords 1, plain", rules.END),
        ("DeleteRecords 1, null client id", rules.END),
    ]


def test_produce_0_to_2_is_a_quirk_of_4() -> None:
    def closes(request: RequestFrame, _: bytes, answer: bytes) -> bytes | None:
        is_old = request.api_name == "Produce" and request.api_version < 3
        return None if is_old else frame(answer)

    with kafka_like(closes) as (address, _):
        ran = conform(address, Asking(RELEASE, frozenset((0,)), own=OWN))
        verdicts = {one.case.name: one.verdict for one in ran.results}
        for version in range(3):
            assert verdicts[f"Produce {version}, plain"] is CaseVerdict.QUIRK
        older = conform(address, Asking("3.9.2", frozenset((0,)), own=OWN))
    assert {one.case.version for one in older.deviations} == {0, 1, 2}


def test_a_journal_is_for_runs_that_read(run: Run, tmp_path: Path) -> None:
    with kafka_like() as (address, _):
        with pytest.raises(ArgumentError, match="None for a run that changes something"):
            conform(address, Asking(RELEASE, KEYS, own=OWN), journal=tmp_path / "j")
        for option in ("--write", "--disposable"):
            told = run("conform", address, option, "--resume", str(tmp_path / "j"))
            assert told.code == 2
            assert "--resume continues only runs that change nothing" in told.err
    assert [*tmp_path.iterdir()] == []


def test_the_command_writes_with_a_name_of_its_own_and_a_dry_run_sends_none(run: Run) -> None:
    with kafka_like() as (address, broker):
        given = ("conform", address, "--apis", "DeleteTopics,CreateTopics", "--write")
        told = run(*given, "--dry-run", "--format", "json")
        assert sent(broker) == []
        [own] = {one["body"]["topics"][0]["name"] for one in json.loads(told.out)["cases"][:5]}
        assert own.startswith(PREFIX)
        ran = run(*given)
        assert (ran.code, ran.err) == (0, "")
        names = {name for name, _ in sent(broker)}
        assert names == {"CreateTopics", "DeleteTopics"}
        assert not any(own.encode() in payload for _, _, payload in broker.asked)
        # Without --write these requests are not sent.
        broker.asked.clear()
        ran = run(*given[:-1])
        assert sent(broker) == []
        assert "in 0 of 0 cases" in ran.out


def test_the_command_asks_a_whole_cluster_only_with_disposable(run: Run) -> None:
    with kafka_like() as (address, broker):
        given = ("conform", address, "--apis", "UpdateFeatures,CreateTopics,DeleteTopics")
        for option, asked in (
            ("--write", {"CreateTopics", "DeleteTopics"}),
            ("--disposable", {"CreateTopics", "DeleteTopics", "UpdateFeatures"}),
        ):
            broker.asked.clear()
            assert run(*given, option).code == 0
            assert {name for name, _ in sent(broker)} == asked


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_a_signal_to_end_is_an_orderly_end() -> None:
    before = signal.getsignal(signal.SIGTERM)
    ended = []

    def wait() -> None:
        with _ended_in_order():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
            finally:
                ended.append("removed")

    with pytest.raises(SystemExit) as raised:
        wait()
    assert raised.value.code == 143
    assert ended == ["removed"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_versions_that_no_release_has_are_listed_and_not_asked() -> None:
    offered = {19: Versions(0, 32767), 20: Versions(0, 6)}
    plan = plan_with_hostile(offered, Asking(RELEASE, own=OWN))
    asked = {case.version for case in plan.cases if case.api_key == 19}
    assert asked == {*range(8)}
    assert [str(one.versions) for one in plan.unasked if one.api_key == 19] == ["8+"]
