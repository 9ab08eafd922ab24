"""Run as many group members as requested, with librdkafka (see `tools.clients.members`)."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import POINTER, c_int32, c_void_p
from typing import Any

from tools.clients.members import say
from tools.clients.rdkafka import CONSUMER, END_OF_PARTITION, Message, RdKafka
from tools.clients.steps import Asked


class Member:
    """One consumer in a group, in its own thread."""

    def __init__(self, words: list[str]) -> None:
        _, self.name, address, group, self.topic, *settings = words
        self._settings = dict(one.split("=", 1) for one in settings)
        client_id = self._settings.pop("client.id")
        self._asked = Asked(address, client_id, self.topic, group, 0, 0)
        self._leaves = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def leave(self) -> None:
        """Make the consumer leave the group."""
        self._leaves.set()

    def _run(self) -> None:
        try:
            self._consume()
        except (ValueError, RuntimeError, AttributeError) as error:
            say(self.name, "failed", str(error))
        say(self.name, "left")

    def _consume(self) -> None:
        library = RdKafka(os.environ["LIBRDKAFKA"], self._asked)
        # Members that read nothing send few requests to a broker.
        more = {"group.id": self._asked.group, "fetch.wait.max.ms": "5000"}
        consumer = library.client(CONSUMER, more | self._settings)
        lib: Any = library.lib
        lib.rd_kafka_poll_set_consumer(consumer)
        topics = c_void_p(lib.rd_kafka_topic_partition_list_new(1))
        lib.rd_kafka_topic_partition_list_add(topics, self.topic.encode(), c_int32(-1))
        library.check(lib.rd_kafka_subscribe(consumer, topics))
        say(self.name, "started")
        said = ""
        while not self._leaves.is_set():
            found = lib.rd_kafka_consumer_poll(consumer, 200)
            if found:
                one = ctypes.cast(found, POINTER(Message)).contents
                if one.err not in {0, END_OF_PARTITION}:
                    library.said = ctypes.string_at(one.payload, one.len).decode(errors="replace")
                lib.rd_kafka_message_destroy(c_void_p(found))
            if library.said != said:
                said = library.said
                say(self.name, "failed", said)
        lib.rd_kafka_consumer_close(consumer)


def main() -> None:
    """Start members and make them leave, as standard input requests."""
    members = {}
    for line in sys.stdin:
        words = line.rstrip("\n").split("\t")
        if words[0] == "start":
            members[words[1]] = Member(words)
        else:
            members[words[1]].leave()
    # The program must end even if a member hangs.
    os._exit(0)


if __name__ == "__main__":
    main()
