"""Verdicts about groups agree with the reactions of real brokers in the last trial."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.protocol.audit.consumer_protocol import GROUP_VERDICTS, SUPPORT, UNSEEN
from flexwire.protocol.error_codes import ERROR_NAMES
from tests.kafka.trial.group_cases import CASES, STREAMS
from tests.kafka.trial.group_rows import ALONE, AS_IT_IS, GroupRow, read_group_rows
from tools.pages.group_trial import PAGE, with_groups

if TYPE_CHECKING:
    from flexwire.protocol.audit.consumer_protocol import GroupVerdict

ROWS = read_group_rows()
BY_NAME = {row.name: row for row in ROWS}
NOT_FOUND = next(code for code, name in ERROR_NAMES.items() if name == "GROUP_ID_NOT_FOUND")


def test_every_group_was_tried() -> None:
    assert [row.name for row in ROWS] == [case.name for case in CASES]
    assert len(BY_NAME) == len(CASES)
    assert all(row.attempts for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_verdict_about_a_group_is_what_its_broker_did(row: GroupRow) -> None:
    assert row.judged()["verdict"] == row.verdict
    assert row.is_right, (row.verdict, row.moved, row.after, row.attempts)


def test_the_reason_names_the_settings_with_which_a_member_does_not_move() -> None:
    refused = [support.refused for support in SUPPORT.values()]
    known = {name for one in refused for name in (one.assignors, one.timeout) if name}
    rows = [row for row in ROWS if row.verdict == "moves after a setting"]
    rows = [row for row in rows if row.case.unseen is None]
    named = {row.name: {name for name in known if name in row.judged()["reason"]} for row in rows}
    assert {*map(bool, named.values())} == {True, False}
    for row in rows:
        came = [one for one in row.attempts if one.how == AS_IT_IS]
        settings = {each.split("=")[0] for one in came for each in one.settings}
        assert {name.removeprefix("kgo.") for name in named[row.name]} <= settings
        assert all(one.is_taken for one in came) is not bool(named[row.name]), row.name


def test_the_trial_has_every_verdict_and_every_library() -> None:
    assert {row.verdict for row in ROWS} | {row.after for row in ROWS} == {*GROUP_VERDICTS}
    named = {software.library for row in ROWS for software, _ in row.case.members}
    assert named == SUPPORT.keys()


def test_every_unseen_condition_stood_in_the_way_of_a_group() -> None:
    assert {row.case.unseen for row in ROWS} - {None} == {*range(len(UNSEEN))}


def test_a_group_that_its_broker_refused_moves_once_all_members_left() -> None:
    """The remedy of a blocked group worked."""
    emptied = [row for row in ROWS if row.case.empties]
    assert len(emptied) > 1
    for row in emptied:
        assert NOT_FOUND in {one.code for one in row.attempts}
        assert row.attempts[-1].how == ALONE
        assert row.attempts[-1].is_taken


def test_the_log_of_offsets_blocks_the_same_groups_that_assignments_and_types_block() -> None:
    by_offsets = {row.name for row in ROWS if row.by_offsets == "blocked"}
    assert by_offsets
    for name in by_offsets:
        assert BY_NAME[name].verdict == "blocked"
        assert NOT_FOUND in {one.code for one in BY_NAME[name].attempts}
    assert next(row.name for row in ROWS if row.case.application is STREAMS) in by_offsets


@pytest.mark.parametrize("verdict", ["blocked", "moves after a setting"])
def test_a_verdict_that_does_not_fit_is_told(verdict: GroupVerdict) -> None:
    row = BY_NAME["java-plain"]
    assert row.verdict == "moves as it is"
    other = replace(row, verdict=verdict)
    assert not other.is_right
    page = with_groups(PAGE.read_text(encoding="utf-8"), [other])
    assert page.count("(**wrong**)") == 1


def test_a_refusal_that_does_not_fit_is_told() -> None:
    row = BY_NAME["java-policy"]
    (first, *others) = row.attempts
    assert row.is_right
    assert not replace(row, attempts=(replace(first, code=0), *others)).is_right
    assert not replace(row, after="moves as it is").is_right
