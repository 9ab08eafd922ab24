"""Decide which connections to forget: those that are over, idle, or beyond a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.capture.reassembly.assembly import KeyActivity

OVER_US: Final = 300_000_000
"""A closed connection is forgotten after five minutes of capture time."""
IDLE_US: Final = 86_400_000_000
"""A connection that was not closed is forgotten one day after its last segment."""
MOST_PAUSED: Final = 100_000
"""The largest number of endpoint pairs that continue when a capture pauses. The most recently used
pairs are kept.
"""


def keys_over(activities: Mapping[str, KeyActivity]) -> set[str]:
    """Return the keys whose connections are dropped when a capture pauses."""
    if not activities:
        return set()
    times = sorted(activity.last_us for activity in activities.values())
    # The median is used because a single time may be damaged.
    now_us, least_us = times[len(times) // 2], times[-MOST_PAUSED:][0]
    return {
        key
        for key, activity in activities.items()
        if is_idle(activity, now_us) or activity.last_us < least_us
    }


def is_idle(activity: KeyActivity, now_us: int) -> bool:
    """Return whether all connections of a key are forgotten at the time ``now_us``."""
    return now_us - activity.last_us >= (OVER_US if activity.is_over else IDLE_US)
