"""What the facts say of captures that hold a part of the connections."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.report.units import plural, share_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHARES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Sampled:
    """Capture files that hold a ``share`` of all connections, above 0 and below 1, and how many."""

    share: float
    files: int


def sampled_files(shares: Iterable[float]) -> tuple[Sampled, ...]:
    """The files of each share, the smallest share first, and of many shares the smallest."""
    every = sorted(Counter(shares).items())
    return tuple(Sampled(share, files) for share, files in every[:_SHARES_SHOWN])


SHARE_COLUMN: Final = "share_of_connections"
"""What rows that are sent round say in a column of their own: which part of all they are about."""


def least_share(sampled: Iterable[Sampled]) -> float | None:
    """The smallest share that any capture holds; None where all hold all connections.

    >>> least_share([Sampled(0.1, 2), Sampled(0.5, 1)]), least_share([])
    (0.1, None)
    """
    return min((one.share for one in sampled), default=None)


def sampled_notes(sampled: Iterable[Sampled]) -> tuple[str, ...]:
    """What a user should hear of them.

    >>> sampled_notes([Sampled(0.1, 2)])[0][:45]
    '2 captures hold 10 % of all connections: coun'
    """
    return tuple(
        f"{plural(one.files, 'capture')} {'holds' if one.files == 1 else 'hold'} "
        f"{share_text(one.share)} of all connections: counts, bytes, the audit and all answers "
        "are about these alone."
        for one in sampled
    )
