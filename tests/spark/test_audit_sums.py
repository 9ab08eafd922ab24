"""The sums of an audit equal those from finished tables, no matter how the rows are divided."""

from __future__ import annotations

import pickle
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from flexwire.measures import ownership
from flexwire.measures.audit import AuditSums
from flexwire.measures.audit_rows import AUDITED, CONNECTIONS, SENT, STATED
from flexwire.measures.evidence import SHOWN, NamedEntities
from flexwire.protocol.audit import OPENING_APIS
from flexwire.spark.answers import AuditTables, audit_tables, gather_audit
from flexwire.storage.file_search import list_captures
from flexwire.survey.ranges import FRAMES, MESSAGES, RECORDS, decode_range
from flexwire.survey.survey import AnalysisRequest, Surveyor
from flexwire.tables.frames import connection_rows
from flexwire.tables.spec_places import entity_paths
from flexwire.versions import Versions
from tests.capture.exchanges import Talk
from tests.capture.interleaved import EVERYTHING, LOSSY, MID_STREAM, STRANGE, Shape, write_capture
from tests.searching import in_make_long
from tests.spark.test_audit import Client
from tests.spark.test_audit import _write as write_clients
from tests.spark.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.protocol.audit import Party

MANY = Shape(connections=40, talk=Talk(sasl=0.4, any_api=0.6, strange=0.2), reuse=0.3, begun=0.2)
SHAPES = {
    "LOSSY": LOSSY,
    "MID_STREAM": MID_STREAM,
    "STRANGE": STRANGE,
    "EVERYTHING": EVERYTHING,
    "MANY": MANY,
}
_KNOWN = "known to break"


@dataclass(frozen=True)
class Captured:
    """The rows of a capture's tables by table name, in order."""

    batches: list[tuple[str, pa.RecordBatch]]

    def table(self, name: str) -> pa.Table | None:
        found = [rows for table, rows in self.batches if table == name]
        return pa.Table.from_batches(found) if found else None

    def on(self, spark: SparkSession) -> AuditTables:
        def table(name: str) -> DataFrame | None:
            rows = self.table(name)
            return None if rows is None else spark.createDataFrame(rows)

        frames, connections = table(FRAMES), table(CONNECTIONS)
        assert frames is not None
        assert connections is not None
        return AuditTables(frames, connections, lambda name: table(f"{MESSAGES}/{name}"))

    def messages(self) -> list[str]:
        found = {table for table, _ in self.batches if table.startswith(MESSAGES)}
        return sorted(one.removeprefix(f"{MESSAGES}/") for one in found)


# These answers take the longest on Spark.
LARGE = ("EVERYTHING", "MANY", "STRANGE")


@pytest.fixture(scope="module", params=[*sorted({*SHAPES} - {*LARGE}), *in_make_long(*LARGE)])
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    return read(write_capture(tmp_path_factory.mktemp("capture"), 5, SHAPES[request.param]))


def read(files: Iterable[Path]) -> Captured:
    asked = AnalysisRequest(tuple(list_captures(files)), chunk_bytes=1 << 14)
    kept: dict[str, bytes] = {}
    survey = Surveyor(asked, kept.__setitem__).run()
    assert survey.ranges == 1
    rows = connection_rows(survey.connections)
    every = [(CONNECTIONS, rows), *decode_range(asked, 0, kept.__getitem__)]
    return Captured([(table, some) for table, some in every if table != RECORDS])


def summed(captured: Captured) -> AuditSums:
    sums = AuditSums()
    for table, rows in captured.batches:
        sums.add(table, rows)
    return sums


def everyone(sums: AuditSums) -> set[Party]:
    return set(sums.evidence().conducts)


def cut(rows: pa.RecordBatch, chance: random.Random) -> Iterator[pa.RecordBatch]:
    start = 0
    while start < len(rows):
        count = chance.randrange(1, len(rows) + 1)
        yield rows.slice(start, count)
        start += count


