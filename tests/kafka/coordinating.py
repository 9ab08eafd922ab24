"""Make groups of every type and transactions with every outcome, and ask the broker about them."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.kafka.asking import ask

if TYPE_CHECKING:
    from pathlib import Path

MOST_SECONDS = 60
TOPICS = {"orders": 3, "paid": 1}
IDS = ("t-committed", "t-aborted", "t-open")
# The longest timeout that a broker allows.
LASTING = {"transaction.timeout.ms": 900_000}


@dataclass
class Said:
    """The broker's answers at a moment, with a copy of its log directory at that moment.

    ``early`` contains the commits that the broker knew at ``early_time``, and ``early_ends`` the
    ends of the commit logs at that time.
    """

    logs: Path
    groups: list[dict[str, Any]] = field(default_factory=list)
    commits: dict[tuple[str, str, int], tuple[int, int, str]] = field(default_factory=dict)
    unstable: set[tuple[str, str, int]] = field(default_factory=set)
    classic: list[dict[str, Any]] = field(default_factory=list)
    consumers: list[dict[str, Any]] = field(default_factory=list)
    share: list[dict[str, Any]] = field(default_factory=list)
    share_offsets: list[dict[str, Any]] = field(default_factory=list)
    transactions: list[dict[str, Any]] = field(default_factory=list)
    producers: list[dict[str, Any]] = field(default_factory=list)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    early: dict[tuple[str, str, int], tuple[int, int, str]] = field(default_factory=dict)
    early_ends: dict[int, int] = field(default_factory=dict)
    early_time: datetime = datetime(1970, 1, 1, tzinfo=UTC)


class Coordinated:
    """Clients of one broker, which stay open until the end of the test."""

    def __init__(self, address: str, release: str) -> None:
        self.address, self.release = address, release
        self.has_share = release >= "4.2"
        self._kept: list[Any] = []
        admin = AdminClient({"bootstrap.servers": address})
        new = [NewTopic(name, count, 1) for name, count in TOPICS.items()]
        for created in admin.create_topics(new).values():
            created.result(MOST_SECONDS)
        self._admin = admin

    def make(self, logs: Path) -> Said:
        """Make all groups and transactions, and return the broker's answers."""
        said = Said(logs.parent / "copy")
        self._produce()
        first = self._member("g-classic", "orders")
        first.commit(offsets=[_at(0, 4, metadata="méta"), _at(1, 5)], asynchronous=False)
        left = self._member("g-left", "orders")
        left.commit(offsets=[_at(0, 1)], asynchronous=False)
        left.close()
        simple = self._consumer("g-simple")
        simple.commit(offsets=[_at(0, 2), TopicPartition("paid", 0, 0)], asynchronous=False)
        self._delete("g-gone")
        said.early, said.early_ends = self._commits(), self._ends("__consumer_offsets", 2)
        # Timestamps of records are in ms.
        time.sleep(0.05)
        said.early_time = datetime.now(UTC)
        time.sleep(0.05)
        simple.commit(offsets=[_at(0, 3)], asynchronous=False)
        if self.has_share:
            third = {"group.protocol": "consumer", "group.instance.id": "third"}
            new = self._member("g-consumer", "orders", "paid", **third)
            new.commit(offsets=[_at(2, 3)], asynchronous=False)
            self._share()
        for name in IDS:
            self._transaction(name, first)
        self._ask(said)
        shutil.copytree(logs, said.logs)
        return said

    def close(self) -> None:
        """Drop clients without closing them; the broker must end a producer's open transaction."""
        self._kept.clear()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.address, "log_level": 2})
        for number in range(30):
            producer.produce("orders", b"%d" % number, partition=number % 3)
        assert producer.flush(MOST_SECONDS) == 0

    def _consumer(self, group: str, **settings: str) -> Consumer:
        own = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": 2}
        made = Consumer(
            {"bootstrap.servers": self.address, "group.id": group, "client.id": f"c-{group}"}
            | own
            | settings
        )
        self._kept.append(made)
        return made

    def _member(self, group: str, *topics: str, **settings: str) -> Consumer:
        made = self._consumer(group, **settings)
        made.subscribe([*topics])
        end = time.monotonic() + MOST_SECONDS
        while made.poll(0.5) is None:
            assert time.monotonic() < end, f"{group} has no record"
        return made

    def _share(self) -> None:
        settings = {"bootstrap.servers": self.address, "group.id": "g-share", "log_level": 2}
        made = ShareConsumer(settings)
        made.subscribe(["orders"])
        self._kept.append(made)
        taken, end = 0, time.monotonic() + MOST_SECONDS
        while taken < 30:
            # The group begins with records that are written after it was joined.
            made.poll(timeout=1)
            self._produce()
            taken += len(made.poll(timeout=2) or [])
            assert time.monotonic() < end, "the share group has no record"
        # The next poll acknowledges the last delivered records.
        while {
            one["startOffset"] < 0 for topic in self._shared() for one in topic["partitions"]
        } != {False}:
            made.poll(timeout=1)
            assert time.monotonic() < end, "the share group has acknowledged nothing"

    def _shared(self) -> list[dict[str, Any]]:
        """Return the broker's answer for each partition of the share group, by topic."""
        wanted = [{"groupId": "g-share", "topics": None}]
        told = self._said("DescribeShareGroupOffsets", groups=wanted)
        topics: list[dict[str, Any]] = told["groups"][0]["topics"]
        return topics

    def _delete(self, group: str) -> None:
        gone = self._consumer(group)
        gone.commit(offsets=[_at(0, 2)], asynchronous=False)
        gone.close()
        for deleted in self._admin.delete_consumer_groups([group]).values():
            deleted.result(MOST_SECONDS)

    def _transaction(self, name: str, first: Consumer) -> None:
        own = {"bootstrap.servers": self.address, "transactional.id": name, "log_level": 2}
        producer = Producer(own | LASTING)
        self._kept.append(producer)
        producer.init_transactions(MOST_SECONDS)
        producer.begin_transaction()
        producer.produce("paid", name.encode(), partition=0)
        assert producer.flush(MOST_SECONDS) == 0
        alone = self._consumer(f"g-{name}").consumer_group_metadata()
        producer.send_offsets_to_transaction([_at(0, 7, metadata=name)], alone, MOST_SECONDS)
        if name != "t-open":
            both = first.consumer_group_metadata()
            producer.send_offsets_to_transaction([_at(1, 8)], both, MOST_SECONDS)
        if name == "t-committed":
            producer.commit_transaction(MOST_SECONDS)
        if name == "t-aborted":
            producer.abort_transaction(MOST_SECONDS)

    def _ask(self, said: Said) -> None:
        said.commits = self._commits()
        said.groups = self._listed()
        ids = [one["groupId"] for one in said.groups]
        quiet = {"includeAuthorizedOperations": False}
        said.classic = self._said("DescribeGroups", groups=ids, **quiet)["groups"]
        if self.has_share:
            said.consumers = self._said("ConsumerGroupDescribe", groupIds=ids, **quiet)["groups"]
            said.share = self._said("ShareGroupDescribe", groupIds=ids, **quiet)["groups"]
            said.share_offsets = self._shared()
        said.unstable = {
            (group["groupId"], topic["name"], one["partitionIndex"])
            for group in self._fetched(stable=True)
            for topic in group["topics"]
            for one in topic["partitions"]
            if one["errorCode"]
        }
        told = self._said("DescribeTransactions", transactionalIds=[*IDS])
        said.transactions = told["transactionStates"]
        paid = [{"name": "paid", "partitionIndexes": [0]}]
        told = self._said("DescribeProducers", topics=paid)
        said.producers = told["topics"][0]["partitions"][0]["activeProducers"]
        for topic, count in TOPICS.items():
            said.ends |= {(topic, one): at for one, at in self._ends(topic, count).items()}

    def _said(self, api: str, most: int | None = None, **form: Any) -> dict[str, Any]:
        return ask(self.address, api, self.release, most, **form)

    def _listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._said("ListGroups", statesFilter=[], typesFilter=[])[
            "groups"
        ]
        return found

    def _fetched(self, *, stable: bool) -> list[dict[str, Any]]:
        # Ask for the given partitions, or for all partitions in which a group has committed.
        these: list[dict[str, Any]] = [
            {"name": name, "partitionIndexes": [*range(count)]} for name, count in TOPICS.items()
        ]
        asked = [
            {
                "groupId": one["groupId"],
                "memberId": None,
                "memberEpoch": -1,
                "topics": these if stable else None,
            }
            for one in self._listed()
            if one["groupType"] != "share"
        ]
        form = {"groups": asked, "requireStable": stable}
        # Later versions name no topics.
        groups: list[dict[str, Any]] = self._said("OffsetFetch", most=9, **form)["groups"]
        return groups

    def _commits(self) -> dict[tuple[str, str, int], tuple[int, int, str]]:
        return {
            (group["groupId"], topic["name"], one["partitionIndex"]): (
                one["committedOffset"],
                one["committedLeaderEpoch"],
                one["metadata"],
            )
            for group in self._fetched(stable=False)
            for topic in group["topics"]
            for one in topic["partitions"]
        }

    def _ends(self, topic: str, count: int) -> dict[int, int]:
        asks = self._consumer("asks", **{"isolation.level": "read_uncommitted"})
        ends = {
            one: asks.get_watermark_offsets(TopicPartition(topic, one), MOST_SECONDS)
            for one in range(count)
        }
        return {one: high for one, (_, high) in ends.items()}


def _at(partition: int, offset: int, metadata: str = "") -> TopicPartition:
    return TopicPartition("orders", partition, offset, metadata=metadata)
