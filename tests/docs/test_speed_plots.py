"""The plots of docs/performance.md agree with its tables."""

from __future__ import annotations

import re

import pytest

from tools.pages.speed_plots import PAGE, PLOTS, Group, Plot, picture

MARKED = """# How fast

## Columns

| | a second | beside |
|---|---|---|
| small `one` | 1,200.5 | |
| large | 3 | 4 times |

| | a second |
|---|---|
| small `one` | 7 |

## Next
"""
PLAIN = """# How fast

## Objects

Words.

```
case                    flexwire/s            x kio    no kernels/s
a_message     decode         1,000             4.00              10
another       decode           500                -               5
```
"""


def plot(heading: str, rows: tuple[str, ...], bars: tuple[tuple[str, str], ...]) -> Plot:
    return Plot("name", heading, "Title", rows, bars, is_share=heading == "Objects")


def test_the_bars_are_cells_of_the_first_table() -> None:
    bars = (("a second", "first"), ("beside", "second"))
    found = [*plot("Columns", ("large", "small `one`"), bars).groups(MARKED)]
    assert found == [
        Group("large", (("first", 3), ("second", 4))),
        Group("small `one`", (("first", 1200.5),)),
    ]


def test_a_ratio_to_a_rival_becomes_the_share_that_the_rival_reaches() -> None:
    bars = (("flexwire/s", "flexwire"), ("x kio", "kio"))
    found = [*plot("Objects", ("a_message decode", "another decode"), bars).groups(PLAIN)]
    assert found == [
        Group("a_message decode", (("flexwire", 100), ("kio", 25))),
        Group("another decode", (("flexwire", 100),)),
    ]


@pytest.mark.parametrize(
    ("heading", "row", "column"),
    [("Next", "large", "a second"), ("Columns", "huge", "a second"), ("Columns", "large", "an")],
)
def test_a_page_without_the_figure_is_an_error(heading: str, row: str, column: str) -> None:
    with pytest.raises(ValueError, match="expected a"):
        [*plot(heading, (row,), ((column, "bar"),)).groups(MARKED)]


def test_bars_are_as_long_as_their_figures() -> None:
    drawn = picture("a & b", [Group("one", (("x", 10), ("y", 2.5))), Group("two", (("x", 5),))])
    widths = [float(one) for one in re.findall(r'width="([\d.]+)" height="10"/>', drawn)[2:]]
    assert widths == [widths[0], widths[0] / 4, widths[0] / 2]
    assert "<title>a &amp; b</title><desc>one: x 10, y 2.5; two: x 5.0</desc>" in drawn


@pytest.mark.parametrize("one", PLOTS, ids=lambda one: one.name)
def test_the_page_shows_each_plot_in_its_section(one: Plot) -> None:
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {one.heading}\n")[2]
    assert f"](images/{one.path.name})" in section.partition("\n## ")[0]