@pytest.mark.slow
@pytest.mark.parametrize("spills", [False, True])
def test_however_rows_are_cut_moved_and_spilled_the_evidence_is_the_same(
    captured: Captured, monkeypatch: pytest.MonkeyPatch, *, spills: bool
) -> None:
    if spills:
        monkeypatch.setattr(ownership, "HELD_BYTES", 2_000)
    monkeypatch.setattr(ownership, "_UNITED_BYTES", 500)
    chance = random.Random(7)
    parts = [AuditSums() for _ in range(5)]
    for table, rows in captured.batches:
        for some in cut(rows, chance):
            chance.choice(parts).add(table, some)
    merged = AuditSums(spills=spills)
    for one in parts:
        merged.merge(pickle.loads(pickle.dumps(one)))  # noqa: S301 - this line also pickled the data
    whole = summed(captured)
    assert merged.evidence() == whole.evidence()
    parties = everyone(whole)
    assert parties
    assert merged.touched(parties) == whole.touched(parties)
    assert (merged._rows._spilled is not None and merged._rows._spilled.is_used) == spills


@pytest.mark.slow
def test_connections_of_several_analyses_are_told_apart(captured: Captured) -> None:
    sums = AuditSums()
    for analysis in ("first", "second"):
        for table, rows in captured.batches:
            sums.add(table, rows.append_column("analysis", pa.repeat(analysis, len(rows))))
    twice, once = sums.evidence().conducts, summed(captured).evidence().conducts
    assert {*twice} == {*once}
    for party, conduct in once.items():
        found = twice[party]
        assert found.connections == 2 * conduct.connections
        assert found.whole == conduct.whole
        assert [one.requests for one in found.uses] == [2 * one.requests for one in conduct.uses]


def test_every_request_and_every_connection_counts_once(captured: Captured) -> None:
    """The audit equals the result of a loop over plain rows, which uses no groups."""
    kafka, sent = sent_on_kafka(captured)
    requests: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    owned: Counter[tuple[Any, ...]] = Counter()
    clients = clients_of(kafka, sent)
    for connection, own in by_connection_of(sent).items():
        address, owner = host(kafka[connection]), owner_of(own)
        owned[owner, address] += 1
        for one in own:
            client_id = owner if only_opens(one["client_id"], own) else one["client_id"]
            requests[client_id, address, one["api_key"], one["api_version"]] += 1
    found: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    counted: Counter[tuple[Any, ...]] = Counter()
    for party, conduct in summed(captured).evidence().conducts.items():
        names = clients[party.client_id, party.address]
        counted[party.client_id, party.address] += conduct.connections
        assert conduct.whole == all(kafka[name]["seen_from_start"] for name in names)
        for use in conduct.uses:
            found[party.client_id, party.address, use.api_key, use.version] += use.requests
    assert found == requests
    assert +counted == owned
    # Each connection is counted once.
    assert counted.total() == len({one["connection"] for one in sent})


def test_every_name_is_told_of_its_clients(captured: Captured) -> None:
    clients = clients_of(*sent_on_kafka(captured))
    named: defaultdict[tuple[Any, ...], set[str]] = defaultdict(set)
    for message in (one for one in captured.messages() if one.endswith("Request")):
        table = captured.table(f"{MESSAGES}/{message}")
        assert table is not None
        for row in table.to_pylist():
            for path, kind in entity_paths(message):
                for key, names in clients.items():
                    if row["connection"] in names:
                        named[*key, kind] |= set(at(row["body"], path))
    sums = summed(captured)
    touched = sums.touched(everyone(sums))
    for client in clients:
        told = touched.get((*client, None), NamedEntities())
        groups, topics = named[*client, "groups"], named[*client, "topics"]
        assert (told.group_count, told.topic_count) == (len(groups), len(topics))
        assert told.groups == tuple(sorted(groups)[:SHOWN])
        assert told.topics == tuple(sorted(topics)[:SHOWN])


