"""The leader and the ISR of each partition, read from the cluster's metadata log.

Only the final state is needed, and only if a partition has several replicas. Records are therefore
read one at a time here, without Spark. `answers/state/cluster_partitions.py` computes the
partitions at any point in time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.errors import CodecError, RecordError, UnknownMessageError
from flexwire.logs.files import Partition, open_file
from flexwire.logs.segments import BatchPlace, read_batch, walk
from flexwire.protocol.internal_topics import InternalTopic, decode_value
from flexwire.protocol.record_types import framed_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flexwire.storage.input_file import InputFile

_TOPIC: Final = InternalTopic.METADATA
MADE, CHANGE, NAMED, REMOVED, BEGIN, END, ABORT = (
    "PartitionRecord",
    "PartitionChangeRecord",
    "TopicRecord",
    "RemoveTopicRecord",
    "BeginTransactionRecord",
    "EndTransactionRecord",
    "AbortTransactionRecord",
)
# In a change, this value means that the leader stays the same. A new leader raises the epoch
# (`PartitionRegistration`).
_SAME_LEADER: Final = -2
# A frame begins with its version and its api key. In the records of `_READS`, each of them takes
# one byte.
_API_KEY_AT: Final = 1


class Leadership(NamedTuple):
    """The leader of a partition (-1 if it has none), its epoch, and the replicas in the ISR."""

    leader: int
    epoch: int
    isr: tuple[int, ...]


@dataclass(slots=True)
class Leaderships:
    """The leaders of all partitions, updated by metadata records in order."""

    _topics: dict[str, str] = field(default_factory=dict)
    _leaderships: dict[str, dict[int, Leadership]] = field(default_factory=dict)
    _waiting: list[tuple[str, Any]] | None = None

    def by_partition(self) -> dict[Partition, Leadership]:
        """Return the leader of each partition whose topic still exists."""
        return {
            Partition(name, number): leadership
            for topic, name in self._topics.items()
            for number, leadership in self._leaderships.get(topic, {}).items()
        }

    def read(self, files: Iterable[InputFile], start: int = 0) -> None:
        """Read the records in files, from an offset to the first damaged or unknown record."""
        read = _api_keys()
        for offset, value in _values(files):
            if offset < start or len(value) <= _API_KEY_AT or value[_API_KEY_AT] not in read:
                continue
            try:
                typed = decode_value(_TOPIC, None, value)
            except (CodecError, UnknownMessageError):
                continue
            if typed is not None:
                self._take(typed.name, typed.message)

    def _take(self, name: str, record: Any) -> None:
        if name == BEGIN:
            self._waiting = []
        elif name in {END, ABORT}:
            waiting, self._waiting = self._waiting or [], None
            for change in waiting if name == END else ():
                _TAKES[change[0]](self, change[1])
        elif self._waiting is not None:
            self._waiting.append((name, record))
        else:
            _TAKES[name](self, record)

    def _make(self, record: Any) -> None:
        leadership = Leadership(record.leader, record.leader_epoch, (*record.isr,))
        self._leaderships.setdefault(str(record.topic_id), {})[record.partition_id] = leadership

    def _change(self, record: Any) -> None:
        leaderships = self._leaderships.get(str(record.topic_id), {})
        before = leaderships.get(record.partition_id)
        if before is None:
            return
        isr = before.isr if record.isr is None else (*record.isr,)
        leaderships[record.partition_id] = before._replace(isr=isr)
        if record.leader != _SAME_LEADER:
            changed = Leadership(record.leader, before.epoch + 1, isr)
            leaderships[record.partition_id] = changed

    def _name(self, record: Any) -> None:
        self._topics[str(record.topic_id)] = record.name

    def _remove(self, record: Any) -> None:
        self._topics.pop(str(record.topic_id), None)
        self._leaderships.pop(str(record.topic_id), None)


_TAKES: Final[dict[str, Callable[[Leaderships, Any], None]]] = {
    MADE: Leaderships._make,
    CHANGE: Leaderships._change,  # noqa: SLF001 - of this file
    NAMED: Leaderships._name,  # noqa: SLF001 - of this file
    REMOVED: Leaderships._remove,  # noqa: SLF001 - of this file
}
_READS: Final = frozenset({*_TAKES, BEGIN, END, ABORT})


def _api_keys() -> frozenset[int]:
    every = framed_messages(_TOPIC.module).items()
    return frozenset(number for number, names in every if _READS.intersection(names))


def _values(files: Iterable[InputFile]) -> Iterator[tuple[int, bytes]]:
    for source in files:
        with open_file(source) as log:
            for place in walk(log):
                if not isinstance(place, BatchPlace):
                    continue
                try:
                    batch = read_batch(log, place)
                    records = [] if batch.is_control else batch.records
                except RecordError:
                    continue
                for record in records:
                    if record.value is not None:
                        yield record.offset, record.value
