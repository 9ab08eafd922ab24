"""Any release of kafka-python on trial: ``python -m tools.clients.kafka_python ADDRESS …``.

The setting is ``api_version``, written as numbers such as 0.10.1.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import Any

from tools.clients.steps import SEED, Asked, step


def main() -> None:
    """Create a topic, produce, consume, and commit."""
    with contextlib.suppress(ModuleNotFoundError):  # newer releases do not need it
        # The copy of six in 2.0.2 is too old for Python 3.12.
        sys.modules["kafka.vendor.six.moves"] = importlib.import_module("six").moves
    kafka: Any = importlib.import_module("kafka")
    admin: Any = importlib.import_module("kafka.admin")
    asked = Asked.parse()
    told: dict[str, Any] = {"bootstrap_servers": asked.address, "client_id": asked.client_id}
    if asked.setting:
        told["api_version"] = tuple(map(int, asked.setting.split(".")))

    def create() -> None:
        wanted = admin.NewTopic(f"{asked.topic}-own", 1, 1)
        admin.KafkaAdminClient(**told).create_topics([wanted])

    def produce() -> None:
        producer = kafka.KafkaProducer(**told)
        for number in range(asked.count):
            producer.send(asked.topic, f"own-{number}".encode()).get(asked.seconds)

    group = {"group_id": asked.group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    made: list[Any] = []

    def consume() -> None:
        made.append(kafka.KafkaConsumer(asked.topic, **group, **told))
        left = asked.count
        for one in made[0]:
            left -= one.value.startswith(SEED.encode())
            if left == 0:
                return

    step("create", create, asked.seconds)
    step("produce", produce, asked.seconds)
    if step("consume", consume, asked.seconds):
        step("commit", made[0].commit, asked.seconds)
    sys.stdout.flush()
    # A step that hangs must not block the program.
    os._exit(0)


if __name__ == "__main__":
    main()
