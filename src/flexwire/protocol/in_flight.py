"""What waits on one connection for its counterpart, by correlation id.

A response says nothing of its request but the correlation id, and a client may use one again. Of
several that wait under one id the oldest goes first, since a broker answers the requests of a
connection in order. Some are never answered, so beyond a bound the one that waits longest gives up.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_IN_FLIGHT: Final = 10_000
"""Clients keep a handful of requests in flight; the bound is for those that never get an answer."""

T = TypeVar("T")


class InFlight(Generic[T]):
    """Items by correlation id, in the order in which they came, at most so many.

    One more than ``most`` removes the oldest of all, which is counted in ``forgotten``. What has
    no correlation id waits under None.
    """

    def __init__(self, most: int = DEFAULT_IN_FLIGHT) -> None:
        self.most = most
        self.forgotten = 0
        self._serial = 0
        # Serial numbers keep the order of arrival over all correlation ids.
        self._waiting: dict[int, tuple[int | None, T]] = {}
        self._serials: dict[int | None, deque[int]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        """What waits, the oldest first."""
        return (item for _, item in self._waiting.values())

    @property
    def oldest_id(self) -> int | None:
        """The correlation id of what waits longest; None when nothing waits."""
        return next((one for one, _ in self._waiting.values()), None)

    def add(self, correlation_id: int | None, item: T) -> None:
        """Let an item wait."""
        if len(self._waiting) >= self.most:
            self.forgotten += 1
            self.take(next(iter(self._waiting.values()))[0])
        self._serial += 1
        self._waiting[self._serial] = correlation_id, item
        self._serials.setdefault(correlation_id, deque()).append(self._serial)

    def first(self, correlation_id: int | None) -> T | None:
        """The oldest item under the id, which goes on waiting; None if nothing waits there."""
        serials = self._serials.get(correlation_id)
        return self._waiting[serials[0]][1] if serials else None

    def take(self, correlation_id: int | None) -> T | None:
        """The oldest item under the id, which waits no more; None if nothing waits there."""
        serials = self._serials.get(correlation_id)
        if not serials:
            return None
        serial = serials.popleft()
        if not serials:
            del self._serials[correlation_id]
        return self._waiting.pop(serial)[1]
