"""Facts about captures that contain only some of the frames, or whose tap added header tags."""

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
    """Capture files that contain a ``share`` (above 0) of all connections, and the number of files.

    If ``only`` is not empty, the files contain only some frames of these connections: those of the
    APIs, client ids and topics in ``only``.
    """

    share: float
    files: int
    only: str = ""

    @property
    def sentence(self) -> str:
        """The part of the traffic that these files contain, in words.

        >>> SampledCaptures(0.1, 1).sentence, SampledCaptures(1.0, 1, "topics orders").sentence
        ('10 % of all connections', 'only the frames of topics orders')
        """
        share = f"{share_text(self.share)} of all connections"
        if not self.only:
            return share
        frames = f"only the frames of {self.only}"
        return frames if self.share == 1 else f"{share}, and in these connections {frames}"


def sampled_files(parts: Iterable[tuple[float, str]]) -> tuple[SampledCaptures, ...]:
    """Return the files for each share and filter, the smallest share first, up to a limit."""
    every = sorted(Counter(parts).items())
    return tuple(
        SampledCaptures(share, files, only) for (share, only), files in every[:_SHARES_SHOWN]
    )


_SHARE: Final = "share_of_connections"
_ONLY: Final = "only_frames_of"


def part_columns(sampled: Iterable[SampledCaptures]) -> dict[str, float | str]:
    """Return columns that show which part of the traffic some rows describe.

    The columns contain the smallest share of connections in any capture, and the kept frames. The
    result is empty if all captures are complete.

    >>> part_columns([SampledCaptures(0.1, 2), SampledCaptures(0.5, 1)]), part_columns([])
    ({'share_of_connections': 0.1}, {})
    >>> part_columns([SampledCaptures(1.0, 2, "topics orders")])
    {'only_frames_of': 'topics orders'}
    """
    captures = list(sampled)
    share = min((captured.share for captured in captures), default=1.0)
    only = " | ".join(dict.fromkeys(captured.only for captured in captures if captured.only))
    said: dict[str, float | str] = {_SHARE: share} if share < 1 else {}
    return said | ({_ONLY: only} if only else {})


def sampled_notes(sampled: Iterable[SampledCaptures]) -> tuple[str, ...]:
    """Return notes for the user about captures that contain only part of the traffic.

    >>> sampled_notes([SampledCaptures(0.1, 2)])[0][:69]
    '2 captures contain only part of the traffic: 10 % of all connections.'
    """
    return tuple(
        f"{plural(captured.files, 'capture')} {'contains' if captured.files == 1 else 'contain'} "
        f"only part of the traffic: {captured.sentence}. Counts, bytes, the audit and all answers "
        "cover only this part."
        for captured in sampled
    )


MOST_SHOWN: Final = 20
"""The maximum number of different sets of tags that are described separately."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class StampedCaptures:
    """Capture files of taps that add the same header tags, with the name of the first file."""

    tags: tuple[int, ...]
    files: int
    first: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The tags that the taps added, and the names of the files.

        >>> print(StampedCaptures((10042, 10043), 5, ("a", "b", "c")).sentence)
        header tags 10042, 10043: a, b, c and 2 more
        """
        tags = f"header tag{'s' * (len(self.tags) > 1)} {', '.join(map(str, self.tags))}"
        others = self.files - len(self.first)
        return f"{tags}: {', '.join(self.first)}{f' and {count(others)} more' * bool(others)}"


@dataclass(frozen=True, slots=True)
class AddedTags:
    """The captures of taps that added header tags.

    ``captures`` contains the most frequent sets of tags. The captures contain the requests as
    clients sent them, without these tags. If traffic was captured behind such a tap, its requests
    contain the tags as if clients had sent them. If a capture does not list added tags, its tap may
    be too old to record them.
    """

    captures: tuple[StampedCaptures, ...] = ()
    files: int = 0

    @property
    def others(self) -> int:
        """The number of files that ``captures`` leaves out."""
        return self.files - sum(capture.files for capture in self.captures)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about the captures and their meaning, or none if there are no such captures.

        >>> AddedTags((StampedCaptures((10042,), 1, ("tap-0.pcapng",)),), 1).sentences[0]
        'Captured from a tap that added header tag 10042: tap-0.pcapng.'
        """
        if not self.files:
            return ()
        each = [f"Captured from a tap that added {capture.sentence}." for capture in self.captures]
        if self.others:
            each.append(
                f"{plural(self.others, 'more capture')} {'is' if self.others == 1 else 'are'} from "
                "taps that added other tags."
            )
        return (*each, _MEANING)


NO_ADDED_TAGS: Final = AddedTags()
"""The result if no capture records that its tap added tags."""

_MEANING: Final = (
    "These captures contain the requests as clients sent them, without the added tags. In all "
    "other captures, such a tag may have been added by a tap: the capture may have been made "
    "between a tap and the brokers, or by an old tap that does not record the tags that it adds."
)


def added_tags(stamps: Iterable[tuple[str, tuple[int, ...]]]) -> AddedTags:
    """Return summaries of the files whose taps added tags, starting with the most frequent set."""
    named: dict[tuple[int, ...], list[str]] = {}
    files: dict[tuple[int, ...], int] = {}
    for name, tags in stamps:
        if not tags:
            continue
        files[tags] = files.get(tags, 0) + 1
        first = named.setdefault(tags, [])
        if len(first) < _MOST_NAMED:
            first.append(name)
    order = sorted(files, key=lambda tags: (-files[tags], tags))[:MOST_SHOWN]
    captures = (StampedCaptures(tags, files[tags], tuple(named[tags])) for tags in order)
    return AddedTags(tuple(captures), sum(files.values()))
