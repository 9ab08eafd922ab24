"""In captures where each client has its own kind of evidence, the audit finds exactly that kind."""

from __future__ import annotations

import csv
import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers import ANSWERS
from flexwire.errors import UnknownMessageError
from flexwire.protocol import api_name
from flexwire.protocol.audit.evidence import stable_versions
from flexwire.schema.catalog import catalog
from flexwire.spark.analyze import Analysis, analyze
from flexwire.spark.answers import audit, audit_tables, chargeback, errors, tables_to_audit
from flexwire.spark.answers.outputs import open_tables
from flexwire.versions import Versions
from tests.spark.traffic import START_US, Traffic, made, request, response

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from flexwire.facts.audit import AuditFinding
    from flexwire.report import Facts

pytestmark = pytest.mark.spark

BROKER, KEYS = "4.3.1", {api_name(key): key for key in catalog().api_keys()}
ASKED = ("4.0.0", "4.0")


def offers() -> dict[int, Versions]:
    """Return a 4.3.1 broker's answer: Produce from 0, though it reads only from 3 (KAFKA-18659)."""
    offered = {key: stable_versions(key, BROKER) for key in catalog().api_keys()}
    found = {key: versions for key, versions in offered.items() if versions}
    return found | {0: Versions(0, found[0].highest)}


class Client:
    """One client connection, whose requests are answered unless the test says otherwise."""

    def __init__(self, traffic: Traffic, client_id: str, port: int, host: str = "10.0.0.7") -> None:
        self._traffic = traffic
        self._client_id = client_id
        self._connection = traffic.connect((host, port))
        self._correlation_id = 0

    def send(self, name: str, version: int, /, *, answered: bool = True, **values: Any) -> Client:
        self._correlation_id += 1
        asked = request(
            made(f"{name}Request", **values), version, self._correlation_id,
            client_id=self._client_id,
        )  # fmt: skip
        self._traffic.send(self._connection, "request", asked)
        if answered:
            answer = response(made(f"{name}Response"), version, self._correlation_id)
            self._traffic.send(self._connection, "response", answer)
        return self

    def ask(self, offered: dict[int, Versions], version: int = 2, **software: str) -> Client:
        """Add an ApiVersions request, and the broker's answer to it."""
        self._correlation_id += 1
        body = made("ApiVersionsRequest", **software)
        asked = request(body, version, self._correlation_id, client_id=self._client_id)
        self._traffic.send(self._connection, "request", asked)
        kind = type(made("ApiVersionsResponse")).ApiVersion
        ranges = [
            kind(api_key=key, min_version=one.lowest, max_version=one.highest)
            for key, one in offered.items()
        ]
        answer = made("ApiVersionsResponse", api_keys=ranges)
        payload = response(answer, version, self._correlation_id)
        self._traffic.send(self._connection, "response", payload)
        return self

    def closed(self) -> None:
        """Make the broker close the connection."""
        self._connection.close(timestamp_us=self._traffic._tick(), by_broker=True)


def _topic(message: str, struct: str, **values: Any) -> Any:
    return getattr(type(made(message)), struct)(**values)


def _write(traffic: Traffic) -> None:
    now = offers()
    fetched = _topic("FetchRequest", "FetchTopic", topic="orders")
    # This client is not pinned: it negotiates, and sends versions that the broker supports.
    modern = Client(traffic, "modern", 1000)
    modern.ask(now, 3, client_software_name="kafka-python", client_software_version="2.3.0")
    modern.send("Fetch", 13).send("Metadata", 9)
    # This client is pinned and never asks. This client uses the same software, but never names it.
    pinned = Client(traffic, "pinned", 1001)
    pinned.send("Metadata", 1).send("Fetch", 3, answered=False, topics=[fetched])
    pinned.send("OffsetFetch", 1, group_id="billing")
    # This client limits its versions itself.
    Client(traffic, "limited", 1002).ask(now).send("ListOffsets", 0, answered=False)
    # The API is advertised from version 0 but read only from version 3. The broker closes the
    # connection without an answer.
    broken = Client(traffic, "broken", 1003).ask(now)
    broken.send("Produce", 2, answered=False)
    broken.closed()
    # The request was answered, so the broker read it. Why the broker closed is unknown.
    served = Client(traffic, "served", 1009).ask(now)
    served.send("Produce", 2, acks=1)
    served.closed()
    # No broker supports this version of ApiVersions. The broker answers in version 0 with an error,
    # and the client asks again (KIP-511).
    future = Client(traffic, "future", 1004)
    future._correlation_id += 1
    future_request = request(made("ApiVersionsRequest"), 4, 1, client_id="future")
    traffic.send(
        future._connection, "request", future_request[:2] + b"\x00\x63" + future_request[4:]
    )
    own = _topic("ApiVersionsResponse", "ApiVersion", api_key=18, min_version=0, max_version=4)
    refusal = made("ApiVersionsResponse", error_code=35, api_keys=[own])
    traffic.send(future._connection, "response", response(refusal, 0, 1))
    future.ask(now, 4).send("Fetch", 17)
    # The audit knows facts about this client's software.
    kerberos = Client(traffic, "rdkafka", 1005)
    kerberos.ask(now, 3, client_software_name="librdkafka", client_software_version="2.3.0")
    kerberos.send("SaslHandshake", 1, mechanism="GSSAPI")
    older = Client(traffic, "rdkafka", 1006, "10.0.0.8")
    older.ask(now, 3, client_software_name="librdkafka", client_software_version="1.6.0")
    older.send("JoinGroup", 1, group_id="old-readers")
    # Requests that brokers send, both in clusters with ZooKeeper and today.
    Client(traffic, "1", 1007, "10.0.0.1").ask(now).send("LeaderAndIsr", 4, answered=False)
    replica = Client(traffic, "broker-2-fetcher-0", 1008, "10.0.0.2").ask(now)
    replica.send("Fetch", 3, replica_id=2, answered=False)