def sent_on_kafka(captured: Captured) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return Kafka connections by name, with the requests that name their software."""
    frames, connections = captured.table(FRAMES), captured.table(CONNECTIONS)
    assert frames is not None
    assert connections is not None
    kafka = {one["connection"]: one for one in connections.to_pylist() if one["is_kafka"]}
    requests = [one for one in frames.to_pylist() if one["direction"] == "request"]
    said = [one for one in requests if one["api_key"] is not None and one["connection"] in kafka]
    return kafka, said


def host(connection: dict[str, Any]) -> str:
    address, _, _ = connection["client"].rpartition(":")
    return str(address)


def clients_of(
    kafka: dict[str, Any], sent: list[dict[str, Any]]
) -> defaultdict[tuple[Any, ...], set[str]]:
    """Return the connections on which each client id and address sends."""
    clients: defaultdict[tuple[Any, ...], set[str]] = defaultdict(set)
    for connection, own in by_connection_of(sent).items():
        for one in own:
            client_id = owner_of(own) if only_opens(one["client_id"], own) else one["client_id"]
            clients[client_id, host(kafka[connection])].add(connection)
    return clients


def by_connection_of(sent: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in sent:
        found[one["connection"]].append(one)
    return found


def only_opens(client_id: str | None, sent: list[dict[str, Any]]) -> bool:
    """Return whether a client id sends only ApiVersions and SASL on a connection."""
    keys = {one["api_key"] for one in sent if one["client_id"] == client_id}
    return keys <= OPENING_APIS


def owner_of(sent: list[dict[str, Any]]) -> str | None:
    """Return the client id to which a connection is attributed."""

    def weight(client_id: str | None) -> Any:
        own = [one for one in sent if one["client_id"] == client_id]
        further = sum(one["api_key"] not in OPENING_APIS for one in own)
        name = (client_id is None, (client_id or "").encode())
        return -further, not client_id, -len(own), name

    client_ids: set[str | None] = {one["client_id"] for one in sent}
    return min(client_ids, key=weight)


def at(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the strings at a path, including those inside arrays."""
    if isinstance(value, list):
        for one in value:
            yield from at(one, path)
    elif isinstance(value, dict):
        yield from at(value.get(path[0]), path[1:])
    elif value is not None and not path:
        yield value


@pytest.mark.spark
def test_spark_says_the_same_of_the_tables(spark: SparkSession, captured: Captured) -> None:
    found = audit_tables(captured.on(spark), captured.messages(), ["4.0"])
    assert found == gather_audit(summed(captured), ["4.0"])


def test_each_client_is_found_by_its_own_evidence(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "capture")
    write_clients(traffic)
    traffic.close()
    sums = summed(read([traffic.directory]))
    audit = gather_audit(sums, ["4.0"])
    found = {
        (one.client.client_id, one.client.address, one.client.software_name): (
            one.verdict, one.evidence, one.api_name, one.offered
        )
        for one in reversed(audit.findings)
    }  # fmt: skip
    clean = ("nothing seen against it", "versions", None, None)
    older = ("documented as unsupported", "librdkafka-baseline", None, None)
    assert found == {
        ("modern", "10.0.0.7", "kafka-python"): clean,
        ("future", "10.0.0.7", None): clean,
        ("pinned", "10.0.0.7", None): ("will break", "never asked", "Fetch", "4-18"),
        ("limited", "10.0.0.7", None): ("will break", "offered more", "ListOffsets", "1-11"),
        ("broken", "10.0.0.7", None): (
            "broke", "closed without an answer", "Produce", "0-13"
        ),
        ("served", "10.0.0.7", None): ("will break", "offered more", "Produce", "0-13"),
        ("rdkafka", "10.0.0.7", "librdkafka"): clean,
        ("rdkafka", "10.0.0.8", "librdkafka"): older,
        ("1", "10.0.0.1", None): ("not judged", "controller", None, None),
        ("broker-2-fetcher-0", "10.0.0.2", None): ("not judged", "broker", None, None),
    }  # fmt: skip
    assert audit.brokers == ("4.3.1",)
    named = {one.client.client_id: (one.groups, one.topics) for one in audit.findings}
    assert named["pinned"] == (("billing",), ("orders",))
    # The broker refuses the mechanism that the client's handshake names.
    of_mechanism = [one for one in gather_audit(sums, ["4.0.0"]).findings if one.verdict == _KNOWN]
    assert [one.client.address for one in of_mechanism] == ["10.0.0.7"]


