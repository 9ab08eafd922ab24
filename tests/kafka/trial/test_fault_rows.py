"""In the last `make faults`, eight clients behaved as the table shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.tap.fault_rules import parse_fault
from tests.kafka.trial.breaking import LIBRARIES
from tests.kafka.trial.fault_rows import FAULTS, KNOWN, FaultRow, read_fault_rows
from tests.kafka.trial.trying import COUNT, STEPS
from tools.pages.fault_trial import PAGE, with_clients

if TYPE_CHECKING:
    from tests.kafka.trial.trying import Outcome

ROWS = read_fault_rows()
WORKS: Outcome = dict.fromkeys(STEPS, "")


def test_every_client_met_every_fault() -> None:
    met = {(row.client, row.fault) for row in ROWS}
    assert met == {(client, fault.text) for client in LIBRARIES for fault in FAULTS}
    assert len(ROWS) == len(met)


def test_every_fault_of_the_run_is_one_and_the_page_names_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for fault in FAULTS:
        assert parse_fault(fault.for_client("a")).only.client_ids == ("a",)
        assert f"| `{fault.text}` |" in page
    assert with_clients(page, ROWS) == page


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.client}, {row.fault}")
def test_nothing_went_wrong_that_is_not_known_of_the_client(row: FaultRow) -> None:
    assert bool(row.wrong) == ((row.client, row.fault) in KNOWN), row


def test_a_broker_that_has_done_it_has_records_twice_and_one_that_has_not_does_not() -> None:
    for row in ROWS:
        if "before" in row.fault:
            assert row.copies == 0
    assert any(row.copies == COUNT for row in ROWS if row.fault.startswith("Produce close after"))


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (FaultRow("a", "Produce close", WORKS, 1, COUNT, 0, 0), ""),
        (FaultRow("a", "Produce close", {**WORKS, "produce": "no"}, 1, 0, 0, 0), ""),
        (FaultRow("a", "Produce close", WORKS, 1, COUNT - 1, 0, 0), "the broker does not have"),
        (FaultRow("a", "Produce close", WORKS, 1, COUNT, 0, 1), "the broker has a record"),
        (FaultRow("a", "* tag=10042=hello", {**WORKS, "commit": "no"}, 1, 5, 0, 0), "it noticed"),
        (
            FaultRow("a", "Fetch close", {**WORKS, "consume": "it did not end"}, 1, 5, 0, 0),
            "it did",
        ),
    ],
)
def test_what_must_not_be_is_named(row: FaultRow, wrong: str) -> None:
    assert row.wrong.startswith(wrong)
    assert bool(row.wrong) == bool(wrong)
