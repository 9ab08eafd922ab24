"""What the facts say of captures that hold a part of the connections, or of their frames."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.facts.units import plural, share_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHARES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Sampled:
    """Capture files that hold a ``share`` of all connections, above 0, and how many they are.

    With ``only`` they hold some of these connections' frames: in words, those of which APIs, client
    ids and topics.
    """

    share: float
    files: int
    only: str = ""

    @property
    def told(self) -> str:
        """Of what they hold which part, in words.

        >>> Sampled(0.1, 1).told, Sampled(1.0, 1, "topics orders").told
        ('10 % of all connections', 'of all frames only those of topics orders')
        """
        share = f"{share_text(self.share)} of all connections"
        if not self.only:
            return share
        frames = f"frames only those of {self.only}"
        return f"of all {frames}" if self.share == 1 else f"{share}, and of their {frames}"


def sampled_files(parts: Iterable[tuple[float, str]]) -> tuple[Sampled, ...]:
    """The files of each share and filter, the smallest share first, and of many the smallest."""
    every = sorted(Counter(parts).items())
    return tuple(Sampled(share, files, only) for (share, only), files in every[:_SHARES_SHOWN])


_SHARE: Final = "share_of_connections"
_ONLY: Final = "only_frames_of"


def part_columns(sampled: Iterable[Sampled]) -> dict[str, float | str]:
    """What rows that are sent round say in columns of their own: which part of all they are about.

    The smallest share of connections that any capture holds, and which frames; nothing where all
    hold all.

    >>> part_columns([Sampled(0.1, 2), Sampled(0.5, 1)]), part_columns([])
    ({'share_of_connections': 0.1}, {})
    >>> part_columns([Sampled(1.0, 2, "topics orders")])
    {'only_frames_of': 'topics orders'}
    """
    given = list(sampled)
    share = min((one.share for one in given), default=1.0)
    only = " | ".join(dict.fromkeys(one.only for one in given if one.only))
    said: dict[str, float | str] = {_SHARE: share} if share < 1 else {}
    return said | ({_ONLY: only} if only else {})


def sampled_notes(sampled: Iterable[Sampled]) -> tuple[str, ...]:
    """What a user should hear of them.

    >>> sampled_notes([Sampled(0.1, 2)])[0][:45]
    '2 captures hold 10 % of all connections: coun'
    """
    return tuple(
        f"{plural(one.files, 'capture')} {'holds' if one.files == 1 else 'hold'} "
        f"{one.told}: counts, bytes, the audit and all answers "
        "are about these alone."
        for one in sampled
    )
