"""Without the jars `make kafka` fails, and after a test no broker is left running."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tools import maven
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

ASKS = """
import sys, time
from pathlib import Path
from tools.broker import broker

with broker(sys.argv[1], Path(sys.argv[2])) as address:
    print(address, flush=True)
    time.sleep(600)
"""


@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_ends_with_its_caller_though_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ASKS, VERSIONS[-1], str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=maven.ROOT) as caller:
        try:
            assert caller.stdout is not None
            host, port = caller.stdout.readline().split(":")
            socket.create_connection((host, int(port)), 60).close()
        finally:
            caller.kill()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection((host, int(port)), 60).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.2)
    pytest.fail("the broker still answers")


@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_whose_port_is_taken_says_so_in_the_end(tmp_path: Path) -> None:
    host = "127.0.0.1"
    with socket.create_server((host, 0)) as one, socket.create_server((host, 0)) as two:
        port, controller = one.getsockname()[1], two.getsockname()[1]
        settings = {
            "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}",
            "controller.quorum.voters": f"1@{host}:{controller}",
        }
        with (
            pytest.raises(RuntimeError, match=r"did not start; it said:\n(.*\n)*.*already in use"),
            broker(VERSIONS[-1], tmp_path, settings),
        ):
            pytest.fail("it started")


def test_without_maven_the_error_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maven, "KEPT", tmp_path / "jars")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"g:a:1 cannot be brought .* no mvn on the path"):
        maven.Jars("one", ("g:a:1",)).bring()
    assert [path.name for path in (tmp_path / "jars").iterdir()] == ["lock"]


@pytest.mark.parametrize("says", ["[ERROR] Could not find artifact g:a:jar:1\n[ERROR] Help", ""])
def test_what_maven_says_is_passed_on_and_nothing_half_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    fake = tmp_path / "mvn"
    fake.write_text(f"#!/bin/sh\nprintf '%s' '{says}'\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(maven, "KEPT", tmp_path / "jars")
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = "Could not find artifact g:a:jar:1" if says else "mvn ended with 1"
    with pytest.raises(SystemExit, match=f"from Maven Central: {wanted}\n"):
        maven.Jars("one", ("g:a:1",)).bring()
    assert [path.name for path in (tmp_path / "jars").iterdir()] == ["lock"]
