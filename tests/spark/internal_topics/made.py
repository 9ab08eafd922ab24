"""Logs of internal topics, made of records that the project's own codec wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.records import Record
from flexwire.schema.catalog import catalog
from tests.capture.made_logs import ABORT, COMMIT, TIME, MadeSegment

if TYPE_CHECKING:
    from pathlib import Path


def int16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


class MadeTopic:
    """The log of one partition, a batch for each record, a ms apart."""

    def __init__(self, topic: str, partition: int = 0) -> None:
        self.name = f"{topic}-{partition}"
        self.segment = MadeSegment(0)
        self.offset = 0

    def add(self, key: bytes | None, value: bytes | None, producer: int = -1) -> int:
        """Add a record, of a transaction where it has a producer; gives its offset."""
        record = Record(self.offset, TIME + self.offset, key, value, [])
        own = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
        self.segment.add([record], **(own if producer >= 0 else {}))
        self.offset += 1
        return record.offset

    def end(self, producer: int, *, commit: bool) -> int:
        self.segment.end(self.offset, producer, COMMIT if commit else ABORT, TIME + self.offset)
        self.offset += 1
        return self.offset - 1

    def write(self, root: Path, cleaned: int | None = None) -> Path:
        self.segment.write(root / self.name)
        entry = "" if cleaned is None else f"{self.name.replace('-0', ' 0')} {cleaned}\n"
        text = f"0\n{len(entry.splitlines())}\n{entry}"
        root.joinpath("cleaner-offset-checkpoint").write_text(text)
        return root


def keyed(
    number: int,
    record: str,
    key: dict[str, Any],
    value: dict[str, Any] | None,
    version: int | None = None,
) -> tuple[bytes, bytes | None]:
    """A key and value as a coordinator writes them, of the newest version or another."""
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
    """A commit, or where there is no offset its tombstone."""
    key = {"group": group, "topic": topic, "partition": partition}
    value = {"offset": offset, "metadata": f"m{offset}", "commit_timestamp": TIME}
    return keyed(1, "OffsetCommit", key, None if offset is None else value, version)


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
