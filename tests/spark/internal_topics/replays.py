"""What Kafka's coordinators of offsets make of a log, each in a few lines of its own.

`NewCoordinator` is that of 4.x, alike while it runs and when it loads (`OffsetMetadataManager`,
`replay` and `replayEndTransactionMarker`). `OldLoading` is how 3.x loads a log
(`GroupMetadataManager.doLoadGroupsAndOffsets`), and `OldRunning` what it has while it runs
(`GroupMetadata`): these two differ about a tombstone in the middle of a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Key: TypeAlias = tuple[str, int]
Told: TypeAlias = dict[Key, tuple[int | None, tuple[tuple[int, int], ...]]]
"""By group and partition: the committed offset, and by producer what is pending."""

COMMIT, WITHIN, EXPIRE, REMOVE, END, ABORT = "commit", "within", "expire", "remove", "end", "abort"
TOMBSTONES = (EXPIRE, REMOVE)
MARKERS = (END, ABORT)


@dataclass(frozen=True)
class Event:
    """A record of a log: a commit, a commit within a transaction, a tombstone or a marker."""

    at: int
    what: str
    key: Key = ("", 0)
    offset: int = -1
    producer: int = -1


@dataclass
class NewCoordinator:
    """The coordinator of 4.x."""

    commits: dict[Key, tuple[int, int]] = field(default_factory=dict)
    pending: dict[int, dict[Key, tuple[int, int]]] = field(default_factory=dict)

    def replay(self, event: Event) -> None:
        if event.what == COMMIT:
            self.commits[event.key] = event.offset, event.at
        elif event.what == WITHIN:
            mine = self.pending.setdefault(event.producer, {})
            mine[event.key] = event.offset, event.at
        elif event.what in TOMBSTONES:
            self.delete(event)
        else:
            for key, (offset, at) in self.pending.pop(event.producer, {}).items():
                if event.what == END and at > self.commits.get(key, (0, -1))[1]:
                    self.commits[key] = offset, at

    def delete(self, event: Event) -> None:
        self.commits.pop(event.key, None)
        for mine in self.pending.values():
            mine.pop(event.key, None)

    def told(self) -> Told:
        waiting: dict[Key, list[tuple[int, int]]] = {}
        for producer, mine in sorted(self.pending.items()):
            for key, (offset, _) in mine.items():
                waiting.setdefault(key, []).append((producer, offset))
        return {
            key: (self.commits.get(key, (None,))[0], tuple(waiting.get(key, ())))
            for key in {*self.commits, *waiting}
        }


class OldLoading(NewCoordinator):
    """The coordinator of 3.x when it loads: a tombstone leaves what is pending alone."""

    def delete(self, event: Event) -> None:
        self.commits.pop(event.key, None)


class OldRunning(NewCoordinator):
    """The coordinator of 3.x while it runs: only what is deleted on request is forgotten whole."""

    def delete(self, event: Event) -> None:
        if event.what == REMOVE:
            super().delete(event)
        else:
            self.commits.pop(event.key, None)


def replayed(coordinator: NewCoordinator, events: Iterable[Event]) -> Told:
    for event in events:
        coordinator.replay(event)
    return coordinator.told()
