"""Replay the records of groups as Kafka's group coordinator does, in a few lines.

`Groups` is the coordinator of 4.0 to 4.4: these releases agree on every log that they load
(`GroupMetadataManager.replay`). Some releases refuse more logs than others. `Refused` is raised for
records that all of these releases refuse. The coordinator of 3.x reads only `GroupMetadata`, by the
same rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Key: TypeAlias = dict[str, Any]
Value: TypeAlias = dict[str, Any]

CLASSIC: Final = "GroupMetadata"
TYPES: Final = ("Consumer", "Share", "Streams")
LEFT: Final = -1
"""The epoch of a member that leaves, which is also the assignment epoch of a group without one.
"""

# The type of a record, by its name after "ConsumerGroup", "ShareGroup" or "StreamsGroup".
EPOCH, MEMBER, CURRENT = "Metadata", "MemberMetadata", "CurrentMemberAssignment"
TARGET_EPOCH, TARGET = "TargetAssignmentMetadata", "TargetAssignmentMember"
# These records only show that the group exists: no view shows their other content.
OTHERS: Final = {
    "Consumer": ("PartitionMetadata", "RegularExpression"),
    "Share": ("PartitionMetadata", "StatePartitionMetadata"),
    "Streams": ("Topology",),
}
PARTS: Final = {
    f"{kind}Group{part}": (kind, part)
    for kind in TYPES
    for part in (EPOCH, MEMBER, CURRENT, TARGET_EPOCH, TARGET, *OTHERS[kind])
}
RECORDS: Final = frozenset({CLASSIC, *PARTS})
"""Every record that `Groups.replay` handles."""


class Refused(Exception):  # noqa: N818 - this is not an error of the program
    """The error for a record at which Kafka stops loading."""


@dataclass
class Member:
    """A member: the facts that it reported, its assignment, and its epoch."""

    told: Value | None = None
    has: Value | None = None
    epoch: int = 0


@dataclass
class Group:
    """A group of any type. For a classic group, ``value`` is the value of its record."""

    kind: str
    value: Value | None = None
    epoch: int = 0
    has_epoch: bool = False
    target_epoch: int = 0
    targets: set[str] = field(default_factory=set)
    members: dict[str, Member] = field(default_factory=dict)

    @property
    def is_simple(self) -> bool:
        """True if Kafka silently replaces this group with a consumer group."""
        return self.value is not None and not (self.value["protocol_type"] or self.value["members"])


@dataclass
class Groups:
    """The groups of a log partition, by id. Each id belongs to one group at a time."""

    by_id: dict[str, Group] = field(default_factory=dict)

    def replay(self, record: str, key: Key, value: Value | None) -> None:
        if record == CLASSIC:
            # The group that used this id is gone, with all its members.
            self.by_id.pop(key["group"], None)
            if value is not None:
                self.by_id[key["group"]] = Group("classic", value)
            return
        kind, part = PARTS[record]
        group = self._group(kind.lower(), key["group_id"], is_made=value is not None)
        if group is None:
            return
        if part == EPOCH:
            self._epoch(group, key["group_id"], value)
        elif part in {MEMBER, CURRENT}:
            _member(group, part, key["member_id"], value)
        elif part == TARGET:
            (group.targets.discard if value is None else group.targets.add)(key["member_id"])
        elif part == TARGET_EPOCH:
            if value is None and group.targets:
                raise Refused(record)
            group.target_epoch = LEFT if value is None else value["assignment_epoch"]

    def _group(self, kind: str, name: str, *, is_made: bool) -> Group | None:
        """Find the group of a record. Return None for a tombstone without a group."""
        group = self.by_id.get(name)
        if group is None and not is_made:
            return None
        if group is None or (group.is_simple and kind == "consumer"):
            group = self.by_id[name] = Group(kind)
        if group.kind != kind:
            raise Refused(name)
        return group

    def _epoch(self, group: Group, name: str, value: Value | None) -> None:
        if value is not None:
            group.epoch, group.has_epoch = value["epoch"], True
        elif group.members or group.targets or group.target_epoch != LEFT:
            raise Refused(name)
        else:
            del self.by_id[name]


def _member(group: Group, part: str, name: str, value: Value | None) -> None:
    if value is not None:
        member = group.members.setdefault(name, Member())
        if part == MEMBER:
            member.told = value
        else:
            member.has, member.epoch = value, value["member_epoch"]
    elif name not in group.members:
        return
    elif part == CURRENT:
        group.members[name].has, group.members[name].epoch = None, LEFT
    elif group.members[name].epoch != LEFT or name in group.targets:
        raise Refused(name)
    else:
        del group.members[name]
