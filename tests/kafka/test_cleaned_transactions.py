"""A broker's log cleaner removes exactly the records that `storage` counts as superseded or
aborted."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.logs import LogQuery, plan, read_piece
from flexwire.logs.discovery import find_logs
from flexwire.logs.files import Partition
from flexwire.logs.pieces import pieces_of, transactions_if_sound
from flexwire.logs.records import BatchDamage
from flexwire.tables.log_rows import LogTableRows, LogWork
from flexwire.tables.log_schema import BATCHES, KEYS
from tests.kafka.asking import ask
from tests.kafka.coordinating import MOST_SECONDS
from tools.broker import broker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
TOPIC, KEYS_OF, TRANSACTIONS = "orders", 5, 12
CLEANING = {"log.cleaner.backoff.ms": "200", "log.cleaner.threads": "1"}


def configure(address: str, version: str, **settings: str) -> None:
    configs = [
        {"name": name.replace("_", "."), "configOperation": 0, "value": value}
        for name, value in settings.items()
    ]
    resources = [{"resourceType": 2, "resourceName": TOPIC, "configs": configs}]
    form: dict[str, Any] = {"resources": resources, "validateOnly": False}
    said = ask(address, "IncrementalAlterConfigs", version, **form)
    assert said["responses"][0]["errorCode"] == 0, said


def written(address: str) -> None:
    """Write a few keys again and again: plainly, in committed transactions, and in aborted ones."""
    plain = Producer({"bootstrap.servers": address, "log_level": 2})
    own = {"bootstrap.servers": address, "transactional.id": "t", "log_level": 2}
    within = Producer(own)
    within.init_transactions(MOST_SECONDS)
    for number in range(TRANSACTIONS):
        plain.produce(TOPIC, b"plain", b"k%d" % (number % KEYS_OF), partition=0)
        assert plain.flush(MOST_SECONDS) == 0
        within.begin_transaction()
        for at in range(3):
            within.produce(TOPIC, b"within", b"k%d" % ((number + at) % KEYS_OF), partition=0)
        # Records in the queue when a transaction is aborted are never sent.
        assert within.flush(MOST_SECONDS) == 0
        if number % 2:
            within.commit_transaction(MOST_SECONDS)
        else:
            within.abort_transaction(MOST_SECONDS)
    # A coordinator answers before all markers are written, unless a producer starts again.
    Producer(own).init_transactions(MOST_SECONDS)


def offsets(logs: Path) -> list[int]:
    """Return the offset of every record, including those of aborted transactions."""
    found: list[int] = []
    for task in plan([logs], LogQuery(topics={TOPIC})):
        for piece in task:
            for one in read_piece(piece, ("offset",)):
                found += [] if isinstance(one, BatchDamage) else one["offset"].to_pylist()
    return found


def counted(logs: Path) -> tuple[int, int, int]:
    """Return the numbers of all records, of superseded records, and of aborted records."""
    [log] = find_logs([logs], LogQuery(topics={TOPIC}))
    pieces = tuple((0, piece) for piece in pieces_of(log, LogQuery()))
    work = LogWork(pieces, frozenset(), {}, 1, {0: transactions_if_sound(log)})
    rows: dict[str, list[dict[str, Any]]] = {BATCHES: [], KEYS: []}
    for table, some in LogTableRows(work, lambda *_: None):
        if table in rows:
            rows[table] += some.to_pylist()
    data = [row for row in rows[BATCHES] if not row["is_control"]]
    aborted = sum(row["records"] for row in data if row["outcome"] == "aborted")
    [keys] = rows[KEYS]
    return sum(row["records"] for row in data), keys["superseded_records"], aborted


@pytest.mark.parametrize("version", ["3.9.2", "4.4.0"])
def test_the_cleaner_removes_what_was_counted(tmp_path: Path, version: str) -> None:
    with broker(version, tmp_path / "broker", CLEANING) as address:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
        [created] = admin.create_topics([NewTopic(TOPIC, 1, 1)]).values()
        created.result(MOST_SECONDS)
        written(address)
        data = tmp_path / "broker" / "data"
        shutil.copytree(data / f"{TOPIC}-0", tmp_path / "before" / f"{TOPIC}-0")
        records, superseded, aborted = counted(tmp_path / "before")
        last = max(offsets(tmp_path / "before"))
        assert superseded
        assert aborted == 3 * TRANSACTIONS // 2
        names = {"cleanup_policy": "compact", "segment_ms": "100"}
        configure(address, version, **names, min_cleanable_dirty_ratio="0.001")
        later = Producer({"bootstrap.servers": address, "log_level": 2})
        end = time.monotonic() + 2 * MOST_SECONDS
        while True:
            # Only an appended record creates a new segment; the active segment is not cleaned.
            later.produce(TOPIC, b"later", b"other", partition=0)
            assert later.flush(MOST_SECONDS) == 0
            time.sleep(0.5)
            left = [one for one in offsets_now(data) if one <= last]
            if len(left) <= records - superseded - aborted:
                break
            assert time.monotonic() < end, f"{len(left)} of {records} records are left"
        assert len(left) == records - superseded - aborted


def offsets_now(data: Path) -> list[int]:
    """Return the offsets in a log, or no offsets if the broker is cleaning it at this moment."""
    copy = data.parent.parent / "now"
    shutil.rmtree(copy, ignore_errors=True)
    try:
        shutil.copytree(data / str(Partition(TOPIC, 0)), copy / f"{TOPIC}-0")
    except (shutil.Error, FileNotFoundError):
        return list(range(1 << 20))
    return offsets(copy)
