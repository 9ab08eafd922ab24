"""Run one client with one broker; return its report of each step, and the broker's records."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tools.clients.steps import SEED
from tools.environment import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tools.clients.installing import Program
    from tools.clients.roster import Client

STEPS = ("create", "produce", "consume", "commit")
COUNT = 5
# On an idle machine, a working step takes three seconds.
STEP_SECONDS = 30
MOST_SECONDS = 60
# A client that fails spends most of the time waiting.
AT_ONCE = 4

DID_NOT_END = "it did not end"

Outcome = dict[str, str | None]
"""By step: empty where it worked, the client's error where it did not, None where the client has
no such step or did not reach it."""


def topic_of(client: Client) -> str:
    """Return the topic of a client, which exists before the client starts."""
    return f"trial-{client.slug}"


def group_of(client: Client) -> str:
    """Return the group in which the client reads."""
    return f"group-{client.slug}"


def prepare(address: str, clients: Iterable[Client]) -> None:
    """Make every client's topic, with the records that the client is to read."""
    topics = [topic_of(one) for one in clients]
    admin: Any = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(one, 1, 1) for one in topics]).values():
        made.result(MOST_SECONDS)
    producer = Producer({"bootstrap.servers": address})
    for topic in topics:
        for number in range(COUNT):
            producer.produce(topic, f"{SEED}{number}".encode())
    left = producer.flush(MOST_SECONDS)
    if left:
        raise RuntimeError(f"{left} records did not come to {address}")


def try_all(
    programs: dict[Client, Program], address: str, through: str, say: Callable[[str], None]
) -> dict[str, Outcome]:
    """Return every client's outcome at a broker, which clients reach through another address."""
    prepare(address, programs)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(partial(_tried, address, through, say), programs, programs.values())
        return dict(found)


def _tried(
    address: str, through: str, say: Callable[[str], None], client: Client, program: Program
) -> tuple[str, Outcome]:
    outcome = checked(address, client, run(program, through, client))
    bad = [f"{name}: {error}" for name, error in outcome.items() if error]
    say(f"  {client}: {'; '.join(bad) or 'works'}")
    return str(client), outcome


def run(program: Program, address: str, client: Client, seconds: int = STEP_SECONDS) -> Outcome:
    """Return what a client's program printed, or its exit code if it printed nothing."""
    given = [address, client.client_id, topic_of(client), group_of(client), str(COUNT)]
    given += [str(seconds), *([client.setting] if client.setting else [])]
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    process = subprocess.Popen(
        [*program.command, *given],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=ROOT, env={**own, **dict(program.environment)}, text=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=len(STEPS) * seconds + MOST_SECONDS)
        end = f"it ended with {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        end = DID_NOT_END
    outcome: Outcome = dict.fromkeys(STEPS)
    for line in out.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            outcome[said["step"]] = None if said.get("left") else plain(said["error"] or "")
    # After a failed step, there may be nothing to try.
    if outcome["consume"] is None:
        outcome["consume"] = ": ".join([end, *err.strip().splitlines()[-1:]])
    return outcome


def plain(error: str) -> str:
    """Return a client's message without details of this run: ports, times and paths.

    >>> plain("127.0.0.1:37117/1: Disconnected (after 19ms in state UP, 1 error(s) suppressed)")
    'the broker: Disconnected'
    """
    error = re.sub(r"127\.0\.0\.1:\d+(/\d+)?", "the broker", error.replace(str(ROOT), "."))
    return re.sub(r" \(after \d+ms in state .*\)", "", error)


def checked(address: str, client: Client, outcome: Outcome) -> Outcome:
    """Return the outcome after a check of the broker, which reveals steps without an effect."""
    told = {"bootstrap.servers": address, "group.id": group_of(client)}
    consumer = Consumer(told)
    partition = TopicPartition(topic_of(client), 0)
    _, end = consumer.get_watermark_offsets(partition, MOST_SECONDS)
    (committed,) = consumer.committed([partition], MOST_SECONDS)
    topics: Any = consumer.list_topics(timeout=MOST_SECONDS).topics
    consumer.close()
    shown = {
        "create": f"{topic_of(client)}-own" in topics,
        "produce": end == 2 * COUNT,
        "consume": True,
        "commit": committed.offset >= COUNT,
    }
    for name, is_shown in shown.items():
        if outcome[name] == "" and not is_shown:
            outcome[name] = "the client says that it worked, and the broker does not have it"
    return outcome
