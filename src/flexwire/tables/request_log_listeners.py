"""The listeners that lines of request logs name, counted: so many of them, and the rest as one.

A log may be anybody's, and name as many as it likes. Which ones are kept does not depend on how the
lines were cut into tasks: those that come first in the alphabet.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_LISTENERS: Final = 1_000
"""So many are told apart; a cluster has a handful."""
LONGEST_NAME: Final = 200
"""Of a longer name so many characters are kept."""

Listener: TypeAlias = tuple[str | None, str | None]
"""A listener's name and its security protocol; None where a line does not say them."""


@dataclass(slots=True)
class Listeners:
    """Requests by listener, and the fetches of replicas among them.

    ``beyond`` are the requests to listeners that are too many to be told apart.
    """

    requests: Counter[Listener] = field(default_factory=Counter)
    replicas: Counter[Listener] = field(default_factory=Counter)
    beyond: int = 0

    def add(self, listeners: Iterable[Listener]) -> None:
        """Count a request of each."""
        self.requests.update(map(_shortened, listeners))
        self._prune()

    def add_replicas(self, listener: Listener, fetches: int) -> None:
        """Count fetches of replicas among the requests that were counted."""
        name = _shortened(listener)
        if name in self.requests:
            self.replicas[name] += fetches

    def merge(self, other: Listeners) -> None:
        """Take in what others counted."""
        self.requests.update(other.requests)
        self.replicas.update(other.replicas)
        self.beyond += other.beyond
        self._prune()

    def _prune(self) -> None:
        if len(self.requests) > MOST_LISTENERS:
            for one in sorted(self.requests, key=_order)[MOST_LISTENERS:]:
                self.beyond += self.requests.pop(one)
                self.replicas.pop(one, None)


def _shortened(listener: Listener) -> Listener:
    name, protocol = listener
    return _short(name), _short(protocol)


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}…"


def _order(listener: Listener) -> tuple[tuple[bool, str], ...]:
    return tuple((one is not None, one or "") for one in listener)
