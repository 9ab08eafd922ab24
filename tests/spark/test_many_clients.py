"""An audit of very many clients judges some of them and counts the others, in bounded memory."""

from __future__ import annotations

import json
import pickle
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.answers.asking import audit as judging
from flexwire.facts.audit import AuditOmissions
from flexwire.facts.facts import Facts
from flexwire.measures import audit as audit_sums
from flexwire.measures import audit_rows, ownership
from flexwire.measures.audit import AuditSums
from flexwire.measures.audit_rows import AUDITED, KAFKA, SENT, Candidates, hashes
from flexwire.report import render
from flexwire.report.audit_files import audit_json
from flexwire.spark.answers import gather_audit
from flexwire.spark.capture_job import answer_notes
from tests.traced import traced

if TYPE_CHECKING:
    from collections.abc import Iterable

FETCH = 1


class Sent(NamedTuple):
    """Add requests of a client on one connection."""

    number: int
    requests: int
    version: int = 2
    broker: str = "10.0.0.1:9092"


def rows(kind: str, **told: list[Any]) -> pa.RecordBatch:
    schema = AUDITED[kind].schema
    count = len(next(iter(told.values())))
    arrays = [pa.array(told.get(one.name, [None] * count), one.type) for one in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def summed(some: Iterable[Sent], *, spills: bool = False) -> AuditSums:
    every = list(some)
    sums = AuditSums(spills=spills)
    count = len(every)
    connections = [f"{one.number} to {one.broker} {one.version}" for one in every]
    requests = [one.requests for one in every]
    sums._rows.add(
        SENT,
        rows(
            SENT,
            connection=connections,
            client_id=[None if one.number % 3 == 0 else f"c{one.number % 7}" for one in every],
            api_key=[FETCH] * count,
            api_version=[one.version for one in every],
            **{name: [0] * count for name in ("first_us", "last_us", "answers")},
            requests=requests,
        ),
    )
    sums._rows.add(
        KAFKA,
        rows(
            KAFKA,
            connection=connections,
            address=[f"10.0.0.{one.number}" for one in every],
            broker=[one.broker for one in every],
            from_start=[False] * count,
            is_closed_by_broker=[False] * count,
            principal=[f"User:{one.number}" for one in every],
        ),
    )
    return sums


def limited(monkeypatch: pytest.MonkeyPatch, clients: int, uses: int = 10**6) -> None:
    for module in (audit_sums, audit_rows):
        monkeypatch.setattr(module, "MOST_CLIENTS", clients)
        monkeypatch.setattr(module, "MOST_USES", uses)


EVERY = [
    Sent(number, 1 + number % 50, 2 + number % 3, f"b{number % 4}:1") for number in range(60)
] + [Sent(number, 1000, 5, f"b{number % 5}:1") for number in range(20, 25)]


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 5, 17, 59])
@pytest.mark.parametrize("held", [1, 1 << 30], ids=["on disk", "in memory"])
def test_those_with_most_requests_are_judged_as_without_the_others(
    most: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = summed(EVERY).evidence()
    assert (whole.clients_left_out, whole.requests_left_out) == (0, 0)
    monkeypatch.setattr(ownership, "HELD_BYTES", held)
    limited(monkeypatch, most)
    sums = summed(EVERY, spills=True)
    found = sums.evidence()
    assert len(found.conducts) == most
    assert found.conducts == {one: whole.conducts[one] for one in found.conducts}
    others = [seen.requests for one, seen in whole.conducts.items() if one not in found.conducts]
    assert max(others) <= min(one.requests for one in found.conducts.values())
    assert (found.clients_left_out, found.requests_left_out) == (len(others), sum(others))
    assert not sums.touched(found.conducts)


def test_one_client_that_is_many_leaves_room_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited(monkeypatch, 10, 40)
    monkeypatch.setattr(audit_rows, "MOST_USES_OF_ONE", 25)
    # Each connection uses a different version, and carries more requests than any connection of
    # another client.
    greedy = [Sent(999, 10_000, version) for version in range(26)]
    found = summed([*EVERY, *greedy]).evidence()
    assert "User:999" not in {one.principal for one in found.conducts}
    assert len(found.conducts) == 10
    limited(monkeypatch, 100, 40)
    found = summed([*EVERY, *greedy[1:]]).evidence()
    assert "User:999" in {one.principal for one in found.conducts}
    assert sum(len(one.uses) for one in found.conducts.values()) <= 40
    assert len(found.conducts) > 5


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(1, 9)), max_size=90),
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.integers(1, 40),
)
def test_what_is_chosen_does_not_depend_on_how_rows_come(
    told: list[tuple[int, int, int]], seed: int, most: int, uses: int
) -> None:
    def chosen(some: list[tuple[int, int, int]], size: int) -> Any:
        every = Candidates()
        for start in range(0, len(some), size):
            client, use, count = np.array(some[start : start + size]).reshape(-1, 3).T
            every.add(client.astype(np.uint64), use.astype(np.uint64), count)
        return every.chosen()

    with pytest.MonkeyPatch.context() as patched:
        limited(patched, most, uses)
        mixed = list(told)
        random.Random(seed).shuffle(mixed)
        one, other = chosen(told, 1000), chosen(mixed, 7)
    clients = {client for client, *_ in told}
    each = {client: len({use for one, use, _ in told if one == client}) for client in clients}
    if one is None:
        assert other is None
        assert len(clients) <= most
        assert sum(each.values()) <= uses
        return
    assert one.clients.tolist() == other.clients.tolist()
    assert one[1:] == other[1:]
    assert len(one.clients) <= most
    assert sum(each[client] for client in one.clients.tolist()) <= uses
    assert len(one.clients) + one.left_out == len(clients)
    kept = {*one.clients.tolist()}
    assert one.requests == sum(count for client, _, count in told if client not in kept)