@dataclass(frozen=True, slots=True)
class Audited:
    session: SparkSession
    analysis: Analysis

    @property
    def facts(self) -> Facts:
        return self.analysis.facts

    def of(self, client_id: str, release: str = "4.0.2") -> list[AuditFinding]:
        return [
            one
            for one in self.facts.audit.findings
            if (one.client.client_id, one.release) == (client_id, release)
        ]

    def verdicts(self, client_id: str, release: str = "4.0.2") -> list[tuple[str, str | None]]:
        return [(one.verdict, one.api_name) for one in self.of(client_id, release)]


@pytest.fixture(scope="module")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    directory = tmp_path_factory.mktemp("audited")
    traffic = Traffic(directory / "capture")
    _write(traffic)
    traffic.close()
    out, teams = directory / "out", directory / "teams.csv"
    teams.write_text('client_id,team\npin?ed,"Plant, 1"\n"b*",Brokers\n')
    analysis = analyze(
        [traffic.directory], out, spark=spark, releases=ASKED, labels=teams, answers="none"
    )
    return Audited(spark, analysis)


def test_a_client_that_negotiates_has_nothing_against_it(audited: Audited) -> None:
    assert audited.verdicts("modern") == [("nothing seen against it", None)]
    assert audited.verdicts("future") == [("nothing seen against it", None)]


def test_a_pinned_client_will_break_and_the_settings_are_told(audited: Audited) -> None:
    (fetch,) = audited.of("pinned")
    assert (fetch.verdict, fetch.api_name, fetch.version) == ("will break", "Fetch", 3)
    assert fetch.evidence == "never asked"
    assert fetch.reason.endswith("the broker offers 4-18")
    assert "api_version of kafka-python" in fetch.remedy
    assert (fetch.last_accepting_release, fetch.first_refusing_release) == ("3.9.2", "4.0.0")
    assert "api_version" in {pin.setting for pin in audited.facts.audit.pins}


def test_a_client_s_own_limit_is_seen_by_what_the_broker_offered(audited: Audited) -> None:
    (limited,) = audited.of("limited")
    assert (limited.verdict, limited.evidence) == ("will break", "offered more")
    assert limited.offered == "1-11"


def test_what_is_advertised_and_refused_broke(audited: Audited) -> None:
    (broken,) = audited.of("broken")
    assert (broken.verdict, broken.api_name, broken.version) == ("broke", "Produce", 2)
    assert broken.offered is not None
    assert broken.offered.startswith("0-")
    (served,) = audited.of("served")
    assert (served.verdict, served.evidence) == ("will break", "offered more")


def test_what_is_known_of_software_is_told_beside_what_it_sent(audited: Audited) -> None:
    known = [one for one in audited.facts.audit.findings if one.evidence == "KAFKA-19444"]
    verdicts = {(one.release, one.client.address, one.verdict) for one in known}
    assert verdicts == {("4.0.0", "10.0.0.7", "known to break")}
    old = [one for one in audited.of("rdkafka") if one.client.address == "10.0.0.8"]
    assert {one.verdict for one in old} == {"documented as unsupported", "nothing seen against it"}
    patch = [one for one in audited.of("rdkafka", "4.0.0") if one.api_name == "JoinGroup"]
    assert [one.verdict for one in patch] == ["will break"]
    assert patch[0].groups == ("old-readers",)


