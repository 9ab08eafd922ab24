"""With a second broker, a run sends the same cases, applies the same rules, and shows
differences.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.conformance import (
    Asking,
    CaseVerdict,
    ConformanceRun,
    SecondBroker,
    conform,
    formats,
    matrix,
    page,
    rules,
)
from flexwire.conformance.judging import CaseOutcome, Ending
from flexwire.conformance.runs import is_alike
from flexwire.errors import CallError
from flexwire.protocol.apis import api_key_of
from flexwire.versions import Versions
from tests.cli.test_messages import Run, run
from tests.conformance.brokers import (
    API_VERSIONS,
    METADATA,
    RELEASE,
    SILENCE,
    KafkaLike,
    a_byte_too_many,
    kafka_like,
    offering,
    soundly,
)
from tests.protocol.payloads import frame, response_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.protocol import RequestFrame
    from tests.conformance.brokers import Plant

__all__ = ["run"]
DESCRIBE_CLUSTER = "DescribeCluster"


def with_code(code: int) -> Plant:
    """Plant an error code in DescribeCluster, which is not a deviation."""

    def planted(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if request.api_name != DESCRIBE_CLUSTER:
            return frame(answer)
        told, body = request.correlation_id, message("DescribeClusterResponse")(error_code=code)
        return frame(response_payload(60, request.api_version, body, correlation_id=told))

    return planted


def compared(here: Plant, there: Plant, *apis: str, **options: Any) -> ConformanceRun:
    with kafka_like(here) as (first, _), kafka_like(there) as (second, _):
        asking = Asking(RELEASE, frozenset(map(api_key_of, apis)), hostile=True)
        return conform(first, asking, against=SecondBroker(second), **{"timeout": 60.0, **options})


def names(found: Any) -> list[str]:
    return [here.case.name for here, _ in found]


def sent(broker: KafkaLike) -> list[bytes]:
    """Return the payloads that a broker received after the request for its versions."""
    return [payload for _, _, payload in broker.asked if b"\x4b\x61" in payload[4:6]]


def test_both_are_sent_the_same_bytes_and_judged_by_the_same_rules() -> None:
    with kafka_like() as (first, one), kafka_like() as (second, other):
        asking = Asking(RELEASE, frozenset((METADATA,)), hostile=True)
        ran = conform(first, asking, against=SecondBroker(second))
    assert sent(one) == sent(other) != []
    assert ran.against is not None
    there = ran.against.other
    assert there.plan.cases == ran.plan.cases
    assert [result.verdict for result in there.results] == [one.verdict for one in ran.results]
    assert ran.differences == ()
    assert ran.against.only_here == ran.against.only_there == ()
    assert there.address == second
    # Without a difference, the matrix is the same as without a second broker.
    assert matrix.BESIDE not in str(matrix.matrix_rows(ran))
    text = formats.to_text(ran)
    assert f"{second} behaves differently in 0 of {len(ran.results)} cases\n" in text
    assert text.endswith(f"{there.summary}\n{ran.summary}\n")


@pytest.mark.long
def test_a_deviation_of_either_is_a_difference_and_only_the_first_ones_is_a_deviation() -> None:
    for here, there, verdicts in (
        (a_byte_too_many, soundly, (CaseVerdict.DEVIATES, CaseVerdict.AS_KAFKA)),
        (soundly, a_byte_too_many, (CaseVerdict.AS_KAFKA, CaseVerdict.DEVIATES)),
    ):
        ran = compared(here, there, "Metadata")
        plain = ["Metadata 8, plain", "Metadata 8, null client id", "Metadata 8, empty lists"]
        assert names(ran.differences)[:3] == plain
        assert {case.version for case in (one.case for one, _ in ran.differences)} == {8}
        assert {(one.verdict, other.verdict) for one, other in ran.differences} == {verdicts}
        assert bool(ran.deviations) is (here is a_byte_too_many)


def test_the_same_deviation_of_both_is_no_difference() -> None:
    ran = compared(a_byte_too_many, a_byte_too_many, "Metadata")
    assert ran.deviations
    assert ran.differences == ()
    text = formats.to_text(ran)
    # The result of the other broker is still shown next to the deviation.
    assert "received from 127.0.0.1:" in text
    assert matrix.BESIDE not in str(matrix.matrix_rows(ran))


def test_another_error_code_is_a_difference_and_no_deviation() -> None:
    ran = compared(with_code(87), soundly, DESCRIBE_CLUSTER)
    assert ran.deviations == ()
    assert ran.differences
    rows = formats.difference_rows(ran)
    assert {row[0] for row in rows} == {DESCRIBE_CLUSTER}
    assert {row[2:] for row in rows} == {
        (
            "as Kafka, error code 87 INVALID_RECORD",
            "as Kafka, error code 3 UNKNOWN_TOPIC_OR_PARTITION",
        )
    }
    assert "plain 0-2, unknown tags 0-2" in rows[0][1]


def test_a_version_that_only_one_offers_is_listed_and_sent_to_it_alone() -> None:
    here = offering({METADATA: (2, 11)})
    there = offering({METADATA: (4, 13), 60: None})
    with kafka_like(here) as (first, _), kafka_like(there) as (second, broker):
        keys = frozenset(map(api_key_of, ("Metadata", DESCRIBE_CLUSTER)))
        ran = conform(first, Asking(RELEASE, keys), against=SecondBroker(second))
    assert ran.against is not None
    alone = [(one.api_name, one.versions) for one in ran.against.only_here]
    assert alone == [("Metadata", Versions(2, 3)), (DESCRIBE_CLUSTER, Versions(0, 2))]
    alone = [(one.api_name, one.versions) for one in ran.against.only_there]
    assert alone == [("Metadata", Versions(12, 13))]
    # 12 is above the first broker's versions but within the second's; 1 is below both.
    asked = {version for name, version, _ in broker.asked if name == "Metadata"}
    assert asked == {1, *range(4, 12)}
    # Neither broker offers version 3.
    assert {version for name, version, _ in broker.asked if name == DESCRIBE_CLUSTER} == {3}
    cells = {(name, versions): row[0] for name, versions, row in matrix.matrix_rows(ran)}
    assert cells[("Metadata", "2-3")] == "ok / not asked"
    assert cells[("Metadata", "4-8")] == "ok"
    text = formats.to_text(ran)
    assert f"only {first} offers: Metadata 2-3, DescribeCluster 0-2" in text
    assert f"only {second} offers: Metadata 12-13" in text
    assert "not asked: only one of the two brokers offers this version" in text


def test_apis_that_are_not_asked_are_not_compared() -> None:
    ran = compared(soundly, offering({60: None}), "Metadata")
    assert ran.against is not None
    assert ran.against.only_here == ()


@pytest.mark.long
@pytest.mark.slow
def test_cases_that_one_of_the_two_is_not_sent_are_no_difference() -> None:
    """The broker does not answer the plain request, so the other kinds are not sent."""

    def silent(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        is_it = (request.api_name, request.api_version) == ("Metadata", 12)
        return SILENCE if is_it else frame(answer)

    for here, there in ((silent, soundly), (soundly, silent)):
        ran = compared(here, there, "Metadata", timeout=3.0)
        assert names(ran.differences)[0] == "Metadata 12, plain"
        kinds = {"plain", "hostile"}
        assert {one.case.kind.value for one, _ in ran.differences} <= kinds
        cells = {versions: row for _, versions, row in matrix.matrix_rows(ran)}
        words = {"not sent / ok"} if here is silent else {"ok / not sent"}
        assert {*cells["12"][1:6]} == words


@pytest.mark.long
@pytest.mark.slow
def test_the_second_broker_must_answer() -> None:
    def garbage(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        return frame(answer[:4] + b"\xff" if request.api_key == API_VERSIONS else answer)

    with kafka_like() as (first, broker):
        with pytest.raises(CallError, match="cannot be reached"):
            conform(first, Asking(RELEASE), against=SecondBroker("127.0.0.1:1"))
        # Before the error, only the list of versions was requested.
        assert {name for name, _, _ in broker.asked} == {"ApiVersions"}
    # An unreadable list of versions is a deviation of the first broker only.
    ran = compared(garbage, soundly, "Metadata")
    assert ran.against is not None
    assert names(ran.differences) == ["ApiVersions 5, plain"]
    assert ran.against.only_here == ran.against.only_there == ()


@pytest.fixture(scope="module")
def ran() -> ConformanceRun:
    """Return a run with a deviation, an error code, and a version that only one broker has."""

    def here(request: RequestFrame, payload: bytes, answer: bytes) -> bytes | None:
        if request.api_name == "DescribeConfigs" and request.api_version == 4:
            return frame(answer + b"\0")
        return a_byte_too_many(request, payload, answer)

    there = offering({METADATA: (1, 12)}, with_code(87))
    return compared(here, there, "Metadata", "DescribeConfigs", DESCRIBE_CLUSTER)


def test_json_has_the_second_broker_in_each_case(ran: ConformanceRun) -> None:
    form = json.loads(formats.to_json(ran))
    against = form["against"]
    assert ran.against is not None
    assert against["broker"] == ran.against.other.address
    assert against["onlyHere"] == [{"api": "Metadata", "apiKey": 3, "versions": "0,13"}]
    assert against["otherwise"] == len(ran.differences) > 0
    assert against["shared"] == len(ran.against.other.results)
    shared = [one for one in form["cases"] if one["against"]]
    assert len(shared) == against["shared"] < len(form["cases"])
    assert sum(one["against"]["otherwise"] for one in shared) == against["otherwise"]
    for one in shared:
        is_shown = one["against"]["otherwise"] or one["deviation"] is not None
        is_answered = one["against"]["ending"] is None
        assert (one["against"]["received"] is not None) is (is_shown and is_answered)
    withheld = [one for one in shared if one["api"] == "DescribeConfigs" and one["deviation"]]
    assert {one["against"]["received"] for one in withheld} == {"withheld"}


def test_junit_tells_of_the_second_broker_and_fails_for_the_first_only(
    ran: ConformanceRun,
) -> None:
    [suite] = ET.fromstring(formats.to_junit(ran))  # noqa: S314 - our own
    assert len(suite.findall("testcase/failure")) == len(ran.deviations) > 0
    told = {case.get("name"): case.findtext("system-out") for case in suite}
    assert {name for name, text in told.items() if text} == {*names(ran.differences)}
    assert ran.against is not None
    other = ran.against.other.address
    assert told["Metadata 8, plain"] == (
        f"{other} behaves differently: as Kafka, error code 3 UNKNOWN_TOPIC_OR_PARTITION"
    )


def test_the_page_has_a_table_of_differences(ran: ConformanceRun) -> None:
    html = page.to_html(ran)
    assert ran.against is not None
    assert '<section id="beside">' in html
    rows = formats.difference_rows(ran)
    assert len(rows) > 1
    for _, cases, here, there in rows:
        assert f"<td>{cases}</td><td>{here}</td><td>{there}</td>" in html
    assert f"only {ran.address} offers: Metadata 0,13" in html
    # A cell is marked if the first broker deviates and the second does not.
    turned = compared(soundly, a_byte_too_many, "Metadata")
    assert "ok / DEVIATES" in page.to_html(turned)
    assert 'class="deviates"' not in page.to_html(turned)
    assert 'class="deviates"' in html


def test_likeness_is_of_verdict_rule_field_ending_and_codes(ran: ConformanceRun) -> None:
    assert ran.against is not None
    for here in ran.results:
        assert is_alike(here, here)
    for here, there in ran.differences:
        assert not is_alike(here, there)


@pytest.mark.long
def test_the_command_exits_for_the_first_broker_only(run: Run, tmp_path: Path) -> None:
    with kafka_like() as (sound, _), kafka_like(a_byte_too_many) as (broken, _):
        given = ("--apis", "Metadata")
        told = run("conform", sound, "--against", broken, *given)
        assert (told.code, told.err) == (0, "")
        assert f"{broken} behaves differently in 4 of " in told.out
        told = run("conform", broken, "--against", sound, *given)
        assert told.code == 100
        plain = tmp_path / "client.properties"
        plain.write_text("security.protocol=PLAINTEXT\nlinger.ms=5\n", encoding="utf-8")
        told = run("conform", sound, "--against", sound, "--against-config", str(plain), *given)
        assert (told.code, told.err) == (0, f"{plain}: not used: linger.ms\n")
        plain.write_text("security.protocol=SSL\n", encoding="utf-8")
        told = run("conform", sound, "--against", sound, "--against-config", str(plain), *given)
        assert told.code == 1
        assert "cannot start TLS" in told.err


def test_silence_and_a_closed_connection_are_not_alike(ran: ConformanceRun) -> None:
    here = ran.deviations[0]
    closed, silent = (
        replace(here, outcome=CaseOutcome(ending=ending))
        for ending in (Ending.CLOSED, Ending.SILENT)
    )
    assert not is_alike(closed, silent)
    assert here.deviation is not None
    other_rule = replace(here.deviation, rule=rules.BODY)
    assert not is_alike(here, replace(here, deviation=other_rule))
    assert not is_alike(here, replace(here, deviation=replace(here.deviation, path="topics")))
    # The content of an answer differs between clusters, so only its form is compared.
    assert is_alike(here, replace(here, outcome=CaseOutcome(b"another")))
