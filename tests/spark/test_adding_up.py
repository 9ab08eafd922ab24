"""The counts of clients, connections and requests on the page add up, or the page says why not."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.facts.audit import Audit, AuditOmissions, NewestShare
from flexwire.measures.analysis import AnalysisSums, facts_of
from flexwire.report import audit, footnotes, render
from flexwire.spark.answers import gather_audit
from tests.capture.interleaved import write_capture
from tests.report.sample import AUDIT, EMPTY, SAMPLE, big
from tests.spark.test_audit import Client, offers
from tests.spark.test_audit import _write as write_clients
from tests.spark.test_audit_sums import SHAPES, Captured, read, summed
from tests.spark.test_connection_owners import sasl
from tests.spark.traffic import Traffic

if TYPE_CHECKING:
    from flexwire.facts.facts import Facts

ASKED = ("3.6", "4.0.0", "4.0", "4.4")


def measured(captured: Captured) -> Facts:
    """Return the facts that an analysis finds in a capture."""
    sums = AnalysisSums(1)
    for table, rows in captured.batches:
        sums.add(table, rows)
    audited = gather_audit(sums.audit, ASKED)
    return facts_of(sums.parts(BrokerEnds()), audited, title="t", made_at_us=0)


def clients_of_all_kinds(directory: Path) -> Captured:
    traffic = Traffic(directory)
    write_clients(traffic)
    for port in range(4):
        sasl(traffic, 2000 + port, "", "billing")
    # For one client, there are findings with several verdicts.
    twice = Client(traffic, "twice", 3000).ask(offers())
    twice.send("Fetch", 3, answered=False).send("Produce", 2, answered=False)
    twice.send("ListOffsets", 0).closed()
    traffic.close()
    return read([traffic.directory])


@pytest.fixture(scope="module", params=[*sorted(SHAPES), "CLIENTS"])
def facts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Facts:
    directory = tmp_path_factory.mktemp("capture")
    if request.param == "CLIENTS":
        return measured(clients_of_all_kinds(directory / "capture"))
    return measured(read(write_capture(directory, 5, SHAPES[request.param])))


def numbers(text: str) -> list[int]:
    return [int(one.replace(",", "")) for one in re.findall(r"\d[\d,]*", text)]


@pytest.mark.slow
def test_every_client_is_in_one_sentence_of_its_release(facts: Facts) -> None:
    assert [release for release, _ in audit.sentences(facts)] == list(facts.audit.releases)
    for _, told in audit.sentences(facts):
        judged = [
            one
            for verdict, one in told
            if verdict not in {"documented as unsupported", "not judged"}
        ]
        counts = [numbers(sentence)[:2] for sentence in judged]
        whole = {of for _, of in counts}
        assert whole <= {footnotes.clients(facts)}
        assert sum(count for count, _ in counts) == sum(whole)
        apart = [one for verdict, one in told if verdict == "not judged"]
        others = {one.client for one in facts.audit.findings if one.role != "client"}
        assert sum(sum(numbers(one)) for one in apart) == len(others)


def test_the_figure_at_the_top_is_what_the_sentences_count(facts: Facts) -> None:
    page = render(facts)
    assert f">{footnotes.clients(facts):,}<" in page
    rows = len(facts.clients)
    told = " ".join(footnotes.about_clients(facts))
    assert (f"{rows:,} row" in told) == (rows != footnotes.clients(facts))
    for sentence in footnotes.about_clients(facts):
        assert sentence.split(":")[0] in page


def test_connections_of_the_audit_are_those_of_the_capture(facts: Facts) -> None:
    parties = {one.client: one.connections for one in facts.audit.findings}
    told = footnotes.about_connections(facts)
    silent = numbers(told)[0] if told else 0
    assert sum(parties.values()) + silent == facts.totals.connections
    assert told in render(facts)
    every = sum(one.connections for one in facts.clients)
    shared = [one for one in footnotes.about_clients(facts) if "The rows add up to" in one]
    assert bool(shared) == (every > facts.totals.connections)
    if shared:
        assert numbers(shared[0]) == [every, facts.totals.connections]


def test_requests_at_the_newest_versions_and_the_others_are_all_requests(facts: Facts) -> None:
    for share in facts.audit.newest:
        told = footnotes.newest_sentence(share, facts.totals.requests)
        if share.requests:
            at_newest, counted = numbers(told)[:2]
            assert (at_newest, counted) == (share.requests_at_newest, share.requests)
            left = re.search(r"The other ([\d,]+) of ([\d,]+) request", told)
            others = numbers(left[0]) if left else [0, counted]
            assert others[0] + counted == others[1] == facts.totals.requests


def test_requests_by_verdict_and_those_without_one_are_all_requests(facts: Facts) -> None:
    told = footnotes.about_versions(facts)
    unread = numbers(told)[0] if told else 0
    judged = sum(one.requests for one in facts.version_uses)
    assert judged + unread == facts.totals.requests
    assert told in render(facts)


def test_some_of_these_pages_have_something_to_explain(tmp_path: Path) -> None:
    facts = measured(clients_of_all_kinds(tmp_path / "capture"))
    assert footnotes.about_clients(facts)[0].startswith("The audit counts 10 clients, by client id")
    every = sum(one.connections for one in facts.clients)
    assert every == facts.totals.connections + 4
    assert len(footnotes.about_clients(facts)) == 2


def test_the_page_has_the_first_releases_where_a_client_breaks_on_kafka_4(tmp_path: Path) -> None:
    captured = clients_of_all_kinds(tmp_path / "capture")
    page = render(measured(captured))
    assert "First releases that work on Kafka 4" in page
    assert "librdkafka and the libraries built on it" in page
    assert "sarama pull request 2574 (2023-08-07)" in page
    # The table contains nothing about an older release.
    assert gather_audit(summed(captured), ["3.6"]).libraries == ()


def test_the_lines_that_readme_shows_add_up() -> None:
    """The clients in the remark are also counted elsewhere, so the sum excludes the remark."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^  (\d+) of (\d+) clients?(.*)$", readme, re.MULTILINE)
    counts = [int(count) for count, _, said in lines if "a remark" not in said]
    assert {of for _, of, _ in lines} == {str(sum(counts))}


def test_where_the_audit_leaves_clients_out_it_counts_no_others() -> None:
    left = dataclasses.replace(SAMPLE.audit, left_out=AuditOmissions(2, 3))
    facts = dataclasses.replace(SAMPLE, audit=left)
    assert footnotes.clients(facts) == facts.totals.clients
    assert footnotes.about_connections(facts) == ""
    assert footnotes.clients(EMPTY) == EMPTY.totals.clients
    assert footnotes.clients(big()) == 500


def test_who_is_at_the_newest_versions_is_told_with_what_it_is_of() -> None:
    first, *_ = AUDIT.newest
    told = footnotes.newest_sentence(first, 20_000)
    assert "of 16,000 requests (25 %) use the newest version of their API that Kafka 4.0.2" in told
    assert "1 of 5 clients send no older versions" in told
    assert "The other 4,000 of 20,000 requests are not counted here" in told
    assert "The other" not in footnotes.newest_sentence(first, 16_000)
    none = NewestShare("4.4.0", 0, 0, 0, 0)
    assert footnotes.newest_sentence(none, 5) == "No request uses an API that Kafka 4.4.0 offers."
    assert Audit().newest == ()
