"""What the facts say of captures that hold a part of the frames, or tags that a tap added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.facts.units import count, plural, share_text

if TYPE_CHECKING:
    from collections.abc import Iterable


_SHARES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class SampledCaptures:
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


def sampled_files(parts: Iterable[tuple[float, str]]) -> tuple[SampledCaptures, ...]:
    """The files of each share and filter, the smallest share first, and of many the smallest."""
    every = sorted(Counter(parts).items())
    return tuple(
        SampledCaptures(share, files, only) for (share, only), files in every[:_SHARES_SHOWN]
    )


_SHARE: Final = "share_of_connections"
_ONLY: Final = "only_frames_of"


def part_columns(sampled: Iterable[SampledCaptures]) -> dict[str, float | str]:
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


def sampled_notes(sampled: Iterable[SampledCaptures]) -> tuple[str, ...]:
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


MOST_SHOWN: Final = 20
"""So many different sets of tags have facts of their own."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class StampedCaptures:
    """How many capture files are of taps that add these header tags, and the first of them."""

    tags: tuple[int, ...]
    files: int
    first: tuple[str, ...]

    @property
    def told(self) -> str:
        """Which tags they added, and the names of the files.

        >>> print(StampedCaptures((10042, 10043), 5, ("a", "b", "c")).told)
        header tags 10042, 10043: a, b, c and 2 more
        """
        tags = f"header tag{'s' * (len(self.tags) > 1)} {', '.join(map(str, self.tags))}"
        others = self.files - len(self.first)
        return f"{tags}: {', '.join(self.first)}{f' and {count(others)} more' * bool(others)}"


@dataclass(frozen=True, slots=True)
class AddedTags:
    """The captures of taps that added header tags: of ``files`` the most that added the same ones.

    They have what clients sent, without these tags. What was captured beyond such a tap has them,
    as if clients had sent them. A capture that says nothing may be of a tap that is too old to.
    """

    captures: tuple[StampedCaptures, ...] = ()
    files: int = 0

    @property
    def others(self) -> int:
        """How many files are left out of ``captures``."""
        return self.files - sum(one.files for one in self.captures)

    @property
    def told(self) -> tuple[str, ...]:
        """The captures in sentences, and what they mean; nothing where there are none.

        >>> AddedTags((StampedCaptures((10042,), 1, ("tap-0.pcapng",)),), 1).told[0]
        'Captured of a tap that added header tag 10042: tap-0.pcapng.'
        """
        if not self.files:
            return ()
        each = [f"Captured of a tap that added {one.told}." for one in self.captures]
        if self.others:
            each.append(
                f"{plural(self.others, 'more capture')} {'is' if self.others == 1 else 'are'} of "
                "taps that added others."
            )
        return (*each, _MEANING)


NO_ADDED_TAGS: Final = AddedTags()
"""No capture says that its tap added any."""

_MEANING: Final = (
    "These captures have what clients sent, before tags were added. In any other capture such a "
    "tag may be a tap's: a capture that says nothing of it may be from beyond a tap, or of one "
    "that was too old to say so."
)


def added_tags(found: Iterable[tuple[str, tuple[int, ...]]]) -> AddedTags:
    """The files that say which tags were added, by name, summed up: most files first."""
    named: dict[tuple[int, ...], list[str]] = {}
    files: dict[tuple[int, ...], int] = {}
    for name, tags in found:
        if not tags:
            continue
        files[tags] = files.get(tags, 0) + 1
        first = named.setdefault(tags, [])
        if len(first) < _MOST_NAMED:
            first.append(name)
    order = sorted(files, key=lambda tags: (-files[tags], tags))[:MOST_SHOWN]
    captures = (StampedCaptures(tags, files[tags], tuple(named[tags])) for tags in order)
    return AddedTags(tuple(captures), sum(files.values()))
