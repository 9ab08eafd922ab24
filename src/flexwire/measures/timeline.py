"""The slices that the report draws traffic over time in."""

from __future__ import annotations

_SLICES = 120
# Slices of time that people count in, from a millisecond to a day.
_WIDTHS_US = [
    step * unit
    for unit, steps in (
        (1_000, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000_000, (1, 2, 5, 10, 15, 30)),
        (60_000_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000_000, (1, 2, 3, 6, 12, 24)),
    )
    for step in steps
]


def bucket_us(span_us: int) -> int:
    """Give how long a slice of a capture is, of which the last frame is so long after the first.

    There are about 120; captures of months are drawn in as many days as there are.

    >>> bucket_us(0), bucket_us(3_600_000_000)
    (1000, 60000000)
    """
    return next((one for one in _WIDTHS_US if one * _SLICES > span_us), _WIDTHS_US[-1])
