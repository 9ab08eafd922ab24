"""docs/scale.md computes the cost of a day from its measured figures."""

from __future__ import annotations

from tools.pages.scale import PAGE, derived, measured


def test_other_costs_give_other_figures() -> None:
    of = measured(PAGE.read_text(encoding="utf-8"))
    before = dict(derived(of))
    for name in of:
        assert dict(derived(of | {name: of[name] * 10})) != before, name