def test_brokers_and_controllers_are_listed_apart(audited: Audited) -> None:
    assert [(one.verdict, one.role) for one in audited.of("1")] == [("not judged", "controller")]
    (replica,) = audited.of("broker-2-fetcher-0")
    assert (replica.verdict, replica.role) == ("not judged", "broker")


def test_a_finding_has_who_when_and_whom_to_ask(audited: Audited) -> None:
    (fetch,) = audited.of("pinned")
    client = fetch.client
    assert (client.address, client.principal, client.software) == ("10.0.0.7", None, None)
    assert fetch.requests == 1
    assert START_US < fetch.first_time_us == fetch.last_time_us
    assert (fetch.groups, fetch.group_count) == (("billing",), 1)
    assert (fetch.topics, fetch.topic_count) == (("orders",), 1)
    assert (fetch.connections, fetch.apis) == (1, 3)


def test_the_brokers_are_known_by_what_they_offer(audited: Audited) -> None:
    found = audited.facts.audit
    assert found.brokers == (BROKER,)
    assert (found.releases, found.asked) == (("4.0.0", "4.0.2"), True)


def test_who_is_at_the_newest_versions_is_counted_without_brokers(audited: Audited) -> None:
    share = next(one for one in audited.facts.audit.newest if one.release == "4.0.2")
    # Among three Fetch, two Metadata, two Produce, OffsetFetch, ListOffsets and JoinGroup requests,
    # only Fetch 17 uses the newest version.
    assert (share.requests, share.requests_at_newest) == (10, 1)
    assert (share.clients, share.clients_at_newest) == (7, 1)


