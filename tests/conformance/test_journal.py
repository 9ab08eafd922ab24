"""A stopped run continues where it stopped, and the journal of another run is refused."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.conformance import (
    Asking,
    CaseResult,
    ConformanceRun,
    SecondBroker,
    conform,
    formats,
    plan_cases,
)
from flexwire.conformance.journal import LONGEST_LINE, ConformanceJournal, JournalHeader
from flexwire.conformance.judging import MOST_DECODED, CaseOutcome, Ending
from flexwire.errors import ConformanceJournalError
from flexwire.protocol.apis import api_key_of
from flexwire.versions import Versions
from tests.cli.test_messages import Run, run
from tests.conformance.brokers import METADATA, RELEASE, KafkaLike, a_byte_too_many, kafka_like
from tests.conformance.test_comparing import sent
from tests.searching import in_make_long

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run"]
ASKING = Asking(RELEASE, frozenset((METADATA,)), hostile=True)


class StoppedError(Exception):
    """The exception that stops a run in these tests."""


def stop_after(count: int) -> Any:
    """Return a watch that stops a run after this many finished cases."""
    seen: list[CaseResult] = []

    def watch(result: CaseResult, _: int) -> None:
        seen.append(result)
        if len(seen) == count:
            raise StoppedError

    return watch


def told(ran: ConformanceRun) -> str:
    return formats.to_json(ran) + formats.to_junit(ran) + formats.to_text(ran)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.mark.parametrize("count", [17, *in_make_long(1, 60)])
def test_a_run_that_goes_on_says_the_same_and_sends_only_what_is_left(
    journal: Path, count: int
) -> None:
    with kafka_like(a_byte_too_many) as (address, broker):
        whole = conform(address, ASKING)
        all_sent = len(sent(broker))
        with pytest.raises(StoppedError):
            conform(address, ASKING, journal=journal, watch=stop_after(count))
        broker.asked.clear()
        again = conform(address, ASKING, journal=journal)
        left = len(sent(broker))
        broker.asked.clear()
        third = conform(address, ASKING, journal=journal)
        assert sent(broker) == []
    assert told(whole) == told(again) == told(third)
    assert whole.deviations
    assert (whole.resumed, again.resumed, third.resumed) == (0, count, len(whole.results))
    # A broker does not count frames that it cannot read.
    assert all_sent - count <= left < all_sent


@pytest.mark.long
def test_the_same_with_a_second_broker_that_is_reached_in_the_second_run(journal: Path) -> None:
    with kafka_like(a_byte_too_many) as (address, one), kafka_like() as (second, other):
        against = SecondBroker(second)
        whole = conform(address, ASKING, against=against)
        count = len(whole.results) + 5
        with pytest.raises(StoppedError):
            conform(address, ASKING, against=against, journal=journal, watch=stop_after(count))
        one.asked.clear()
        other.asked.clear()
        again = conform(address, ASKING, against=against, journal=journal)
        assert sent(one) == []
        assert sent(other)
        assert told(again) == told(whole)
        assert again.against is not None
        assert (again.resumed, again.against.other.resumed) == (len(whole.results), 5)
        with pytest.raises(ConformanceJournalError, match="journal belongs to a run against"):
            conform(address, ASKING, journal=journal)


@pytest.mark.long
def test_a_line_that_was_cut_off_is_sent_again(journal: Path) -> None:
    with kafka_like(a_byte_too_many) as (address, _):
        whole = conform(address, ASKING, journal=journal)
        lines = journal.read_bytes().splitlines(keepends=True)
        for cut in (len(lines[5]) - 1, 1):
            journal.write_bytes(b"".join(lines[:5]) + lines[5][:cut])
            again = conform(address, ASKING, journal=journal)
            assert again.resumed == 4
            assert told(again) == told(whole)
            # Further output begins on a new line.
            assert journal.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("cut", [1, *in_make_long(0, 60)])
def test_a_header_that_was_cut_off_begins_the_journal(journal: Path, cut: int) -> None:
    with kafka_like() as (address, _):
        conform(address, ASKING, journal=journal)
        whole = journal.read_bytes()
        journal.write_bytes(whole[:cut])
        assert conform(address, ASKING, journal=journal).resumed == 0
        assert journal.read_bytes() == whole


@pytest.mark.long
def test_it_is_for_its_owner_alone_and_holds_no_credentials(journal: Path) -> None:
    names = ("DescribeConfigs", "DescribeDelegationToken", "Metadata")
    asking = Asking(RELEASE, frozenset(map(api_key_of, names)))
    with kafka_like() as (address, broker):
        ran = conform(address, asking, journal=journal)
        assert stat.S_IMODE(journal.stat().st_mode) == 0o600
        broker.asked.clear()
        again = conform(address, asking, journal=journal)
    entries = [json.loads(line) for line in journal.read_bytes().splitlines()[1:]]
    kept = {entry["case"] for entry in entries}
    answered = {one.case.name for one in ran.results if one.outcome.payload is not None}
    secret = {one for one in answered if not one.startswith("Metadata")}
    assert secret
    assert kept == {one.case.name for one in ran.results} - secret
    assert told(again) == told(ran)
    # The cases are sent again.
    assert {name for name, _, _ in broker.asked} == {*names, "ApiVersions"} - {"Metadata"}


PLAN = plan_cases({60: Versions(0, 1)}, Asking(RELEASE))
HEADER = JournalHeader.of([("b:1", PLAN)], Asking(RELEASE))


def others() -> dict[str, tuple[Any, str]]:
    """Return runs whose broker, release or cases differ, and the text that names the difference."""
    other = Asking(RELEASE, frozenset((METADATA,)))
    return {
        "release": (Asking("4.0.2", ASKING.apis, hostile=True), "a run against 4.4.0"),
        "cases": (other, "a run with different cases"),
        "client id": (ASKING.with_client_id("another"), "a run with different cases"),
    }


@pytest.mark.parametrize("name", others())
def test_a_journal_of_another_run_is_refused_and_stays_as_it_is(journal: Path, name: str) -> None:
    asking, says = others()[name]
    with kafka_like() as (address, broker):
        conform(address, ASKING, journal=journal)
        whole = journal.read_bytes()
        broker.asked.clear()
        with pytest.raises(ConformanceJournalError, match=says):
            conform(address, asking, journal=journal)
        assert sent(broker) == []
    says = f"a run against {address}, but this"
    with kafka_like() as (second, _), pytest.raises(ConformanceJournalError, match=says):
        conform(second, ASKING, journal=journal)
    assert journal.read_bytes() == whole


FIRST = HEADER.to_line()
GOOD = {"broker": 0, "case": "a", "payload": "00", "ending": None, "detail": "", "unread": 0}
DAMAGED: dict[str, tuple[bytes, str]] = {
    "text": (b"hello\n", "not the journal of a conformance run"),
    "text without an end": (b"hello", "not the journal of a conformance run"),
    "a number": (b"7\n", "not the journal of a conformance run"),
    "another format": (FIRST.replace(b"journal 1", b"journal 2"), "not the journal of a conf"),
    "brokers that are none": (FIRST.replace(b'["b:1"]', b"[7]"), "not the journal of a conf"),
    "deeply nested": (b"[" * 100_000 + b"\n", "not the journal of a conformance run"),
    "an entry that is none": (FIRST + b"[]\n", "line 2 is not a journal entry"),
    "nested entry": (FIRST + b"[" * 100_000 + b"\n", "line 2 is not a journal entry"),
    "bytes": (FIRST + b"\xff\xfe\n", "line 2 is not a journal entry"),
    "too long": (FIRST + b" " * (LONGEST_LINE + 1), "a line is longer than"),
}
_CHANGES: dict[str, dict[str, Any]] = {
    "a payload that is no hex": {"payload": "0g"},
    "a payload that is no text": {"payload": 7},
    "payload and ending": {"ending": "CLOSED"},
    "neither": {"payload": None},
    "an unknown ending": {"payload": None, "ending": "LOST"},
    "a negative count": {"unread": -1},
    "a truth as a number": {"unread": True},
    "a case that is no text": {"case": 7},
    "a detail that is no text": {"detail": None},
}
for _name, _change in _CHANGES.items():
    _line = json.dumps({**GOOD, **_change}).encode() + b"\n"
    DAMAGED[_name] = (FIRST + _line, "line 2 is not a journal entry")
for _name in GOOD:
    _rest = {key: value for key, value in GOOD.items() if key != _name}
    DAMAGED[f"without {_name}"] = (FIRST + json.dumps(_rest).encode() + b"\n", "line 2 is not")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_journal_is_refused_and_stays_as_it_is(journal: Path, name: str) -> None:
    data, says = DAMAGED[name]
    journal.write_bytes(data)
    with pytest.raises(ConformanceJournalError, match=says):
        ConformanceJournal(journal, HEADER)
    assert journal.read_bytes() == data


def test_a_case_twice_and_a_case_of_no_run_are_refused(journal: Path) -> None:
    line = json.dumps({**GOOD, "case": PLAN.cases[0].name}).encode() + b"\n"
    for lines in (line * 2, json.dumps(GOOD).encode() + b"\n"):
        journal.write_bytes(FIRST + lines)
        with (
            ConformanceJournal(journal, HEADER) as kept,
            pytest.raises(ConformanceJournalError, match="twice, or this run has no such case"),
        ):
            kept.finished(0, PLAN)
    journal.write_bytes(FIRST + line * (len(PLAN.cases) + 1))
    with pytest.raises(ConformanceJournalError, match=f"more than {len(PLAN.cases)} cases"):
        ConformanceJournal(journal, HEADER)


def test_every_outcome_is_read_as_it_was_written(journal: Path) -> None:
    outcomes = [CaseOutcome(ending=ending, detail="é\n\u2028") for ending in Ending]
    outcomes += [CaseOutcome(b"", unread=3), CaseOutcome(bytes(range(256)))]
    outcomes.append(CaseOutcome(bytes(MOST_DECODED)))
    with ConformanceJournal(journal, HEADER) as kept:
        for case, outcome in zip(PLAN.cases, outcomes, strict=False):
            kept.append(0, case, outcome)
        kept.append(0, PLAN.cases[-1], CaseOutcome(bytes(MOST_DECODED + 1)))
        with pytest.raises(ConformanceJournalError, match="another run is writing to this file"):
            ConformanceJournal(journal, HEADER)
    with ConformanceJournal(journal, HEADER) as kept:
        # The last frame is too long to be judged, and is missing.
        assert [*kept.finished(0, PLAN).values()] == outcomes
        assert kept.finished(1, PLAN) == {}


def test_a_place_that_cannot_be_written_is_an_error_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    with kafka_like() as (address, broker):
        for place, says in (
            (tmp_path / "missing" / "run", "No such file"),
            (tmp_path, "expected a regular file"),
        ):
            with pytest.raises(ConformanceJournalError, match=says):
                conform(address, ASKING, journal=place)
        assert sent(broker) == []


def test_a_list_of_versions_that_cannot_be_read_leaves_the_journal_alone(journal: Path) -> None:
    def garbage(_: object, __: bytes, answer: bytes) -> bytes:
        return b"\0\0\0\4" + answer[:4]

    with kafka_like(garbage) as (address, _):
        ran = conform(address, ASKING, journal=journal)
    assert ran.deviations
    assert ran.resumed == 0
    assert not journal.exists()


def test_the_command_says_how_many_cases_were_finished(run: Run, journal: Path) -> None:
    def cut(broker: KafkaLike) -> None:
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:11]))
        broker.asked.clear()

    with kafka_like() as (address, broker):
        given = ("conform", address, "--apis", "Metadata", "--resume", str(journal))
        first = run(*given)
        assert (first.code, first.err) == (0, "")
        cut(broker)
        again = run(*given)
        assert (again.code, again.out) == (0, first.out)
        assert again.err == (
            f"{journal}: 10 of 59 cases were finished earlier and are not sent again\n"
        )
        refused = run(*given, "--hostile")
        assert (refused.code, refused.out) == (1, "")
        assert "different cases" in refused.err
