"""An SVG badge with the number of cases in which a broker answered like Apache Kafka.

The badge repeats the run's claim without adding to it. It shows no date, so that two runs with the
same result have the same badge. The badge requires no font and no other file: ``textLength`` fits
the text into the badge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from flexwire.printable import printable

if TYPE_CHECKING:
    from flexwire.conformance.runs import ConformanceRun

_SUBJECT: Final = "Kafka protocol"
_HEIGHT: Final = 20
_CHARACTER: Final = 6.2
"""The approximate width of a character at a font size of 11 pixels."""
_MARGIN: Final = 6
_ALL, _NOT_ALL, _LEFT = "#2e6b3a", "#8a5a00", "#444"
"""Colors on which white text is readable (contrast above 5)."""


def to_badge(run: ConformanceRun) -> str:
    """Return the badge of a run: its claim, shown in green if it holds in all judged cases."""
    claim = printable(run.claim)
    colour = _ALL if 0 < run.judged == run.as_kafka else _NOT_ALL
    left, right = (round(len(text) * _CHARACTER) + 2 * _MARGIN for text in (_SUBJECT, claim))
    size = f'width="{left + right}" height="{_HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(f'{_SUBJECT}: {claim}')}</title>",
        f'<rect width="{left}" height="{_HEIGHT}" fill="{_LEFT}"/>',
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{colour}"/>',
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
        _text(_SUBJECT, 0, left),
        _text(claim, left, right),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(text: str, start: int, width: int) -> str:
    length = width - 2 * _MARGIN
    return f'<text x="{start + _MARGIN}" y="14" textLength="{length}">{escape(text)}</text>'
