"""The answer to "who breaks?" contains the same findings in sentences, tables, CSV and JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

from flexwire.facts.audit import Audit
from flexwire.facts.captures import SampledCaptures
from flexwire.facts.facts import VersionUse, marked
from flexwire.parties import Client, Party
from flexwire.report import audit
from flexwire.report.audit_files import COLUMNS, audit_csv, audit_json
from tests.report.sample import AUDIT, EMPTY, SAMPLE, START, big, finding


def test_each_release_is_answered_gravest_first_and_never_with_a_promise() -> None:
    (first, told), (second, again) = audit.sentences(SAMPLE)
    assert (first, second) == ("4.0.2", "4.4.0")
    assert told == again
    assert told == [
        ("broke", ("1 of 5 clients already broke: inventory-sync-worker-eu-west-1a-pool-0007 "
         "(Produce v2).")),
        ("known to break", "1 of 5 clients is known to break: billing-service (librdkafka 2.6.1)."),
        ("cannot say", ("1 of 5 clients may break, and the capture does not show whether it does: "
         "shipping (Produce v2).")),
        ("documented as unsupported", ("1 of 5 clients is documented as unsupported (a remark, not "
         "a verdict): analytics (apache-kafka-java 4.1.0).")),
        ("nothing seen against it", ("2 of 5 clients: no problem seen (6 connections, 1 min 30 s "
         "of traffic).")),
        ("not judged", "Not judged: 1 broker (upgraded with the cluster)."),
    ]  # fmt: skip
    assert "safe" not in " ".join(sentence for _, sentence in told)


def test_many_names_are_counted_not_listed() -> None:
    ((_, told),) = audit.sentences(big())
    (_, sentence), (_, rest) = told
    assert sentence.startswith("72 of 500 clients will break: client-000 (")
    assert sentence.endswith("; and 69 more.")
    assert len(sentence) < 300
    assert rest.startswith("428 of 500 clients: no problem seen (")


def test_without_requests_nothing_can_be_said() -> None:
    facts = dataclasses.replace(EMPTY, audit=Audit(("4.4.0",)))
    ((_, ((verdict, sentence),)),) = audit.sentences(facts)
    assert verdict == "cannot say"
    assert sentence == "No request was decoded, so there is no verdict."


def test_why_these_releases_is_told() -> None:
    def why(told: Audit, *releases: str) -> str:
        return audit.chosen(dataclasses.replace(EMPTY, audit=told, releases=releases))

    assert (
        "Based on the versions that they offer, the captured brokers may be running Kafka 3.9.2"
        in why(AUDIT)
    )
    unknown = dataclasses.replace(AUDIT, brokers=())
    assert "requested. The captured brokers' release is unknown" in why(unknown)
    by_brokers = dataclasses.replace(AUDIT, asked=False)
    assert "of each major version, starting with the brokers' version" in why(by_brokers)
    assert "--release" in why(Audit(("4.4.0",)))
    assert "preview" not in why(AUDIT, "4.4.0", "mine")
    told = why(AUDIT, "4.4.0", "4.5.0-SNAPSHOT")
    assert told.endswith(" 4.5.0-SNAPSHOT is a preview and receives no verdict.")


def test_the_question_names_the_releases() -> None:
    assert audit.title(SAMPLE) == "Who breaks on Kafka 4.0.2 and 4.4.0?"
    assert audit.title(big()) == "Who breaks on Kafka 4.4.0?"
    assert audit.title(EMPTY) == "Who breaks?"


def test_a_finding_of_several_releases_is_one_row_with_the_last_remedy() -> None:
    table = audit.finding_table(SAMPLE)
    assert len(table.rows) == len(AUDIT.findings) / 2 - 3
    row = table.rows[0]
    texts = [cell.text for cell in row]
    assert (row[0].note, row[1].text) == ("10.0.3.18 · software unknown", "broke")
    assert (row[3].text, row[3].note) == ("Produce v2", "on 4.0.2, 4.4.0")
    assert texts[6] == "group inventory; topics inventory, orders, returns and 28 more"
    assert (texts[7], row[7].note) == ("3.9.2", "not by 4.0.0")
    assert texts[2].endswith("Produce of 4.4.0")


def test_findings_that_differ_by_release_are_two_rows() -> None:
    client = Party("a", "h")
    told = (
        finding(client, "will break", "4.0.0", api_key=11, version=1),
        finding(client, "cannot say", "4.0.2", api_key=11, version=1),
    )
    facts = dataclasses.replace(EMPTY, audit=Audit(("4.0.0", "4.0.2"), findings=told))
    assert [row[3].note for row in audit.finding_table(facts).rows] == ["on 4.0.0", "on 4.0.2"]


def test_a_team_stands_with_its_client() -> None:
    party = Party("a", "h")
    told = (finding(party, "will break", "4.0.0", api_key=1, version=3, team="Billing"),)
    facts = dataclasses.replace(EMPTY, audit=Audit(("4.0.0",), findings=told))
    ((first, *_),) = audit.finding_table(facts).rows
    assert first.note == "h · software unknown · team Billing"
    (row,) = csv.DictReader(io.StringIO(audit_csv(facts.audit)))
    (one,) = json.loads(audit_json(facts.audit))["findings"]
    assert row["team"] == one["team"] == "Billing"


def test_those_with_nothing_against_them_are_listed_with_what_was_seen() -> None:
    rows = audit.client_table(SAMPLE).rows
    assert [row[1].text for row in rows] == ["nothing seen against it"] * 2 + ["not judged"]
    assert [(row[2].text, row[3].text, row[5].text) for row in rows] == [
        ("9", "3", "1 min 30 s")
    ] * 3


def test_the_matrix_is_marked_with_the_gravest_of_all_releases() -> None:
    old = Client(AUDIT.findings[0].client.client_id)
    replica = Client("broker-2-fetcher-0", "apache-kafka-java", "3.9.1")
    uses = [
        VersionUse(old, 0, "Produce", 2, 9),
        VersionUse(old, 0, "Produce", 3, 9),
        VersionUse(replica, 1, "Fetch", 3, 9),
        VersionUse(Client("unheard-of"), 0, "Produce", 2, 9),
    ]
    found = marked(uses, AUDIT)
    assert [use.verdict for use in found] == ["broke", "read", "not judged", "read"]
    assert (found[0].last_accepted_in, found[0].removed_in) == ("3.9.2", "4.0.0")


def test_the_matrix_keeps_the_software_of_one_client_id_apart() -> None:
    old, new = (Party("a", "h", None, "librdkafka", version) for version in ("1.0.0", "2.0.0"))
    told = (
        finding(old, "will break", "4.0.0", api_key=1, version=3),
        finding(new, "cannot say", "4.0.0", api_key=1, version=3),
    )
    known = [old.client, new.client, Client("a")]
    uses = [VersionUse(one, 1, "Fetch", 3, 9) for one in known]
    found = marked(uses, Audit(("4.0.0",), findings=told))
    # A connection without a software name may belong to either client; its first evidence decides.
    assert [use.verdict for use in found][:2] == ["will break", "cannot say"]
    assert found[2].verdict != "read"


def test_csv_has_every_column_and_survives_what_clients_call_themselves() -> None:
    evil = Party('a,"b"\n=1+1', None)
    told = Audit(("4.4.0",), findings=(finding(evil, "broke", "4.4.0", groups=("x", "y")),))
    (row,) = csv.DictReader(io.StringIO(audit_csv(told)))
    assert tuple(row) == COLUMNS
    assert row["client_id"] == evil.client_id
    assert (row["address"], row["api_key"], row["groups"]) == ("", "", "x y")


def test_json_has_the_rows_of_csv_and_the_rest_of_the_audit() -> None:
    whole = json.loads(audit_json(AUDIT))
    rows = list(csv.DictReader(io.StringIO(audit_csv(AUDIT))))
    assert len(whole["findings"]) == len(rows) == len(AUDIT.findings)
    first = whole["findings"][0]
    assert tuple(first) == COLUMNS
    assert (first["api_version"], rows[0]["api_version"]) == (2, "2")
    assert first["first_time"].startswith("2026-")
    assert whole["brokers"] == ["3.9.2"]
    assert "sampled" not in whole
    part = json.loads(audit_json(AUDIT, (SampledCaptures(0.5, 3),)))
    assert part == {**whole, "sampled": [{"share": 0.5, "files": 3, "only": ""}]}
    assert AUDIT.findings[0].first_time_us == START
