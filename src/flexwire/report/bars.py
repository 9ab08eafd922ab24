"""Bars as SVG, written out: an engine takes a quarter of a second for each picture.

Colours are the keys of `charts.INK`, as in all pictures.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from flexwire.report.charts import INK, PARTS, Chart, Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.report.charts import Bar

# A label names all that tells rows apart, so on a wide screen it needs more room than an API.
_WIDE: Final = Size(1060, 400, 0)
_NARROW: Final = Size(350, 0, 0)
_STEP, _TALL_STEP, _THICK, _THIN = 27, 42, 19, 15
_LETTER: Final = 7
"""About the width of a letter; the reader's font is not known here."""


def bars(summary: str, rows: Sequence[Bar]) -> Chart:
    """The bars in order, for a wide screen with labels beside them, for a narrow one above."""
    return Chart(_svg(rows, _WIDE), _svg(rows, _NARROW), summary)


def _svg(rows: Sequence[Bar], size: Size) -> str:
    longest = max(sum(row.parts) for row in rows)
    room = 14 + _LETTER * max(len(row.value) for row in rows)
    scale = (size.width - size.labels - room) / longest
    step = _STEP if size.labels else _TALL_STEP
    drawn = [_row(row, number * step, scale, size) for number, row in enumerate(rows)]
    return f'<svg viewBox="0 0 {size.width} {step * len(rows)}">{"".join(drawn)}</svg>'


def _row(bar: Bar, top: float, scale: float, size: Size) -> str:
    if size.labels:
        label = _text(bar.label, size.labels - 10, top + 17, size.labels - 10, "end")
        high, thick = top + 4, _THICK
    else:
        label = _text(bar.label, 0, top + 15, size.width)
        high, thick = top + 21, _THIN
    at, parts = float(size.labels), []
    for part, ink in zip(bar.parts, PARTS, strict=False):
        width = part * scale
        place = f'x="{at:.1f}" y="{high}" width="{width:.1f}" height="{thick}"'
        parts.append(f'<rect {place} fill="{INK[ink]}"/>')
        at += width
    value = _text(bar.value, at + 7, high + thick - 4.5, size.width)
    return f"{label}{''.join(parts)}{value}"


def _text(text: str, x: float, y: float, room: float, anchor: str = "start") -> str:
    letters = int(room / _LETTER)
    shown = text if len(text) <= letters else f"{text[: letters - 1]}\u2026"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="12.5" fill="{INK["text"]}">{escape(shown)}</text>'
