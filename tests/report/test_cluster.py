"""Each gate of the cluster is a row of the report, and each gate needing action has a sentence."""

from __future__ import annotations

from dataclasses import replace

from flexwire.facts.audit import Audit, ClusterGate
from flexwire.parties import VERDICTS
from flexwire.report import render
from flexwire.report.cluster import cluster_sentences, cluster_table
from flexwire.report.matrix import SYMBOLS
from tests.report.sample import SAMPLE

RELEASES = ("4.0.2", "4.4.0")
GATES = tuple(
    ClusterGate(release, f"gate {verdict}", verdict, f"of {verdict}", "rule", f"since {verdict}",
                names=tuple("abcde"), count=9)
    for verdict in VERDICTS
    for release in RELEASES
)  # fmt: skip
AUDIT = Audit(releases=RELEASES, cluster=GATES)


def test_every_verdict_that_needs_somebody_has_a_sentence_and_the_others_have_none() -> None:
    for release in RELEASES:
        told = cluster_sentences(AUDIT, release)
        named = dict(told)
        assert [*named] == [
            *(one for one in VERDICTS[: VERDICTS.index("will do nothing")] if one != "cannot say"),
            "will do nothing",
            "cannot say",
        ]
        assert named["cannot say"] == (
            "The cluster: the input shows nothing about 1 gate (gate cannot say)."
        )
        assert named["will break"] == (
            "The cluster will break: gate will break, of will break; since will break."
        )
    assert cluster_sentences(Audit(releases=RELEASES), RELEASES[0]) == []


def test_the_table_has_every_gate_the_gravest_first_and_counts_the_names() -> None:
    facts = replace(SAMPLE, audit=AUDIT)
    table = cluster_table(facts)
    assert [row[1].verdict for row in table.rows] == [
        verdict for verdict in VERDICTS for _ in RELEASES
    ]
    assert {row[5].text for row in table.rows} == {"a, b, c and 6 more"}
    page = render(facts)
    assert page.count("Findings about the cluster itself, most serious first") == 1
    assert "The cluster itself" not in render(replace(SAMPLE, audit=Audit(releases=RELEASES)))


def test_every_verdict_has_a_sign() -> None:
    assert {*VERDICTS} <= {*SYMBOLS}
