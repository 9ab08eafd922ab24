"""The audit's verdicts agree with the behavior of real brokers in the last trial."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.protocol.audit import OPENING_APIS
from tests.house.test_pins import _ENTRY
from tests.kafka.trial.rows import CAPTURED, JUDGED, Row, read_rows
from tests.kafka.trial.trying import STEPS, run
from tools.clients.installing import HERE, Program
from tools.clients.roster import CLIENTS
from tools.pages.audit_trial import PAGE, with_trial

if TYPE_CHECKING:
    from pathlib import Path

ROWS = read_rows()
BY_CLIENT = {one.client: one for one in ROWS}
OLD = BY_CLIENT["kafka-clients 0.10.2.2"]


def test_every_client_was_tried_on_every_release() -> None:
    assert [one.client for one in ROWS] == list(map(str, CLIENTS))
    for row in ROWS:
        assert [*row.happened] == [CAPTURED, *JUDGED]
        assert all([*found] == [*STEPS] for found in row.happened.values())
        assert len(row.seen) == 1
    assert len({one.slug for one in CLIENTS}) == len(CLIENTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.client)
def test_what_the_audit_foresees_of_a_client_is_what_happened(row: Row) -> None:
    for release in JUDGED:
        assert row.is_right(release), (release, row.foreseen(release), row.happened[release])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.client)
def test_at_the_release_where_it_was_captured_a_client_produces_reads_and_commits(row: Row) -> None:
    found = row.happened[CAPTURED]
    assert [found[name] for name in ("produce", "consume", "commit")] == ["", "", ""]


def test_the_trial_has_clients_of_every_fate() -> None:
    fates = {frozenset(row.broken(release)) for row in ROWS for release in JUDGED}
    each = ("create", "produce", "consume")
    assert {frozenset(), frozenset({"consume"}), frozenset({"commit"}), frozenset(each)} <= fates
    # JoinGroup versions that librdkafka and sarama send, and that a patch release reads again.
    assert any(row.broken("4.0.0") != row.broken("4.0.2") for row in ROWS)


@pytest.mark.parametrize(
    ("step", "said"), [("produce", ""), ("create", "an error"), ("consume", "")]
)
def test_an_outcome_that_was_not_foreseen_is_told(step: str, said: str) -> None:
    happened = {release: dict(found) for release, found in OLD.happened.items()}
    happened[CAPTURED]["create"] = ""
    happened["4.4.0"][step] = said
    other = replace(OLD, happened=happened)
    assert other.is_right("4.0.0")
    assert not other.is_right("4.4.0")
    assert with_trial("", [other]).count("(**not what was foreseen**)") == 1


def test_a_verdict_that_is_not_given_is_told() -> None:
    # If the captured broker reads no newer version, there is no verdict about the same client.
    ((party, conduct),) = OLD.seen
    kept = tuple(use for use in conduct.uses if use.api_key in OPENING_APIS)
    assert not replace(OLD, seen=((party, replace(conduct, uses=kept)),)).is_right("4.4.0")


@pytest.mark.parametrize(
    ("version", "is_remarked"),
    [("0.10.2.2", True), ("0.11.0.3", True), ("2.0.1", True), ("2.1.1", False), ("2.8.2", False)],
)
def test_a_java_client_that_does_not_name_itself_is_told_from_newer_ones_by_what_it_speaks(
    version: str, *, is_remarked: bool
) -> None:
    found = {one.evidence for one in BY_CLIENT[f"kafka-clients {version}"].findings("4.4.0")}
    assert ("java-before-2.1" in found) is is_remarked


def test_the_part_about_the_trial_is_replaced_whole() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_trial(with_trial(text, ROWS[:1]), ROWS) == with_trial(text, ROWS)


def test_clients_are_pinned_by_names_versions_and_hashes_only() -> None:
    locks = sorted((HERE / "locks").iterdir())
    assert len(locks) > 1
    assert [one.name for one in locks if _ENTRY.sub("", one.read_text(encoding="utf-8"))] == []
    for one in HERE.rglob("package-lock.json"):
        packages = json.loads(one.read_text(encoding="utf-8"))["packages"]
        assert all("resolved" not in told for told in packages.values())
        assert all(told["integrity"] for place, told in packages.items() if place)
    for sums in HERE.rglob("*.sum"):
        lines = sums.read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"\S+ v\S+ h1:\S+=", line) for line in lines)


def said(step: str, error: str | None, left: str | None = None) -> str:
    return f"print({json.dumps({'step': step, 'error': error, 'left': left})!r})"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "consume", "end"),
    [
        (said("consume", None), "", ""),
        (said("consume", "no"), "no", ""),
        (said("create", None, "it has none"), None, "it ended with 0"),
        ("print('noise'); import sys; sys.exit('it fell')", None, "it ended with 1: it fell"),
    ],
)
def test_what_a_program_says_or_how_it_ended_is_its_outcome(
    source: str, consume: str | None, end: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(source, encoding="utf-8")
    outcome = run(Program((sys.executable, str(path))), "127.0.0.1:9", CLIENTS[0])
    told = outcome.pop("consume")
    assert set(outcome.values()) == {None}
    assert told == (end if consume is None else consume) or (end and end in str(told))
