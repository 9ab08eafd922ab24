"""Try faults with eight client libraries: ``make faults``.

Each client creates a topic, produces, consumes and commits at a 3.9.2 broker, behind a tap that
injects one fault. ``faults.jsonl`` keeps the client's reports and the broker's records;
docs/faults.md shows them in a table. The program exits with 1 if a client's program did not end, if
the broker has a record that no client sent or has lost one that it acknowledged, or if a step
failed because of a fault that a client must not notice. If given names of clients, or parts of
names, the program tries only those clients and writes nothing.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition

from flexwire.tap import Tap, parse_host_port
from flexwire.tap.fault_rules import FaultPlan, parse_fault
from tests.kafka.secured import LOOPBACK
from tests.kafka.tapping import running
from tests.kafka.trial.fault_rows import FAULTS, KNOWN, RELEASE, FaultRow, write_fault_rows
from tests.kafka.trial.trying import AT_ONCE, COUNT, MOST_SECONDS, prepare, run, topic_of
from tools.broker import broker
from tools.clients.roster import CLIENTS
from tools.clients.steps import SEED
from tools.pages import fault_trial
from tools.pages.files import write_files

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.kafka.trial.fault_rows import TriedFault
    from tools.clients.installing import Program
    from tools.clients.roster import Client

# The newest release of each library.
LIBRARIES = (
    "kafka-clients 4.4.0",
    "librdkafka 2.16.0",
    "franz-go 1.22.2",
    "sarama 1.61.1",
    "kafka-go 0.4.51",
    "KafkaJS 2.2.4",
    "kafka-node 5.0.0",
    "kafka-python 3.0.12",
)


def main(asked: Collection[str]) -> None:
    """Inject every fault for all clients, or for those that were requested."""
    clients = [one for one in CLIENTS if str(one) in LIBRARIES]
    chosen = [one for one in clients if not asked or any(name in str(one) for name in asked)]
    began = time.monotonic()
    programs = {client: client.way.bring() for client in chosen}
    rows: list[FaultRow] = []
    for fault in FAULTS:
        _say(f"{fault.text}")
        rows += _tried(programs, fault)
    if not asked:
        write_fault_rows(rows)
        write_files(fault_trial.files())
    wrong = [row for row in rows if row.wrong and (row.client, row.fault) not in KNOWN]
    for row in wrong:
        _say(f"wrong: {row.client}, {row.fault}: {row.wrong}: {row}")
    _say(f"{len(rows) - len(wrong)} of {len(rows)} in {time.monotonic() - began:.0f} s")
    sys.exit(bool(wrong))


def _tried(programs: dict[Client, Program], fault: TriedFault) -> list[FaultRow]:
    texts = {one: fault.for_client(one.client_id) for one in programs}
    plan = FaultPlan(tuple(map(parse_fault, texts.values())), seed=1)
    with (
        tempfile.TemporaryDirectory(prefix="flexwire-faults-") as place,
        broker(RELEASE, Path(place, RELEASE)) as address,
    ):
        prepare(address, programs)
        tap = Tap((LOOPBACK, 0), parse_host_port(address), Path(place, "tap"), faults=plan)
        with running([tap]), ThreadPoolExecutor(AT_ONCE) as pool:
            through = str(tap.listen_address)
            outcomes = list(
                pool.map(lambda one: run(programs[one], through, one, fault.seconds), programs)
            )
            done: Any = tap.faults and dict(tap.faults.done)
        if tap.stats.failures:
            raise RuntimeError(f"{tap.stats.failures} connections ended by a defect in the tap")
        rows = []
        for client, outcome in zip(programs, outcomes, strict=True):
            values = _values(address, topic_of(client))
            row = FaultRow(
                str(client), fault.text, outcome, done.get(texts[client], 0), *_counts(values)
            )
            _say(f"  {row}")
            rows.append(row)
        return rows


def _values(address: str, topic: str) -> list[str]:
    """Return the values in a topic, read directly from the broker."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "flexwire-faults"})
    partition = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, MOST_SECONDS)
    consumer.assign([partition])
    values: list[str] = []
    deadline = time.monotonic() + MOST_SECONDS
    while len(values) < end and time.monotonic() < deadline:
        record: Any = consumer.poll(1)
        if record is not None and record.error() is None:
            values.append(record.value().decode())
    consumer.close()
    return values


def _counts(values: list[str]) -> tuple[int, int, int]:
    """Return how many of the client's records and copies exist, and which records nobody sent."""
    own = {f"own-{number}" for number in range(COUNT)}
    seeds = {f"{SEED}{number}" for number in range(COUNT)}
    there = own & {*values}
    copies = sum(value in own for value in values) - len(there)
    return len(there), copies, sum(value not in own | seeds for value in values)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
