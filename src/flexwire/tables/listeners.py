"""The number of requests to each listener, by the listener's name in request logs.

A log is untrusted and can contain any number of names. Only the first names in alphabetical order
are kept, so that the result does not depend on how the lines are divided among tasks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_LISTENERS: Final = 1_000
"""At most this many listeners are counted separately; a cluster has a handful."""
LONGEST_NAME: Final = 200
"""Longer names are cut to this many characters."""

Listener: TypeAlias = tuple[str | None, str | None]
"""The name and the security protocol of a listener, or None if a line lacks them."""


@dataclass(slots=True)
class ListenerCounts:
    """The number of requests by listener, and the number of replica fetches among them.

    ``beyond`` counts the requests to all other listeners.
    """

    requests: Counter[Listener] = field(default_factory=Counter)
    replicas: Counter[Listener] = field(default_factory=Counter)
    beyond: int = 0

    def add(self, listeners: Iterable[Listener]) -> None:
        """Count one request for each listener."""
        self.requests.update(map(_shortened, listeners))
        self._prune()

    def add_replicas(self, listener: Listener, fetches: int) -> None:
        """Count replica fetches, which were already counted as requests."""
        name = _shortened(listener)
        if name in self.requests:
            self.replicas[name] += fetches

    def merge(self, other: ListenerCounts) -> None:
        """Add the counts of another task."""
        self.requests.update(other.requests)
        self.replicas.update(other.replicas)
        self.beyond += other.beyond
        self._prune()

    def _prune(self) -> None:
        if len(self.requests) > MOST_LISTENERS:
            for listener in sorted(self.requests, key=_order)[MOST_LISTENERS:]:
                self.beyond += self.requests.pop(listener)
                self.replicas.pop(listener, None)


def _shortened(listener: Listener) -> Listener:
    name, protocol = listener
    return _short(name), _short(protocol)


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}…"


def _order(listener: Listener) -> tuple[tuple[bool, str], ...]:
    return tuple((word is not None, word or "") for word in listener)
