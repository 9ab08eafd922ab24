"""Draw random logs of groups, with all records that Kafka would load for any type of group."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from flexwire.codec import message
from flexwire.protocol.record_types import record_keys
from flexwire.schema.catalog import catalog
from tests.spark.internal_topics.group_replay import (
    CLASSIC,
    CURRENT,
    EPOCH,
    MEMBER,
    OTHERS,
    PARTS,
    TARGET,
    TARGET_EPOCH,
    TYPES,
    Groups,
    Key,
    Refused,
    Value,
)
from tests.spark.internal_topics.made import int16

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

MODULE: Final = "group-coordinator"
GROUPS, MEMBERS = 4, 3
STATIC: Final = -2
"""The epoch of a static member that left temporarily."""


@dataclass(frozen=True)
class Written:
    """A record of the log: its name, its key, and its value, which is None for a tombstone."""

    record: str
    key: Key
    value: Value | None
    version: int = 0

    def encoded(self) -> tuple[bytes, bytes | None]:
        numbers = {name: number for number, (name, _) in record_keys(MODULE).items()}
        name = f"{self.record}Key"
        version = dict(record_keys(MODULE).values())[name]
        key = int16(numbers[name]) + message(name)(**self.key).encode(version)
        if self.value is None:
            return key, None
        of = message(f"{self.record}Value")
        return key, int16(self.version) + _made(of, self.value).encode(self.version)


def _made(of: Any, value: Value) -> Any:
    """Make a message from plain values; nested structures get the class that their list needs."""
    nested = {
        "members": "MemberMetadata",
        "assigned_partitions": "TopicPartitions",
        "active_tasks": "TaskIds",
    }
    fields = {
        name: [getattr(of, nested[name])(**one) for one in given] if name in nested else given
        for name, given in value.items()
    }
    return of(**fields)


@dataclass
class Author:
    """The writer of a log that contains only records that a coordinator would load again."""

    drawn: random.Random
    name: str
    is_mixed: bool = True
    """True if 3.x also wrote records; it replaces groups of other types without deleting them."""
    groups: Groups = field(default_factory=Groups)
    log: list[Written] = field(default_factory=list)

    def write(self, count: int) -> list[Written]:
        """Write at least this many records, and return all of them."""
        while len(self.log) < count:
            group = f"{self.name}-{self.drawn.randrange(GROUPS)}"
            event = self.drawn.choice(
                [self._classic, self._join, self._leave, self._delete, *[self._any] * 4]
            )
            for record, key, value in event(group):
                self._offer(record, key, value)
        return self.log

    def _offer(self, record: str, key: Key, value: Value | None) -> None:
        versions = catalog().entry(f"{record}Value").versions
        version = self.drawn.randint(versions.lowest, versions.highest)
        if record == CLASSIC and value is not None:
            value = _said(value, version)
        after = copy.deepcopy(self.groups)
        try:
            after.replay(record, key, value)
        except Refused:
            return
        self.groups = after
        self.log.append(Written(record, key, value, version))

    def _classic(self, group: str) -> Iterator[tuple[str, Key, Value | None]]:
        """Write a classic group, even over a group of another type as 3.x does, or delete it."""
        there = self.groups.by_id.get(group)
        if not self.is_mixed and there is not None and there.value is None:
            return
        value = {
            "protocol_type": self.drawn.choice(
                ["consumer", "consumer", "connect", ""][: 4 if self.is_mixed else 3]
            ),
            "generation": self.drawn.randrange(9),
            "protocol": "range",
            "current_state_timestamp": self.drawn.choice([-1, 1_700_000_000_000]),
            "members": [
                {
                    "member_id": f"m{number}",
                    "group_instance_id": self.drawn.choice([None, "i"]),
                    "client_id": f"c{self.drawn.randrange(9)}",
                    "client_host": "/h",
                    "rebalance_timeout": self.drawn.randrange(1, 9),
                    "session_timeout": self.drawn.randrange(10, 19),
                }
                for number in range(self.drawn.choice([0, 0, 1, MEMBERS]))
            ],
        }
        yield CLASSIC, {"group": group}, self.drawn.choice([None, value, value])

    def _any(self, group: str) -> Iterator[tuple[str, Key, Value | None]]:
        """Write any record for an existing group, except those that add or remove a member."""
        there = self.groups.by_id.get(group)
        record = self.drawn.choice([*PARTS])
        kind, part = PARTS[record]
        is_there = there is not None and there.kind == kind.lower() and there.has_epoch
        members = sorted(there.members) if there is not None else []
        is_of_member = part in {MEMBER, CURRENT, TARGET}
        if (is_there and (members or not is_of_member)) or part == EPOCH:
            member = self.drawn.choice(members) if members else ""
            # A tombstone does not replace a classic group: only a consumer group writes those.
            is_tombstone = is_there and part != MEMBER and self.drawn.random() < 0.4
            yield self._record(kind, part, group, member, is_tombstone=is_tombstone)

    def _join(self, group: str) -> Iterator[tuple[str, Key, Value | None]]:
        """Write the records of a joining member, in the coordinator's order."""
        there = self.groups.by_id.get(group)
        kind = self.drawn.choice(TYPES) if there is None else there.kind.capitalize()
        if kind in TYPES:
            member = f"m{self.drawn.randrange(MEMBERS)}"
            for part in (MEMBER, EPOCH, *OTHERS[kind], TARGET, TARGET_EPOCH, CURRENT):
                yield self._record(kind, part, group, member)

    def _leave(self, group: str) -> Iterator[tuple[str, Key, Value | None]]:
        """Remove a member, which changes the group's epoch."""
        there = self.groups.by_id.get(group)
        if there is not None and there.members:
            member, kind = self.drawn.choice(sorted(there.members)), there.kind.capitalize()
            for part in (CURRENT, TARGET, MEMBER):
                yield self._record(kind, part, group, member, is_tombstone=True)
            yield self._record(kind, EPOCH, group, member)

    def _delete(self, group: str) -> Iterator[tuple[str, Key, Value | None]]:
        """Delete a group, and sometimes replace it with a classic one, as a downgrade does."""
        there = self.groups.by_id.get(group)
        if there is None or there.value is not None:
            return
        kind = there.kind.capitalize()
        every = sorted({*there.members, *there.targets})
        for part in (CURRENT, TARGET, TARGET_EPOCH, MEMBER, *OTHERS[kind], EPOCH):
            for member in every if part in {CURRENT, TARGET, MEMBER} else [""]:
                yield self._record(kind, part, group, member, is_tombstone=True)
        if self.drawn.random() < 0.5 and group not in self.groups.by_id:
            yield from self._classic(group)

    def _record(
        self, kind: str, part: str, group: str, member: str, *, is_tombstone: bool = False
    ) -> tuple[str, Key, Value | None]:
        key = {"group_id": group}
        if part in {MEMBER, CURRENT, TARGET}:
            key["member_id"] = member
        elif part == "RegularExpression":
            key["regular_expression"] = f"r{self.drawn.randrange(2)}"
        value = None if is_tombstone else self._value(kind, part)
        return f"{kind}Group{part}", key, value

    def _value(self, kind: str, part: str) -> Value:
        number = self.drawn.randrange(99)
        if part == EPOCH:
            return {"epoch": number}
        if part == TARGET_EPOCH:
            return {"assignment_epoch": number}
        if part == MEMBER:
            value: Value = {"client_id": f"c{number}", "client_host": "/h", "rack_id": "r"}
            if kind != "Streams":
                value["subscribed_topic_names"] = [f"t{number}"]
            if kind != "Share":
                value |= {"instance_id": "i", "rebalance_timeout_ms": number}
            return value
        if part == CURRENT:
            topic = {"subtopology_id": "s"} if kind == "Streams" else {"topic_id": UUID(int=number)}
            name = "active_tasks" if kind == "Streams" else "assigned_partitions"
            epoch = self.drawn.choice([STATIC, number, number])
            return {"member_epoch": epoch, name: [{**topic, "partitions": [3, number + 4]}]}
        return {}


def _said(value: Value, version: int) -> Value:
    """Clear those fields of a classic group that its value cannot hold in this version."""
    since = {"rebalance_timeout": (1, -1), "group_instance_id": (3, None)}
    members = [
        {
            name: default if version < least else one[name]
            for name, (least, default) in since.items()
        }
        | {name: one[name] for name in one if name not in since}
        for one in value["members"]
    ]
    time = value["current_state_timestamp"] if version >= 2 else -1
    return value | {"current_state_timestamp": time, "members": members}
