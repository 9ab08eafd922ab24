"""Compute the state of a log as Kafka's offset coordinators do, each in a few lines.

`NewCoordinator` is the coordinator of 4.x, which behaves the same while it runs and when it loads
(`OffsetMetadataManager`, `replay` and `replayEndTransactionMarker`). `OldLoading` is how 3.x loads
a log (`GroupMetadataManager.doLoadGroupsAndOffsets`), and `OldRunning` is its state while it runs
(`GroupMetadata`). The two treat a tombstone within a transaction differently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

Key: TypeAlias = tuple[str, int]
Told: TypeAlias = dict[Key, tuple[int | None, tuple[tuple[int, int], ...]]]
"""The committed offset of each group and partition, and the pending offsets of each producer."""

COMMIT, WITHIN, EXPIRE, REMOVE, END, ABORT = "commit", "within", "expire", "remove", "end", "abort"
TOMBSTONES = (EXPIRE, REMOVE)
MARKERS = (END, ABORT)


@dataclass(frozen=True)
class Event:
    """A record of a log: a commit, a commit within a transaction, a tombstone or a marker.

    If ``is_legacy``, the record's key has the first form, which Kafka reads like the second.
    """

    at: int
    what: str
    key: Key = ("", 0)
    offset: int = -1
    producer: int = -1
    is_legacy: bool = False


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
    """The coordinator of 3.x when it loads: a tombstone does not affect pending commits."""

    def delete(self, event: Event) -> None:
        self.commits.pop(event.key, None)


class OldRunning(NewCoordinator):
    """The coordinator of 3.x while it runs: only a deletion on request forgets everything."""

    def delete(self, event: Event) -> None:
        if event.what == REMOVE:
            super().delete(event)
        else:
            self.commits.pop(event.key, None)


def replayed(coordinator: NewCoordinator, events: Iterable[Event]) -> Told:
    for event in events:
        coordinator.replay(event)
    return coordinator.told()


def compacted(
    events: list[Event], bound: int, drawn: random.Random
) -> tuple[frozenset[int], frozenset[int]]:
    """From a log's events, remove those up to an offset that Kafka's log cleaner may remove.

    Return the offsets of removed events, and of events that leave an empty batch. The cleaner
    keeps the last record of each key, removes the records of aborted transactions, and stops at
    the first record of an open transaction. The cleaner removes a tombstone some time later, and a
    marker once all its records are gone (`Cleaner.cleanInto`).
    """
    started: dict[int, int] = {}
    ends: dict[int, Event] = {}
    for one in reversed(events):
        if one.what in MARKERS:
            started[one.producer] = one.at
        elif one.what == WITHIN and one.producer in started:
            ends[one.at] = events[started[one.producer]]
    open_ones = [one.at for one in events if one.what == WITHIN and one.at not in ends]
    bound = min(bound, *open_ones, len(events))
    aborted = {at for at, end in ends.items() if end.what == ABORT}
    data = [one for one in events[:bound] if one.what not in MARKERS and one.at not in aborted]
    last = {one.key: one.at for one in data}
    gone = {one.at for one in data if last[one.key] != one.at}
    gone |= {at for at in aborted if at < bound}
    gone |= {one.at for one in data if one.what in TOMBSTONES and drawn.random() < 0.7}
    needed = {end.at for at, end in ends.items() if at not in gone}
    markers = [one.at for one in events[:bound] if one.what in MARKERS and one.at not in needed]
    gone |= {at for at in markers if drawn.random() < 0.7}
    emptied = {at for at in gone if drawn.random() < 0.05}
    return frozenset(gone - emptied), frozenset(emptied)
