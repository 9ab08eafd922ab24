"""Any build of librdkafka on trial, through C: ``python -m tools.clients.rdkafka …``.

``LIBRDKAFKA`` names the library. The setting is a list of its properties, ``name=value,…``. Wheels
of old releases are for the Pythons of their time, but the library in them runs with any Python.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

from tools.clients.steps import SEED, Asked, LeftOutError, step

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRODUCER, CONSUMER = 0, 1
_COPY = 2
_ANY_PARTITION = -1
_SAID_BYTES = 512
_CREATE_TOPICS = 1
_FOR_EVER = -1
_OF_ADMIN = (
    "NewTopic_new", "queue_new", "queue_poll", "AdminOptions_new", "event_CreateTopics_result",
)  # fmt: skip
# librdkafka's error code for the end of a partition.
END_OF_PARTITION = -191


class Message(Structure):
    """``rd_kafka_message_t``, which is the same in all releases."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


_DELIVERED = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Message), c_void_p)
_FAILED = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)


class RdKafka:
    """One build of the library; its functions have the names from ``rdkafka.h``."""

    def __init__(self, path: str, asked: Asked) -> None:
        self.lib: Any = ctypes.CDLL(path)
        self._asked = asked
        self.said = ""
        """The last error of the whole client, for a step that reports none and takes too long."""
        self._kept: list[object] = []
        for name in ("conf_new", "topic_conf_new", "new", "topic_new", "consumer_poll"):
            getattr(self.lib, f"rd_kafka_{name}").restype = c_void_p
        for name in (*_OF_ADMIN, "topic_partition_list_new"):
            if hasattr(self.lib, f"rd_kafka_{name}"):
                getattr(self.lib, f"rd_kafka_{name}").restype = c_void_p
        self.lib.rd_kafka_err2str.restype = c_char_p

    def client(self, kind: int, more: Mapping[str, str]) -> Any:
        """Return a client.

        The client is never destroyed, because a client that hangs would also hang in this call.
        """
        conf = c_void_p(self.lib.rd_kafka_conf_new())
        told = {"bootstrap.servers": self._asked.address, "client.id": self._asked.client_id}
        told |= dict(one.split("=", 1) for one in self._asked.setting.split(",") if one)
        said = ctypes.create_string_buffer(_SAID_BYTES)
        for name, value in {**told, "log_level": "0", **more}.items():
            given = (conf, name.encode(), value.encode(), said, c_size_t(_SAID_BYTES))
            if self.lib.rd_kafka_conf_set(*given):
                raise ValueError(said.value.decode())
        failed = _FAILED(self._hear)
        self._kept.append(failed)
        self.lib.rd_kafka_conf_set_error_cb(conf, failed)
        if kind == _PRODUCER:
            delivered = _DELIVERED(self._deliver)
            self._kept.append(delivered)
            self.lib.rd_kafka_conf_set_dr_msg_cb(conf, delivered)
        made = self.lib.rd_kafka_new(kind, conf, said, c_size_t(_SAID_BYTES))
        if not made:
            raise ValueError(said.value.decode())
        return c_void_p(made)

    def create(self) -> None:
        """Create a topic, with release 0.11.6 or later."""
        if not hasattr(self.lib, "rd_kafka_CreateTopics"):
            raise LeftOutError("it has no admin client")
        client = self.client(_PRODUCER, {})
        said, size = ctypes.create_string_buffer(_SAID_BYTES), c_size_t(_SAID_BYTES)
        name = f"{self._asked.topic}-own".encode()
        wanted = c_void_p(self.lib.rd_kafka_NewTopic_new(name, 1, 1, said, size))
        queue = c_void_p(self.lib.rd_kafka_queue_new(client))
        options = c_void_p(self.lib.rd_kafka_AdminOptions_new(client, _CREATE_TOPICS))
        waits = self._asked.seconds * 900
        # Without this option, old releases start the creation and do not wait for its result.
        self.lib.rd_kafka_AdminOptions_set_operation_timeout(options, waits, said, size)
        self.lib.rd_kafka_CreateTopics(client, byref(wanted), c_size_t(1), options, queue)
        event = c_void_p(self.lib.rd_kafka_queue_poll(queue, _FOR_EVER))
        self.check(self.lib.rd_kafka_event_error(event))
        result = c_void_p(self.lib.rd_kafka_event_CreateTopics_result(event))
        count = c_size_t(0)
        self.lib.rd_kafka_CreateTopics_result_topics.restype = POINTER(c_void_p)
        topics = self.lib.rd_kafka_CreateTopics_result_topics(result, byref(count))
        self.check(self.lib.rd_kafka_topic_result_error(c_void_p(topics[0])))

    def produce(self) -> None:
        """Produce, and wait until all records are acknowledged."""
        client = self.client(_PRODUCER, {"message.timeout.ms": str(self._asked.seconds * 900)})
        self.lib.rd_kafka_topic_new.argtypes = (c_void_p, c_char_p, c_void_p)
        topic = c_void_p(self.lib.rd_kafka_topic_new(client, self._asked.topic.encode(), None))
        self._answers: list[int] = []
        for number in range(self._asked.count):
            value = f"own-{number}".encode()
            given = (topic, c_int32(_ANY_PARTITION), _COPY, value, c_size_t(len(value)))
            if self.lib.rd_kafka_produce(*given, None, c_size_t(0), None):
                raise ValueError("it took no record")
        while len(self._answers) < self._asked.count:
            self.lib.rd_kafka_poll(client, 100)
        for answer in self._answers:
            self.check(answer)

    def consume(self) -> None:
        """Read in a group until the earlier records have been read."""
        group = {"group.id": self._asked.group, "enable.auto.commit": "false"}
        self._consumer = self.client(CONSUMER, {**group, "auto.offset.reset": "earliest"})
        self.lib.rd_kafka_poll_set_consumer(self._consumer)
        topics = c_void_p(self.lib.rd_kafka_topic_partition_list_new(1))
        self.lib.rd_kafka_topic_partition_list_add(topics, self._asked.topic.encode(), c_int32(-1))
        self.check(self.lib.rd_kafka_subscribe(self._consumer, topics))
        left = self._asked.count
        while left:
            found = self.lib.rd_kafka_consumer_poll(self._consumer, 500)
            if not found:
                continue
            one = ctypes.cast(found, POINTER(Message)).contents
            if one.err not in {0, END_OF_PARTITION}:
                self.check(one.err)
            if one.err == 0:
                left -= ctypes.string_at(one.payload, one.len).startswith(SEED.encode())

    def commit(self) -> None:
        """Commit the offsets that were read."""
        self.check(self.lib.rd_kafka_commit(self._consumer, None, 0))

    def check(self, code: int) -> None:
        """Raise `RuntimeError` for an error code from the library."""
        if code:
            text = self.lib.rd_kafka_err2str(code).decode()
            raise RuntimeError(f"{text}; {self.said}" if self.said else text)

    def _hear(self, _client: int, _code: int, reason: bytes, _opaque: int) -> None:
        self.said = reason.decode(errors="replace")

    def _deliver(self, _client: int, message: Any, _opaque: int) -> None:
        self._answers.append(message.contents.err)


def main() -> None:
    """Create a topic, produce, consume, and commit."""
    asked = Asked.parse()
    library = RdKafka(os.environ["LIBRDKAFKA"], asked)

    def tried(name: str) -> bool:
        return step(name, getattr(library, name), asked.seconds, lambda: library.said)

    tried("create")
    tried("produce")
    if tried("consume"):
        tried("commit")
    # A step that hangs must not block the program.
    os._exit(0)


if __name__ == "__main__":
    main()
