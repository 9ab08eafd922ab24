"""Decides which connections are forgotten: those that are over or idle, and those above a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.capture.reassembly.assembly import KeyActivity

OVER_US: Final = 300_000_000
"""A closed connection is forgotten five minutes of capture time later."""
IDLE_US: Final = 86_400_000_000
"""A connection that was not closed is forgotten a day after its last segment."""
MOST_PAUSED: Final = 100_000
"""At most this many pairs of ends continue where a capture pauses: the last used ones."""


def keys_over(activities: Mapping[str, KeyActivity]) -> set[str]:
    """Return the keys whose connections are dropped where a capture pauses."""
    if not activities:
        return set()
    times = sorted(activity.last_us for activity in activities.values())
    # The time that most of them have is used, because one time may be damaged.
    now_us, least_us = times[len(times) // 2], times[-MOST_PAUSED:][0]
    return {
        key
        for key, activity in activities.items()
        if is_idle(activity, now_us) or activity.last_us < least_us
    }


def is_idle(activity: KeyActivity, now_us: int) -> bool:
    """Return whether all connections of a key are forgotten by the time ``now_us``."""
    return now_us - activity.last_us >= (OVER_US if activity.is_over else IDLE_US)
