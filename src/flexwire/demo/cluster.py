"""The embedded cluster: three mock brokers on loopback, each with a front that repairs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from flexwire.demo.front import Front
from flexwire.demo.librdkafka import MockBrokers

if TYPE_CHECKING:
    from types import TracebackType

_BROKERS = 3
_REBALANCE_DELAY_MS = 200

# The mock declares versions that it then misreads, and closes the connection: the counts of a
# flexible JoinGroup (6) and SyncGroup (4) as int32, and the member array of LeaveGroup 3 and
# above as one member id.
_JOIN_GROUP, _LEAVE_GROUP, _SYNC_GROUP = 11, 13, 14
_LIMITS = {_JOIN_GROUP: (0, 5), _LEAVE_GROUP: (0, 2), _SYNC_GROUP: (0, 3)}


class MockCluster:
    """Three brokers with the ids 1, 2 and 3, which speak the Kafka protocol but keep all in memory.

    They know what producers, consumers, groups and transactions need; not the admin APIs
    (CreateTopics, DescribeConfigs, ListGroups and so on): at those they close the connection. A
    topic that a client names is created with 4 partitions. ``bootstrap`` is what clients call
    ``bootstrap.servers``.

    >>> with MockCluster() as cluster:
    ...     cluster.create_topic("orders", partitions=6)
    ...     len(cluster.addresses)
    3
    """

    def __init__(self) -> None:
        self._brokers = MockBrokers(_BROKERS)
        try:
            self._front = Front(self._brokers.addresses)
        except BaseException:
            self._brokers.close()
            raise
        self.addresses = self._front.addresses
        self.bootstrap = ",".join(f"{host}:{port}" for host, port in self.addresses)
        for broker_id, (host, port) in enumerate(self.addresses, start=1):
            self._brokers.advertise(broker_id, host, port)
        self._brokers.set_rebalance_delay(_REBALANCE_DELAY_MS)
        for api_key, (lowest, highest) in _LIMITS.items():
            self._brokers.limit_versions(api_key, lowest, highest)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic with a replica on every broker. `FlexwireError` if it exists already."""
        self._brokers.create_topic(name, partitions, _BROKERS)

    def close(self) -> None:
        """Stop the brokers; what they held is gone."""
        self._front.close()
        self._brokers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