def _flat(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(str(row[name]) for name in ("release", "verdict", "client_id", "address"))


def test_table_csv_json_and_facts_say_the_same(audited: Audited) -> None:
    analysis = audited.analysis
    out = analysis.report.parent
    rows = [
        row.asDict() for row in audited.session.read.parquet(str(analysis.tables.audit)).collect()
    ]
    with (out / "audit.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    whole = json.loads((out / "audit.json").read_text())
    findings = audited.facts.audit.findings
    assert len(rows) == len(lines) == len(whole["findings"]) == len(findings) > 10
    assert list(rows[0]) == list(lines[0]) == list(whole["findings"][0])
    assert sorted(map(_flat, rows)) == sorted(map(_flat, lines))
    assert sorted(map(_flat, whole["findings"])) == sorted(map(_flat, lines))
    pinned = next(row for row in rows if row["client_id"] == "pinned")
    line = next(one for one in lines if one["client_id"] == "pinned")
    assert (pinned["topics"], line["topics"]) == (["orders"], "orders")
    assert line["first_time"] == pinned["first_time"].isoformat() + "+00:00"
    teams = {(row["client_id"], row["team"]) for row in rows}
    assert teams == {(line["client_id"], line["team"] or None) for line in lines}
    assert teams == {(one["client_id"], one["team"]) for one in whole["findings"]}
    assert {team for client_id, team in teams if client_id == "pinned"} == {"Plant, 1"}
    assert {client_id for client_id, team in teams if team == "Brokers"} == {
        "broken", "broker-2-fetcher-0",
    }  # fmt: skip
    assert "team Plant, 1" in analysis.report.read_text()


@pytest.mark.long
def test_the_tables_answer_for_other_releases_too(audited: Audited) -> None:
    tables = audited.analysis.tables.root
    found = audit(audited.session, tables, ["3.9"], {"modern": "Web"}).collect()
    assert {row.release for row in found} == {"3.9.2"}
    assert {(row.client_id, row.team) for row in found if row.team} == {("modern", "Web")}
    breaks = {row.client_id for row in found if row.verdict in {"broke", "will break"}}
    assert breaks == set()


@pytest.mark.long
def test_spark_finds_in_the_tables_what_the_sums_of_their_rows_found(audited: Audited) -> None:
    tables = audited.analysis.tables
    known = tables_to_audit(audited.session, tables)
    labels = {"pin?ed": "Plant, 1", "b*": "Brokers"}
    found = audit_tables(known, tables.message_names(), ASKED, labels=labels)
    assert found == audited.facts.audit


@pytest.mark.long
def test_traffic_is_told_from_the_tables_of_an_analysis(audited: Audited) -> None:
    tables = open_tables(audited.session, audited.analysis.tables.root.parent)
    sizes = {one.direction: one.bytes for one in _bytes(tables.frames).collect()}
    assert _sums(chargeback(tables), "sent_bytes", "received_bytes") == [
        sizes["request"], sizes["response"],
    ]  # fmt: skip
    # The broker's only error is that it does not support the version that "future" uses.
    (error,) = errors(tables).collect()
    assert (error.client_id, error.error_name) == ("future", "UNSUPPORTED_VERSION")


@pytest.mark.cluster
def test_every_answer_is_given_of_an_analysis(audited: Audited) -> None:
    tables = open_tables(audited.session, audited.analysis.tables.root.parent)
    known = {one.name: one.ordered(one.ask(tables)).collect() for one in ANSWERS}
    answered = tables.frames.where("latency_us is not null").count()
    assert sum(one.responses for one in known["latency"]) == answered > 0
    assert sum(one.connections for one in known["connections"]) == tables.connections.count()
    assert [one.group_id for one in known["groups"]] == ["old-readers"]


def _bytes(frames: DataFrame) -> DataFrame:
    return frames.groupBy("direction").agg(F.sum("size").alias("bytes"))


def _sums(rows: DataFrame, *names: str) -> list[int]:
    return [*rows.agg(*(F.sum(name) for name in names)).collect()[0]]


@pytest.mark.long
def test_without_releases_it_is_every_major_from_the_brokers_on(audited: Audited) -> None:
    found = audit(audited.session, audited.analysis.tables.root).collect()
    assert {row.release for row in found} == {"4.4.0"}


def test_an_unknown_release_stops_before_anything_is_read(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "capture")
    Client(traffic, "any", 1000).send("Metadata", 1)
    traffic.close()
    with pytest.raises(UnknownMessageError, match=r"no release '4\.9'"):
        analyze([traffic.directory], tmp_path / "out", releases=["4.9"])
    assert not (tmp_path / "out").exists()


def test_the_report_says_who_breaks(audited: Audited) -> None:
    page = audited.analysis.report.read_text()
    assert "Who breaks on Kafka 4.0.0 and 4.0.2?" in page
    assert "1 of 8 clients already broke: broken (Produce v2)." in page
    assert "3 of 8 clients will break: " in page
    assert "4 of 8 clients: no problem seen (" in page


def _changed(audited: Audited, changes: dict[str, Column]) -> dict[str, tuple[str, str]]:
    """Return each client's first verdict and its evidence after these changes to connections."""
    tables = tables_to_audit(audited.session, audited.analysis.tables)
    other = dataclasses.replace(tables, connections=tables.connections.withColumns(changes))
    found = audit_tables(other, audited.analysis.tables.message_names(), ["4.0"]).findings
    return {str(one.client.client_id): (one.verdict, one.evidence) for one in reversed(found)}


@pytest.mark.long
def test_how_a_connection_ended_is_the_evidence_and_what_is_not_kafka_is_nobody_s_client(
    audited: Audited,
) -> None:
    is_other = F.col("client").endswith(":1001")
    for closed_by in (None, "client"):
        end = F.lit(closed_by).cast("string")
        found = _changed(audited, {"closed_by": end, "is_kafka": ~is_other})
        assert found["broken"] == ("will break", "offered more")
        assert "pinned" not in found


@pytest.mark.long
def test_a_refusal_of_api_versions_is_no_offer(audited: Audited) -> None:
    tables = tables_to_audit(audited.session, audited.analysis.tables)

    def refusals(name: str) -> DataFrame | None:
        found = tables.message(name)
        if name != "ApiVersionsResponse" or found is None:
            return found
        return found.where("body.error_code != 0")

    found = audit_tables(dataclasses.replace(tables, message=refusals), (), ["4.0"]).findings
    verdicts = {one.client.client_id: (one.verdict, one.evidence) for one in reversed(found)}
    assert verdicts["limited"] == ("cannot say", "range not seen")


@pytest.mark.long
def test_without_the_broker_s_range_only_the_start_of_a_connection_tells(audited: Audited) -> None:
    tables = tables_to_audit(audited.session, audited.analysis.tables)

    def without(name: str) -> DataFrame | None:
        return None if name == "ApiVersionsResponse" else tables.message(name)

    blind = dataclasses.replace(tables, message=without)
    late = dataclasses.replace(
        blind, connections=blind.connections.withColumn("seen_from_start", F.lit(col=False))
    )
    verdicts = []
    for one in (blind, late):
        found = audit_tables(one, (), ["4.0"])
        assert found.brokers == ()
        verdicts.append(
            {
                str(finding.client.client_id): (finding.verdict, finding.evidence)
                for finding in found.findings
                if finding.verdict in {"broke", "will break", "cannot say"}
            }
        )
    assert verdicts == [
        {
            "pinned": ("will break", "never asked"),
            "limited": ("cannot say", "range not seen"),
            "served": ("cannot say", "range not seen"),
            "broken": ("broke", "closed without an answer"),
        },
        {
            "pinned": ("cannot say", "range not seen"),
            "limited": ("cannot say", "range not seen"),
            "served": ("cannot say", "range not seen"),
            "broken": ("broke", "closed without an answer"),
        },
    ]
