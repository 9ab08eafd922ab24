"""docs/scale.md computes the cost of a day from its measured figures."""

from __future__ import annotations

from tools.pages.scale import PAGE, derived, derived_of_fleet, measured


def test_other_costs_give_other_figures() -> None:
    of = measured(PAGE.read_text(encoding="utf-8"))
    before = computed(of)
    for name in of:
        assert computed(of | {name: of[name] * 10}) != before, name


def test_a_store_and_a_fleet_are_counted() -> None:
    of = measured(PAGE.read_text(encoding="utf-8"))
    disk, store = computed(of | {"per_stored": 0.0}), computed(of)
    for told in (
        "cores busy all day if captures are in a store",
        "fleet: cores that are busy, if captures are in a store",
    ):
        assert float(disk[told].replace(",", "")) < float(store[told].replace(",", "")), told


def computed(of: dict[str, float]) -> dict[str, str]:
    """Return each quantity in both tables, and its figure."""
    return {
        **dict(derived(of)),
        **{f"fleet: {told}": figure for told, figure in derived_of_fleet(of)},
    }
