"""The answer to "who breaks?", in words and as a matrix."""

from __future__ import annotations

import dataclasses

from flexwire.report.facts import Client, ClientFacts, VersionUse
from flexwire.report.matrix import build_matrix, verdict_sentences
from tests.report.sample import BILLING, EMPTY, LEGACY, SAMPLE, SHIPPING, big

ONE = VersionUse(BILLING, 3, "Metadata", 12, 5, "accepted")


def test_the_sentence_counts_the_clients_that_break_and_names_them() -> None:
    sentences = dict(verdict_sentences(SAMPLE))
    assert sentences["removed"] == (
        "2 of 5 clients use versions that Kafka 4.4.0 no longer accepts: "
        "inventory-sync-worker-eu-west-1a-pool-0007 (Fetch v3, Produce v2); shipping (Produce v2)."
    )
    assert sentences["deprecated"].startswith("1 of 5 clients uses versions that")
    assert "analytics (api key 4001 v1)" in sentences["unknown"]
    assert "accepted" not in sentences


def test_when_nothing_breaks_it_says_so() -> None:
    facts = dataclasses.replace(EMPTY, version_uses=(ONE,))
    assert verdict_sentences(facts) == [
        ("accepted", "The one client uses only versions that Kafka 4.4.0 accepts.")
    ]
    other = dataclasses.replace(ONE, client=SHIPPING)
    facts = dataclasses.replace(EMPTY, version_uses=(ONE, other))
    assert verdict_sentences(facts)[0][1].startswith("All 2 clients use only versions")


def test_it_promises_nothing_about_clients_it_could_not_read() -> None:
    silent = ClientFacts(SHIPPING, 1, 0, 10, 0, 0)
    facts = dataclasses.replace(EMPTY, version_uses=(ONE,), clients=(silent,))
    assert verdict_sentences(facts)[0] == (
        "accepted",
        "No client is known to use a version that Kafka 4.4.0 no longer accepts.",
    )
    strange = dataclasses.replace(ONE, verdict="unknown")
    facts = dataclasses.replace(EMPTY, version_uses=(strange,))
    assert verdict_sentences(facts)[0][1].startswith("No client is known")


def test_many_names_are_counted_not_listed() -> None:
    (_, sentence), *_ = verdict_sentences(big())
    assert sentence.startswith("72 of 500 clients use")
    assert sentence.endswith("; and 69 more.")
    assert len(sentence) < 300


def test_clients_without_an_id_are_told_by_their_software() -> None:
    for client_id, name in ((None, "(null client id) kio 1"), ("", "(empty client id) kio 1")):
        use = dataclasses.replace(ONE, client=Client(client_id, "kio", "1"), verdict="removed")
        facts = dataclasses.replace(EMPTY, version_uses=(use,))
        assert name in verdict_sentences(facts)[0][1]


def test_the_matrix_holds_every_use_once_and_the_gravest_first() -> None:
    matrix = build_matrix(SAMPLE)
    cells = [use for row in matrix.rows for uses in row.cells for use in uses]
    assert sorted(cells, key=repr) == sorted(SAMPLE.version_uses, key=repr)
    assert [row.client for row in matrix.rows[:2]] == [LEGACY, SHIPPING]
    assert [name for _, name in matrix.apis[:3]] == ["Produce", "Fetch", "api key 4001"]
    assert matrix.rest == ()
    for row in matrix.rows:
        for (key, _), uses in zip(matrix.apis, row.cells, strict=True):
            assert all(use.api_key == key and use.client == row.client for use in uses)
            assert [use.version for use in uses] == sorted(use.version for use in uses)


def test_same_client_id_with_other_software_is_another_client() -> None:
    other = dataclasses.replace(ONE, client=Client(BILLING.client_id, "other", "1"))
    matrix = build_matrix(dataclasses.replace(EMPTY, version_uses=(ONE, other)))
    assert len(matrix.rows) == 2
