"""A bar's label and value are within the bar's row, on wide and on narrow screens."""

from __future__ import annotations

import re

from flexwire.report.charts import Bar, bars

ROWS = [Bar("first", (3.0, 1.0), "4 requests"), Bar("second", (0.5,), "a half")]


def test_the_value_stands_beside_its_bar() -> None:
    chart = bars("two bars", ROWS)
    for drawn in (chart.wide, chart.narrow):
        tops = {
            (float(top), float(height))
            for top, height in re.findall(r'<rect [^>]*\by="([\d.]+)"[^>]*height="([\d.]+)"', drawn)
        }
        assert len(tops) == len(ROWS)
        places = {
            text: float(y)
            for y, text in re.findall(r'<text [^>]*\by="(-?[\d.]+)"[^>]*>([^<]*)<', drawn)
        }
        for row, (top, height) in zip(ROWS, sorted(tops), strict=True):
            assert top < places[row.value] <= top + height
            # On a narrow screen, the label is above the bar.
            assert places[row.label] <= top + height
