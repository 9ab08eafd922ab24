"""How Kafka replays `__share_group_state` and `__transaction_state`, with random logs of both.

`Shares` is the share coordinator of 4.0 to 4.4 (`ShareCoordinatorShard.replay`). These releases
agree, except that those before 4.2 do not store a delivery complete count. `Transactions` is how
3.9 to 4.4 load transactions (`TransactionStateManager.loadTransactionMetadata`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from flexwire.codec import message
from tests.spark.internal_topics.made import keyed

if TYPE_CHECKING:
    import random

Batch: TypeAlias = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""
Fates: TypeAlias = dict[int, tuple[int, int]]
"""By offset: delivery count and state. The greater holds."""

SNAPSHOT, UPDATE = "ShareSnapshot", "ShareUpdate"
UNSAID: Final = -1
SHARES: Final = 6
EMPTY: Final = 0
STATES: Final = range(8)


def fates(before: Fates, batches: list[Batch], start: int) -> Fates:
    """Combine batches with the earlier ones, and drop those below the start."""
    found = dict(before)
    for first, last, state, count in batches:
        for offset in range(first, last + 1):
            found[offset] = max(found.get(offset, (0, 0)), (count, state))
    return {offset: fate for offset, fate in found.items() if offset >= start}


@dataclass
class Share:
    """A share partition. ``is_odd`` means that no coordinator writes such records."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start: int
    done: int
    held: Fates
    updates: int = 0
    is_odd: bool = False

    @property
    def told(self) -> tuple[Any, ...]:
        epochs = (self.snapshot_epoch, self.state_epoch, self.leader_epoch)
        return (*epochs, self.start, self.done, self.held, self.updates)


@dataclass(frozen=True)
class ShareRecord:
    """A snapshot or update of a share partition; a missing value means a tombstone."""

    group: str
    is_snapshot: bool
    value: dict[str, Any] | None

    def encoded(self) -> tuple[bytes, bytes | None]:
        name = SNAPSHOT if self.is_snapshot else UPDATE
        of: Any = message(f"{name}Value")
        value = self.value
        if value is not None:
            fields = ("first_offset", "last_offset", "delivery_state", "delivery_count")
            batches = [
                of.StateBatch(**dict(zip(fields, one, strict=True)))
                for one in value["state_batches"]
            ]
            value = value | {"state_batches": batches}
        key = {"group_id": self.group, "partition": 0}
        return keyed(0 if self.is_snapshot else 1, name, key, value)


def replay_share(known: dict[str, Share], record: ShareRecord) -> None:
    value, before = record.value, known.get(record.group)
    if value is None:
        known.pop(record.group, None)
        return
    start, leader = value["start_offset"], value["leader_epoch"]
    done, batches = value["delivery_complete_count"], value["state_batches"]
    if record.is_snapshot or before is None:
        known[record.group] = Share(
            value["snapshot_epoch"],
            value.get("state_epoch", 0),
            leader,
            start,
            done,
            fates({}, batches, start),
            is_odd=not record.is_snapshot,
        )
        return
    before.is_odd |= value["snapshot_epoch"] != before.snapshot_epoch
    before.is_odd |= start != UNSAID and start < before.start
    before.start = before.start if start == UNSAID else start
    before.leader_epoch = before.leader_epoch if leader == UNSAID else leader
    before.done = done
    before.held = fates(before.held, batches, before.start)
    before.updates += 1


def share_log(drawn: random.Random, name: str, count: int) -> list[ShareRecord]:
    """Draw a log. One of its share partitions contains records that no coordinator writes."""
    known: dict[str, Share] = {}
    log: list[ShareRecord] = []
    while len(log) < count:
        number = drawn.randrange(SHARES)
        group = f"{name}-{number}"
        record = _share_record(drawn, group, known.get(group), is_wild=not number)
        replay_share(known, record)
        log.append(record)
    return log


def _share_record(
    drawn: random.Random, group: str, there: Share | None, *, is_wild: bool
) -> ShareRecord:
    what = drawn.choice(["snapshot", "update", "update", "update", "delete"])
    is_snapshot = what == "snapshot" or (there is None and not is_wild)
    if what == "delete" and there is not None:
        return ShareRecord(group, is_snapshot=True, value=None)
    last = max(there.start if there else UNSAID, 0)
    start = drawn.choice([UNSAID, last, last + drawn.randrange(4)])
    epoch = there.snapshot_epoch if there else UNSAID
    if is_wild and drawn.random() < 0.1:
        start, epoch = drawn.choice([(drawn.randrange(9), epoch), (start, epoch + 1)])
    firsts = [last + drawn.randrange(12) for _ in range(drawn.randrange(4))]
    batches = [
        (first, first + drawn.randrange(6), drawn.choice([0, 2, 4]), drawn.randrange(1, 4))
        for first in firsts
    ]
    value = {
        "snapshot_epoch": epoch,
        "leader_epoch": drawn.choice([UNSAID, drawn.randrange(9)]),
        "start_offset": start,
        "delivery_complete_count": drawn.choice([UNSAID, drawn.randrange(9)]),
        "state_batches": batches,
    }
    if is_snapshot:
        # A snapshot's own batches do not overlap, and all are above its start.
        held = sorted(fates({}, batches, start).items())
        value["state_batches"] = [(at, at, state, count) for at, (count, state) in held]
        value |= {"snapshot_epoch": epoch + 1, "state_epoch": drawn.randrange(9)}
    return ShareRecord(group, is_snapshot, value)


@dataclass
class Transactions:
    """The transactional ids of a coordinator, with the last value of each."""

    by_id: dict[str, dict[str, Any]] = field(default_factory=dict)

    def replay(self, name: str, value: dict[str, Any] | None) -> None:
        if value is None:
            self.by_id.pop(name, None)
        else:
            self.by_id[name] = value


TransactionRecord: TypeAlias = tuple[str, dict[str, Any] | None, int]
"""A transactional id, its value or None for a tombstone, and the value's version."""


def transaction_log(drawn: random.Random, name: str, count: int) -> list[TransactionRecord]:
    """Draw a log of states in any order, as after compaction, in both versions."""
    log: list[TransactionRecord] = []
    for at in range(count):
        state = drawn.choice(STATES)
        topics = (
            {} if state == EMPTY else {f"t{one}": [3, one] for one in range(drawn.randrange(3))}
        )
        value: dict[str, Any] = {
            "producer_id": drawn.randrange(9),
            "producer_epoch": drawn.randrange(2**15),
            "transaction_timeout_ms": drawn.randrange(2**31),
            "transaction_status": state,
            "transaction_partitions": None if state == EMPTY else topics,
            "transaction_start_timestamp_ms": drawn.choice([UNSAID, at]),
            "transaction_last_update_timestamp_ms": at,
        }
        number = drawn.randrange(SHARES)
        log.append((f"{name}-{number}", drawn.choice([None, value, value]), drawn.randrange(2)))
    return log


def encoded_transaction(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    name, value, version = record
    of: Any = message("TransactionLogValue")
    if value is not None and value["transaction_partitions"] is not None:
        some = value["transaction_partitions"].items()
        parts = [of.PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in some]
        value = value | {"transaction_partitions": parts}
    return keyed(0, "TransactionLog", {"transactional_id": name}, value, version)