def test_brokers_are_known_by_the_versions_that_only_they_send(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "capture")
    for client_id, port, version in (("producer", 1000, 3), ("2", 1001, 4)):
        Client(traffic, client_id, port).send("AddPartitionsToTxn", version, answered=False)
    traffic.close()
    found = summed(read([traffic.directory])).evidence().conducts
    assert {one.client_id: seen.role for one, seen in found.items()} == {
        "producer": "client",
        "2": "broker",
    }


def test_a_range_is_what_all_responses_offer_and_what_is_not_kafka_is_nobodys(
    tmp_path: Path,
) -> None:
    traffic = Traffic(tmp_path / "capture")
    for client_id, port, offered in (("a", 1000, Versions(4, 18)), ("b", 1001, Versions(3, 17))):
        Client(traffic, client_id, port).ask({1: offered}).send("Fetch", 2, answered=False)
    traffic.close()
    whole = read([traffic.directory])
    single = [
        (table, rows.slice(at, 1)) for table, rows in whole.batches for at in range(len(rows))
    ]
    for captured in (whole, Captured(single)):
        findings = gather_audit(summed(captured), ["4.0"]).findings
        assert {one.client.client_id: one.offered for one in findings} == {"a": "4-17", "b": "4-17"}
    ((_, rows), *others) = whole.batches
    is_other = [one["client"].endswith(":1000") for one in rows.to_pylist()]
    place = rows.schema.get_field_index("is_kafka")
    changed = rows.set_column(place, "is_kafka", pa.array([not one for one in is_other]))
    assert {one.client_id for one in everyone(summed(Captured([(CONNECTIONS, changed), *others])))
            } == {"b"}  # fmt: skip


def test_rows_that_are_alike_become_one() -> None:
    kind = AUDITED[SENT]
    told = {
        "connection": ["a", "a", "b", "a"],
        "client_id": [None, None, None, "x"],
        "api_key": [1, 1, 1, 1],
        "requests": [2, 3, 1, 1],
        "first_us": [-5, -7, 1, 1],
        "last_us": [4, 2, 1, 1],
        "answers": [0, 1, 0, 0],
    }
    arrays = [pa.array(told.get(one.name, [None] * 4), one.type) for one in kind.schema]
    rows = kind.united(pa.RecordBatch.from_arrays(arrays, schema=kind.schema)).to_pylist()
    columns = ("connection", "client_id", "requests", "first_us", "last_us", "answers")
    assert {tuple(row[name] for name in columns) for row in rows} == {
        ("a", None, 5, -7, 4, 1),
        ("b", None, 1, 1, 1, 0),
        ("a", "x", 1, 1, 1, 0),
    }
    assert len(rows) == 3


def test_memory_is_bounded_by_what_the_driver_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "HELD_BYTES", 100_000)
    held = ownership.ConnectionRows(AUDITED, spills=True)
    kind = AUDITED[STATED]
    for number in range(100):
        names = [f"c{number}-{row}" for row in range(500)]
        told = np.zeros(500, np.int8)
        columns = [pa.array(names), pa.array(told), pa.array(names)]
        held.add(STATED, pa.RecordBatch.from_arrays(columns, schema=kind.schema))
        assert sum(one.bytes for one in held._rows.values()) <= 100_000
    parts = [part[STATED] for part in held.parts()]
    assert max(map(len, parts)) < 2 * 50_000 / ownership.BUCKETS
    assert len(set(pa.concat_batches(parts)["connection"].to_pylist())) == 50_000
