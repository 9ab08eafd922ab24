"""The embedded cluster: three mock brokers on loopback, each behind a proxy that repairs responses.

confluent-kafka's Python interface can only start the mock with default topics. The demo requires
the C interface, because only that interface can create topics, limit versions and set advertised
addresses.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from flexwire.closeable import Closeable
from flexwire.demo.content import require
from flexwire.demo.repair_proxy import RepairProxy
from flexwire.errors import FlexwireError

if TYPE_CHECKING:
    from collections.abc import Sequence


_PRODUCER = 0  # This is a value of type rd_kafka_type_t.
_TEXT = ctypes.c_char_p
_HANDLE = ctypes.c_void_p

# The result type and the argument types of each function, keyed by name.
_FUNCTIONS: dict[str, tuple[type | None, Sequence[type]]] = {
    "rd_kafka_conf_new": (_HANDLE, ()),
    "rd_kafka_conf_set_log_cb": (None, (_HANDLE, ctypes.c_void_p)),
    "rd_kafka_new": (_HANDLE, (ctypes.c_int, _HANDLE, _TEXT, ctypes.c_size_t)),
    "rd_kafka_destroy": (None, (_HANDLE,)),
    "rd_kafka_err2str": (_TEXT, (ctypes.c_int,)),
    "rd_kafka_mock_cluster_new": (_HANDLE, (_HANDLE, ctypes.c_int)),
    "rd_kafka_mock_cluster_destroy": (None, (_HANDLE,)),
    "rd_kafka_mock_cluster_bootstraps": (_TEXT, (_HANDLE,)),
    "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, (_HANDLE, ctypes.c_int32)),
    "rd_kafka_mock_set_apiversion": (
        ctypes.c_int,
        (_HANDLE, ctypes.c_int16, ctypes.c_int16, ctypes.c_int16),
    ),
    "rd_kafka_mock_topic_create": (ctypes.c_int, (_HANDLE, _TEXT, ctypes.c_int, ctypes.c_int)),
    "rd_kafka_mock_broker_set_host_port": (
        None,
        (_HANDLE, ctypes.c_int32, _TEXT, ctypes.c_int),
    ),
}


def _library() -> ctypes.CDLL:
    # The extension module is linked to librdkafka, and a lookup with its handle also searches
    # linked libraries. The file name of the library, which differs in every wheel, is therefore not
    # needed.
    cimpl = require("confluent_kafka.cimpl")
    library = ctypes.CDLL(str(cimpl.__file__))
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise FlexwireError(
                f"the installed confluent-kafka lacks the mock cluster function {name}; "
                "to install a version with this function, run pip install 'flexwire[demo]'"
            ) from error
        function.restype = result
        function.argtypes = list(arguments)
    return library


class MockBrokers:
    """The brokers of one mock cluster. They run until `close` is called.

    Their ids are 1 to ``count``, and they listen on 127.0.0.1, on ports that the system chooses.
    """

    def __init__(self, count: int) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(512)
        conf = self._library.rd_kafka_conf_new()
        # Otherwise, the mock would write its errors about hostile input to standard error. The
        # capture shows these errors better.
        self._library.rd_kafka_conf_set_log_cb(conf, None)
        self._client = self._library.rd_kafka_new(_PRODUCER, conf, error, len(error))
        if not self._client:
            raise FlexwireError(f"the mock cluster did not start: {error.value.decode()}")
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, count)
        if not self._cluster:
            self._library.rd_kafka_destroy(self._client)
            raise FlexwireError(f"the mock cluster did not start its {count} brokers on loopback")

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses of the brokers, in the order of their ids."""
        text = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        pairs = (address.rpartition(":") for address in text.split(","))
        return [(host, int(port)) for host, _, port in pairs]

    def advertise(self, broker_id: int, host: str, port: int) -> None:
        """Make every response state this address for the broker."""
        self._library.rd_kafka_mock_broker_set_host_port(
            self._cluster, broker_id, host.encode(), port
        )

    def create_topic(self, name: str, partitions: int, replicas: int) -> None:
        """Create a topic. The brokers take turns as leaders of its partitions.

        Raises `FlexwireError` if the topic exists.
        """
        code = self._library.rd_kafka_mock_topic_create(
            self._cluster, name.encode(), partitions, replicas
        )
        self._expect(code, f"topic {name!r} was not created")

    def limit_versions(self, api_key: int, lowest: int, highest: int) -> None:
        """Restrict the API to these versions."""
        code = self._library.rd_kafka_mock_set_apiversion(self._cluster, api_key, lowest, highest)
        self._expect(code, f"api key {api_key} was not limited to versions {lowest}-{highest}")

    def set_rebalance_delay(self, milliseconds: int) -> None:
        """Set how long a new classic group waits for members before its first generation."""
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, milliseconds)

    def close(self) -> None:
        """Stop the brokers and close their connections."""
        if self._cluster:
            self._library.rd_kafka_mock_cluster_destroy(self._cluster)
            self._library.rd_kafka_destroy(self._client)
            self._cluster = self._client = None

    def _expect(self, code: int, failure: str) -> None:
        if code:
            reason = self._library.rd_kafka_err2str(code).decode()
            raise FlexwireError(f"{failure} in the mock cluster: {reason}")


_BROKERS = 3
_REBALANCE_DELAY_MS = 200

# The mock declares versions that it cannot read correctly, and closes the connection when a client
# uses them. The mock reads the counts of a flexible JoinGroup (6) and SyncGroup (4) as int32, and
# the member array of LeaveGroup 3 and above as one member id.
_JOIN_GROUP, _LEAVE_GROUP, _SYNC_GROUP = 11, 13, 14
_LIMITS = {_JOIN_GROUP: (0, 5), _LEAVE_GROUP: (0, 2), _SYNC_GROUP: (0, 3)}


class MockCluster(Closeable):
    """Three brokers with the ids 1, 2 and 3, whose data is kept only in memory.

    The brokers support the APIs for producers, consumers, groups and transactions, but not the
    admin APIs (CreateTopics, DescribeConfigs, ListGroups and so on), for which they close the
    connection. If a client uses a topic that does not exist, the topic is created with 4
    partitions. ``bootstrap`` is the value for the ``bootstrap.servers`` setting of clients.

    >>> with MockCluster() as cluster:
    ...     cluster.create_topic("orders", partitions=6)
    ...     len(cluster.addresses)
    3
    """

    def __init__(self) -> None:
        self._brokers = MockBrokers(_BROKERS)
        try:
            self._front = RepairProxy(self._brokers.addresses)
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
        """Create a topic with a replica on every broker.

        Raises `FlexwireError` if the topic already exists.
        """
        self._brokers.create_topic(name, partitions, _BROKERS)

    def close(self) -> None:
        """Stop the brokers. Their data is lost."""
        self._front.close()
        self._brokers.close()
