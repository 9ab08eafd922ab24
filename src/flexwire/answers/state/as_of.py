"""The moment that state is asked of, as a caller gives it: a time, or offsets of logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from flexwire.arguments import refuse, to_int
from flexwire.logs.files import Partition, parse_directory
from flexwire.protocol.internal_topics import InternalTopic

if TYPE_CHECKING:
    from collections.abc import Sequence

Moment: TypeAlias = datetime | Mapping[str, int]
"""A time with a time zone, or for partitions of internal topics before which offset it is."""

_TOPICS: Final = frozenset(one.topic for one in InternalTopic)
_OFFSET: Final = re.compile(r"([^=]+)=([0-9]{1,18})")
_EXPECTED: Final = (
    "a datetime with a time zone, or offsets by partitions of internal topics, as "
    '{"__consumer_offsets-3": 17}'
)


@dataclass(frozen=True, slots=True)
class AsOf:
    """A moment: before the first record that is later than ``time``, or before these ``offsets``.

    Neither is the end of each log. Of partitions that ``offsets`` does not name it is the end too.

    >>> AsOf.given({"__cluster_metadata-0": 186}).told
    'offset 186 of __cluster_metadata-0'
    """

    time: datetime | None = None
    offsets: Mapping[Partition, int] = field(default_factory=dict)

    @classmethod
    def given(cls, moment: Moment) -> AsOf:
        """Take a moment; `ArgumentError` for what is not one."""
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            try:
                return cls(moment.astimezone(UTC))
            except OverflowError:
                # In UTC it is before the year 1, or after 9999.
                raise refuse("as_of", _EXPECTED, moment) from None
        if not isinstance(moment, Mapping) or not moment:
            raise refuse("as_of", _EXPECTED, moment)
        offsets = {}
        for name, offset in moment.items():
            partition = parse_directory(name, is_tiered=False) if isinstance(name, str) else None
            if partition is None or partition.topic not in _TOPICS or partition in offsets:
                raise refuse("as_of", _EXPECTED, moment)
            offsets[partition] = to_int(offset, "as_of", least=0)
        return cls(None, offsets)

    @property
    def told(self) -> str:
        """The moment in words; empty where it is the end."""
        if self.time is not None:
            return f"{self.time.astimezone(UTC).replace(tzinfo=None).isoformat(' ')} UTC"
        named = (f"offset {at} of {one}" for one, at in sorted(self.offsets.items()))
        return ", ".join(named)

    def of(self, topic: InternalTopic) -> dict[int, int]:
        """The offsets that are given for partitions of a topic."""
        named = self.offsets.items()
        return {one.partition: at for one, at in named if one.topic == topic.topic}


END: Final = AsOf()


def moment_of(given: Moment | None) -> AsOf:
    """Take a moment, or None for the end; `ArgumentError` for what is not one."""
    return END if given is None else AsOf.given(given)


def parse_moment(texts: Sequence[str]) -> Moment | None:
    """Read what a command was given: one time, or offsets; None where there is nothing.

    A time without a zone is UTC. Raises `ArgumentError`.

    >>> parse_moment(["2026-11-22T10:00Z"])
    datetime.datetime(2026, 11, 22, 10, 0, tzinfo=datetime.timezone.utc)
    >>> parse_moment(["__consumer_offsets-3=17", "__consumer_offsets-4=0"])
    {'__consumer_offsets-3': 17, '__consumer_offsets-4': 0}
    """
    if not texts:
        return None
    named = [_OFFSET.fullmatch(one) for one in texts]
    offsets = {one[1]: int(one[2]) for one in named if one is not None}
    if len(offsets) == len(texts):
        AsOf.given(offsets)
        return offsets
    try:
        [text] = texts
        time = datetime.fromisoformat(text)
    except ValueError:
        expected = "one ISO 8601 time, or TOPIC-PARTITION=OFFSET of internal topics, each once"
        raise refuse("as_of", expected, " ".join(texts)) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
