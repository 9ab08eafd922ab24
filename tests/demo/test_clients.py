"""A failing client is reported by name (test_traffic.py tests what clients do)."""

from __future__ import annotations

import asyncio
import io
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from flexwire.demo.outcome import ClientOutcome
from flexwire.demo.run import _clients, run_client
from tests.report.sample import SAMPLE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_client_without_a_cluster_fails_by_name() -> None:
    outcome = asyncio.run(run_client("raw", "127.0.0.1:1"))
    assert outcome.client == "raw sockets"
    assert "ConnectionRefusedError" in outcome.failures[0]


def with_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str) -> None:
    """Make `run_client` start this program instead of Python."""
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!/bin/sh\n{program}\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stand_in))


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("exec sleep 60", "did not finish within 0.5 seconds and was killed"),
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


def test_the_summary_shows_each_client_s_version_and_part() -> None:
    clients = (
        ClientOutcome(client="java", version="4.4.0 (build 1)", part="writes", produced=3),
        ClientOutcome(client="go", version=""),
    )
    text = io.StringIO()
    Console(file=text, width=100).print(_clients(clients, SAMPLE))
    shown = text.getvalue().splitlines()
    assert [row.split()[:4] for row in shown[1:]] == [
        ["java", "4.4.0,", "writes", "3"],
        ["go", "—", "0", "0"],
    ]