def test_hashes_tell_null_from_what_is_empty_and_columns_from_each_other() -> None:
    columns = [pa.array([None, "", "a", "", "b"]), pa.array(["a", "a", "", None, "a"])]
    assert len({*hashes(columns, 5).tolist()}) == 5
    numbers = [pa.array([None, 0, 1], pa.int32()), pa.array([True, True, None])]
    assert len({*hashes(numbers, 3).tolist()}) == 3
    sliced = [one.slice(1) for one in columns]
    assert hashes(sliced, 4).tolist() == hashes(columns, 5).tolist()[1:]


def test_what_some_brokers_offer_is_known_whatever_the_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_sums, "MOST_BROKERS", 10)
    told = [(f"b{number:03d}", FETCH, low, 9) for number in range(90) for low in (0, 1)]

    def merged(seed: int) -> AuditSums:
        mixed = list(told)
        random.Random(seed).shuffle(mixed)
        every = AuditSums(spills=True)
        for start in range(0, len(mixed), 25):
            part = AuditSums()
            for one in mixed[start : start + 25]:
                part._offer(*one)
                part._prune(20)
            every.merge(pickle.loads(pickle.dumps(part)))  # noqa: S301 - this line also pickled the data
            assert len(every._offers) <= 20
        return every

    for seed in range(5):
        sums = merged(seed)
        assert sums.evidence().brokers_left_out == 80
        assert sums._offers == {f"b{number:03d}": {FETCH: (1, 9)} for number in range(10)}
    few = AuditSums()
    for one in told[:20]:
        few._offer(*one)
    assert few.evidence().brokers_left_out == 0


def test_of_very_many_findings_the_gravest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gather_audit(summed(EVERY), ["4.0"])
    assert whole.left_out == AuditOmissions()
    verdicts = [one.verdict for one in whole.findings]
    assert len({*verdicts}) > 1
    monkeypatch.setattr(judging, "MOST_FINDINGS", 20)
    cut = gather_audit(summed(EVERY), ["4.0"])
    # Findings are sorted so that the worst come first.
    assert [one.verdict for one in cut.findings] == verdicts[:20]
    assert {*cut.findings} <= {*whole.findings}
    left = {one: verdicts[20:].count(one) for one in {*verdicts[20:]}}
    assert dict(cut.left_out.findings) == left
    assert cut.newest == whole.newest


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 30)
    monkeypatch.setattr(judging, "MOST_FINDINGS", 20)
    audit = gather_audit(summed(EVERY), ["4.0"])
    left_out = audit.left_out
    assert left_out.clients == 30
    facts = Facts(title="", made_at_us=0, flexwire_version="0", newest_release="4.4.0", audit=audit)
    assert answer_notes(facts) == (left_out.sentence,)
    assert f"30 clients were not judged: those with the fewest requests ({left_out.requests}" in (
        left_out.sentence
    )
    assert "10 findings were left out: " in left_out.sentence
    assert left_out.sentence in render(facts)
    told = json.loads(audit_json(audit))
    assert (told["left_out"]["clients"], len(told["findings"])) == (30, 20)
    assert Facts.from_json(facts.to_json()) == facts


def peak(count: int) -> int:
    sums = summed(Sent(number, 1, 0, f"b{number}:1") for number in range(count))
    sums._rows.count(SENT)
    with traced() as memory:
        gather_audit(sums, ["3.9", "4.0"])
    return memory.most


@pytest.mark.long
@pytest.mark.slow
def test_a_client_more_takes_no_kilobyte(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 500)
    peak(1000)
    few, many = peak(2000), peak(8000)
    assert (many - few) / 6000 < 700
    limited(monkeypatch, 10**6)
    assert (peak(8000) - few) / 6000 > 2000
