"""Every text is readable with the style sheet in light mode, in dark mode and on paper."""

from __future__ import annotations

import re

import pytest

from flexwire.report.charts import INK
from flexwire.report.page_environment import read_template_file

# WCAG 2 requires a contrast of 4.5 for text, and of 3 for parts of pictures.
TEXT = 4.5
SHAPE = 3.0
PAIRS = [
    ("ink", "page", TEXT),
    ("ink", "surface", TEXT),
    ("ink", "soft", TEXT),
    ("muted", "page", TEXT),
    ("muted", "surface", TEXT),
    ("muted", "soft", TEXT),
    ("link", "page", TEXT),
    ("link", "surface", TEXT),
    ("bad-text", "surface", TEXT),
    ("ok-ink", "ok-back", TEXT),
    ("warn-ink", "warn-back", TEXT),
    ("bad-ink", "bad-back", TEXT),
    ("odd-ink", "odd-back", TEXT),
    ("request", "surface", SHAPE),
    ("request", "response", SHAPE),
    ("accent", "surface", SHAPE),
]


def themes() -> list[dict[str, str]]:
    """Return the colors of light mode, dark mode and paper, by name."""
    blocks = re.findall(
        r":root \{(.*?)\}", read_template_file("flexwire.report", "report.css"), flags=re.DOTALL
    )
    return [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in blocks]


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", range(3), ids=["light", "dark", "paper"])
def test_contrast_is_enough(theme: int) -> None:
    colours = themes()[theme]
    low = [
        (one, other, round(contrast(colours[one], colours[other]), 2))
        for one, other, least in PAIRS
        if contrast(colours[one], colours[other]) < least
    ]
    assert low == []


def test_every_theme_gives_a_value_to_every_colour() -> None:
    light, dark, paper = themes()
    assert set(light) == set(dark) == set(paper)
    used = set(
        re.findall(r"var\(--([\w-]+)\)", read_template_file("flexwire.report", "report.css"))
    )
    assert used == set(light)


def test_every_ink_of_the_charts_has_its_colour() -> None:
    style = read_template_file("flexwire.report", "report.css")
    for ink in INK.values():
        assert f'="{ink}"]' in style
