"""What is asked of logs: which partitions, from where to where, and what a consumer would see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from flexwire.logs.names import Partition

Isolation = Literal["read_uncommitted", "read_committed"]
Replicas = Literal["longest", "all"]
PIECE_BYTES: Final = 128 << 20
"""What one task reads, unless another size is asked for: as Spark's own file sources."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that a number may be, both included."""

    low: int = INT64_MIN
    high: int = INT64_MAX

    def __and__(self, other: Bounds) -> Bounds:
        return Bounds(max(self.low, other.low), min(self.high, other.high))

    @property
    def is_empty(self) -> bool:
        """Whether no number is within."""
        return self.low > self.high

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """Both ends, None where there is no end."""
        low = None if self.low == INT64_MIN else self.low
        return low, None if self.high == INT64_MAX else self.high


EVERY: Final = Bounds()
"""No bounds."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What is asked of logs.

    Attributes:
        topics: names of topics; None for all there are, internal ones too.
        partitions: numbers of partitions; None for all.
        starting: the first offset by partition; where none is given, the log's first.
        ending: the offset after the last by partition; where none is given, the log's end.
        starting_timestamp: each partition begins at its first record that is as late, in ms.
        ending_timestamp: each partition ends before its first record that is as late, in ms.
        offsets: only records with these offsets.
        timestamps: only records with these timestamps, in ms.
        isolation: "read_committed" leaves out what transactions aborted or have not ended.
        replicas: which directory is read where several hold one partition. "longest" is the one
            that Kafka would go on with: the leader's or one of the ISR, by the cluster's metadata
            where that is there, else by leader epoch and then by end. "all" reads all of them.
        includes_deleted: records before the start of a log too, where they are still in its files.
        piece_bytes: about what one piece has.
    """

    topics: Collection[str] | None = None
    partitions: Collection[int] | None = None
    starting: Mapping[Partition, int] = field(default_factory=dict)
    ending: Mapping[Partition, int] = field(default_factory=dict)
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    offsets: Bounds = EVERY
    timestamps: Bounds = EVERY
    isolation: Isolation = "read_uncommitted"
    replicas: Replicas = "longest"
    includes_deleted: bool = False
    piece_bytes: int = PIECE_BYTES

    def wants(self, partition: Partition) -> bool:
        """Whether a partition is asked for."""
        is_topic = self.topics is None or partition.topic in self.topics
        return is_topic and (self.partitions is None or partition.partition in self.partitions)
