"""Logs of internal topics, made from records that the project's own codec wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.records import Record, encode_batch
from flexwire.schema.catalog import catalog
from tests.capture.made_logs import ABORT, COMMIT, TIME, MadeSegment

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def int16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


class MadeTopic:
    """Write the log of one partition, with one batch per record, one ms apart.

    Records with offsets in ``removed`` are not written. For offsets in ``emptied``, a batch without
    a record remains, as after compaction.
    """

    def __init__(self, topic: str, partition: int = 0) -> None:
        self.name = f"{topic}-{partition}"
        self.segment = MadeSegment(0)
        self.offset = 0
        self.removed: Collection[int] = ()
        self.emptied: Collection[int] = ()

    def add(
        self, key: bytes | None, value: bytes | None, producer: int = -1, time: int | None = None
    ) -> int:
        """Add a record, in a transaction if a producer is given. Return its offset."""
        own = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
        self._add(key, value, own if producer >= 0 else {}, time)
        return self.offset - 1

    def end(self, producer: int, *, commit: bool) -> int:
        own = {"producer_id": producer, "is_transactional": True, "is_control": True}
        self._add(COMMIT if commit else ABORT, bytes(6), own)
        return self.offset - 1

    def _add(
        self, key: bytes | None, value: bytes | None, own: dict[str, Any], time: int | None = None
    ) -> None:
        at = self.offset
        time = TIME + at if time is None else time
        self.offset += 1
        if at in self.emptied:
            self.segment.data += encode_batch([], base_offset=at, last_offset=at, **own)
        elif at not in self.removed:
            self.segment.add([Record(at, time, key, value, [])], **own)

    def write(self, root: Path) -> Path:
        self.segment.write(root / self.name)
        return root


def keyed(
    number: int,
    record: str,
    key: dict[str, Any],
    value: dict[str, Any] | None,
    version: int | None = None,
) -> tuple[bytes, bytes | None]:
    """Return a key and value as a coordinator writes them, in the newest or another version."""
    made_key = int16(number) + message(f"{record}Key")(**key).encode(0)
    if value is None:
        return made_key, None
    version = catalog().entry(f"{record}Value").versions.highest if version is None else version
    return made_key, int16(version) + message(f"{record}Value")(**value).encode(version)


def commit(
    partition: int,
    offset: int | None,
    group: str = "g",
    topic: str = "orders",
    version: int | None = None,
) -> tuple[bytes, bytes | None]:
    """Return a commit, or its tombstone if there is no offset."""
    key = {"group": group, "topic": topic, "partition": partition}
    value = {"offset": offset, "metadata": f"m{offset}", "commit_timestamp": TIME}
    return keyed(1, "OffsetCommit", key, None if offset is None else value, version)


def legacy_commit(
    partition: int, offset: int | None, group: str = "g", topic: str = "orders", version: int = 0
) -> tuple[bytes, bytes | None]:
    """Return a commit whose key has the first form. The argument ``version`` has no effect."""
    del version
    key = {"group": group, "topic": topic, "partition": partition}
    value = {"offset": offset, "metadata": f"m{offset}", "commit_timestamp": TIME}
    return keyed(0, "LegacyOffsetCommit", key, None if offset is None else value)


def written_transaction(
    name: str, status: int, producer: int, partitions: dict[str, list[int]]
) -> tuple[bytes, bytes | None]:
    of: Any = message("TransactionLogValue")
    value = {
        "producer_id": producer,
        "producer_epoch": 3,
        "transaction_timeout_ms": 60_000,
        "transaction_status": status,
        "transaction_partitions": [
            of.PartitionsSchema(topic=topic, partition_ids=numbers)
            for topic, numbers in partitions.items()
        ],
        "transaction_start_timestamp_ms": TIME,
        "transaction_last_update_timestamp_ms": TIME + 5,
    }
    return keyed(0, "TransactionLog", {"transactional_id": name}, value)
