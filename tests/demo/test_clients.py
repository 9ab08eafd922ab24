from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.demo.clients import CLIENTS
from flexwire.demo.cluster import MockCluster
from flexwire.demo.content import TOPICS
from flexwire.demo.run import run_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.demo.outcome import ClientOutcome

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, ClientOutcome]]:
    """Each client's outcome, straight at the cluster: no tap between."""

    async def run(bootstrap: str) -> list[ClientOutcome]:
        return await asyncio.gather(*(run_client(name, bootstrap) for name in CLIENTS))

    with MockCluster() as cluster:
        for topic, partitions in TOPICS.items():
            cluster.create_topic(topic, partitions)
        yield dict(zip(CLIENTS, asyncio.run(run(cluster.bootstrap)), strict=True))


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_reads_back_what_it_wrote(outcomes: dict[str, ClientOutcome], name: str) -> None:
    outcome = outcomes[name]
    assert outcome.failures == ()
    assert outcome.produced == outcome.consumed
    assert outcome.did


def test_the_clients_together_write_every_compression_and_have_many_names(
    outcomes: dict[str, ClientOutcome],
) -> None:
    steps = " ".join(step for one in outcomes.values() for step in one.did)
    assert all(codec in steps for codec in ("none", "gzip", "snappy", "lz4", "zstd"))
    names = [name for one in outcomes.values() for name in one.client_ids]
    assert len(names) == len(set(names)) >= 20
    assert sum(one.produced for one in outcomes.values()) >= 1000


def test_a_client_without_a_cluster_fails_by_name() -> None:
    outcome = asyncio.run(run_client("raw", "127.0.0.1:1"))
    assert outcome.client == "raw sockets"
    assert "ConnectionRefusedError" in outcome.failures[0]


def with_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str) -> None:
    """Have `run_client` start this program in place of Python."""
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!/bin/sh\n{program}\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stand_in))


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("exec sleep 60", "was not done after 0.5 seconds and was killed"),
        ("echo one >&2; echo two >&2; exit 3", "ended with exit code 3: one | two"),
        ("echo nonsense", "wrote no outcome: "),
    ],
)
def test_a_client_that_hangs_crashes_or_babbles_is_a_failure_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, failure: str
) -> None:
    with_program(monkeypatch, tmp_path, program)
    seconds = 0.5 if "sleep" in program else 20
    outcome = asyncio.run(run_client("aio", "127.0.0.1:1", seconds=seconds))
    assert outcome.client == "aio"
    assert outcome.failures[0].startswith(failure)
