"""Each format shows the same run: every case, every deviation with its place, and the summary."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from flexwire.conformance import Asking, CaseVerdict, ConformanceRun, conform, formats, matrix, page
from flexwire.protocol.apis import api_key_of
from tests.cli.test_messages import Run, run
from tests.conformance.brokers import RELEASE, SILENCE, KafkaLike, kafka_like, with_correlation_id
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.protocol import RequestFrame

__all__ = ["run"]
pytestmark = pytest.mark.slow
APIS = ("Metadata", "Fetch", "DescribeConfigs", "FindCoordinator")


def deviating(request: RequestFrame, payload: bytes, answer: bytes) -> bytes | None:
    """Serve a broker with a deviation in one version of three APIs."""
    match request.api_name, request.api_version:
        case "Metadata", 8:
            return frame(answer + b"<b>")
        case "DescribeConfigs", 4 if payload[8:10] == b"\xff\xff":
            return frame(with_correlation_id(answer, 7))
        case "Fetch", 12:
            return SILENCE
    return frame(answer)


@pytest.fixture(scope="module")
def ran() -> ConformanceRun:
    with kafka_like(deviating) as (address, _):
        keys = frozenset(map(api_key_of, APIS))
        return conform(address, Asking(RELEASE, keys, hostile=True), timeout=5)


def test_the_text_has_the_matrix_the_deviations_and_the_summary(ran: ConformanceRun) -> None:
    text = formats.to_text(ran)
    assert re.search(r"^Metadata +8 +DEVIATES", text, re.MULTILINE)
    assert re.search(r"^Fetch +12 +DEVIATES +not sent", text, re.MULTILINE)
    assert "Metadata 8, plain: deviates (END) at byte " in text
    assert "DescribeConfigs 4, null client id: deviates (CORRELATION_ID) at byte 0" in text
    assert "rule: A response ends with its last field. Source: the message specs" in text
    assert "sent: 00 00 00" in text
    # A broker's response about configurations may hold a secret.
    assert "received: withheld" in text
    assert "certif" not in text
    assert text.endswith(f"{ran.summary}\n")


def test_the_matrix_has_every_case(ran: ConformanceRun) -> None:
    rows = matrix.matrix_rows(ran)
    assert {name for name, _, _ in rows} == {*APIS}
    cells = [cell for _, _, row in rows for cell in row if cell]
    assert cells
    columns = matrix.matrix_columns(ran)
    assert all(len(row) == len(columns) for _, _, row in rows)
    assert len({(name, versions) for name, versions, _ in rows}) == len(rows)


def test_json_has_every_case_and_the_bytes_of_each_deviation(ran: ConformanceRun) -> None:
    form = json.loads(formats.to_json(ran))
    assert len(form["cases"]) == len(ran.results)
    assert (form["asKafka"], form["judged"]) == (ran.as_kafka, ran.judged)
    assert sum(form["counts"].values()) == len(ran.results)
    broken = [one["deviation"] for one in form["cases"] if one["verdict"] == "deviates"]
    assert len(broken) == len(ran.deviations) == form["counts"]["deviates"]
    by_rule = {one["rule"]: one for one in broken}
    assert {*by_rule} == {"END", "CORRELATION_ID", "ANSWERED"}
    assert by_rule["END"]["received"].endswith(b"<b>".hex())
    assert by_rule["CORRELATION_ID"]["received"] == "withheld"
    assert by_rule["ANSWERED"]["received"] is None
    assert all(bytes.fromhex(one["sent"]) for one in broken)
    assert [one["api"] for one in form["notAsked"]] == ["FindCoordinator"]


def test_junit_has_a_test_for_each_case(ran: ConformanceRun) -> None:
    suites = ET.fromstring(formats.to_junit(ran))  # noqa: S314 - our own
    [suite] = suites
    assert len(suite) == len(ran.results) + len(ran.skipped) == int(suite.get("tests", ""))
    assert len(suite.findall("testcase/failure")) == len(ran.deviations)
    skipped = len(ran.skipped) + ran.counts[CaseVerdict.NOT_JUDGED]
    assert len(suite.findall("testcase/skipped")) == skipped == int(suite.get("skipped", ""))
    names = [case.get("name") for case in suite]
    assert len({*names}) == len(names)


def test_the_page_is_whole_and_shows_what_was_found(ran: ConformanceRun) -> None:
    opened: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - as the parser calls it
            if tag not in {"meta", "br", "wbr"}:
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    html = page.to_html(ran)
    Parser().feed(html)
    assert opened == []
    assert "http" not in html.replace("http-equiv", "")
    assert html.count('class="deviates"') >= 3
    assert "Metadata 8, plain: deviates (END)" in html
    assert html == page.to_html(ran)


def test_the_command_exits_with_100_if_the_broker_breaks_a_rule(run: Run, tmp_path: Path) -> None:
    with kafka_like(deviating) as (address, _):
        out = tmp_path / "page.html"
        ran = run("conform", address, "--apis", "metadata,60", "--html", str(out))
        assert (ran.code, ran.err) == (100, f"wrote {out}\n")
        assert "Metadata 8, plain: deviates (END)" in ran.out
        assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        ran = run("conform", address, "--apis", "DescribeCluster", "--release", "4.0")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.endswith("answers as Apache Kafka 4.0.2 in 13 of 13 cases\n")


def sent_to(broker: KafkaLike) -> set[str]:
    return {name for name, _, _ in broker.asked}


@pytest.mark.long
def test_a_dry_run_sends_nothing_but_api_versions(run: Run) -> None:
    with kafka_like() as (address, broker):
        ran = run("conform", address, "--dry-run", "--hostile")
        assert (ran.code, ran.err) == (0, "")
        assert sent_to(broker) == {"ApiVersions"}
        assert len(broker.asked) <= 2
        assert "Metadata                        plain           0, 1, 2, 3, 4" in ran.out
        assert "not asked: DeleteTopics" in ran.out
        assert f"would be sent to {address}; nothing was sent" in ran.out
        ran = run("conform", address, "--dry-run", "--format", "json", "--apis", "Metadata")
        form = json.loads(ran.out)
        assert {one["api"] for one in form["cases"]} == {"Metadata"}
        assert all(bytes.fromhex(one["sent"]) for one in form["cases"])
        assert sent_to(broker) == {"ApiVersions"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--dry-run", "--format", "junit"], "--dry-run produces no result"),
        (["--dry-run", "--html", "x.html"], "--dry-run produces no result"),
        (["--apis", " , "], "--apis needs at least one API"),
        (["--sasl", "PLAIN"], "--sasl needs --user"),
    ],
)
def test_options_that_do_not_go_together(run: Run, arguments: list[str], says: str) -> None:
    ran = run("conform", "localhost:1", *arguments)
    assert ran.code == 2
    assert says in ran.err


def test_a_broker_that_cannot_be_reached_is_an_error(run: Run) -> None:
    ran = run("conform", "127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be reached" in ran.err
