"""What docs/scale.md says a day takes follows from what it says was measured."""

from __future__ import annotations

from tests.docs.scaling import BEGIN, END, PAGE, derived, measured, table


def test_what_a_day_takes_follows_from_what_was_measured() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = text.partition(BEGIN)[2].partition(END)[0]
    assert told == table(measured(text)), "run python -m tests.docs.scaling"


def test_other_costs_give_other_figures() -> None:
    of = measured(PAGE.read_text(encoding="utf-8"))
    before = dict(derived(of))
    for name in of:
        assert dict(derived(of | {name: of[name] * 10})) != before, name
