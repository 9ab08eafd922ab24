"""`flexwire who` works for a person at a terminal, and for a program through a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.activity.listing import COLUMNS
from flexwire.cli.app import app
from flexwire.cli.who import _COLUMNS
from tests.activity.made import VECTORS, capture_files
from tests.capture.request_lines import PLACE

if TYPE_CHECKING:
    from pathlib import Path

# Tests that run in the background ignore Ctrl-C, and so would their child processes.
HEARS_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from flexwire.cli import main
main()
"""
EVERYTHING = str(VECTORS / "everything")


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["who", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_json_has_a_line_for_each_connection_and_a_table_has_the_same_rows() -> None:
    code, out, _ = run(EVERYTHING, "--format", "json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, len(rows)) == (0, 8)
    _, text, notes = run(EVERYTHING)
    head, *lines = text.splitlines()
    assert head.split() == list(COLUMNS) == list(_COLUMNS)
    assert [line.split()[0] for line in lines] == [row["client"] for row in rows]
    assert notes.count("cannot be read: the packet is an IP fragment") == 1
    sizes = [row["requestBytes"] + row["responseBytes"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_options_choose_rows() -> None:
    _, out, notes = run(EVERYTHING, "--limit", "3", "--format", "json", "--order-by", "client-id")
    assert [json.loads(line)["clientId"] for line in out.splitlines()] == [
        *("client-0", "client-0", "client-1")
    ]
    assert "5 more connections are not shown" in notes
    _, out, _ = run(EVERYTHING, "--filter", "client-3", "--filter", "Heartbeat", "--format", "json")
    assert len(out.splitlines()) == 1
    code, out, _ = run(EVERYTHING, "--filter", "nobody", "--format", "json")
    assert (code, out) == (0, "")


@pytest.mark.long
@pytest.mark.slow
def test_errors_are_those_of_other_commands(tmp_path: Path) -> None:
    for arguments, code in ((["--order-by", "size"], 2), (["--interval", "0"], 2), ([], 1)):
        done = subprocess.run(
            [sys.executable, "-m", "flexwire", "who", str(tmp_path), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr
    assert done.stderr.startswith(
        f"CaptureError: {tmp_path}: no file in this directory ends in .pcap"
    )


@pytest.mark.long
@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_is_no_failure_with_a_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "flexwire", "who", EVERYTHING, "-q"],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=300,
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.long
@pytest.mark.slow
def test_a_terminal_shows_the_list_until_it_is_stopped(tmp_path: Path) -> None:
    for file in capture_files("everything"):
        shutil.copy(file, tmp_path)
    process, terminal = pty.fork()
    if not process:
        words = ["-c", HEARS_CTRL_C, "who", str(tmp_path), "--interval", "0.1"]
        given = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "40"}
        os.execve(sys.executable, [sys.executable, *words], given)  # noqa: S606 - the process has its own terminal
    shown = ""
    draws = 0
    while draws < 3:
        text = os.read(terminal, 1 << 16).decode(errors="replace")
        shown, draws = shown + text, draws + text.count("client-id")
    os.kill(process, signal.SIGINT)
    try:
        while data := os.read(terminal, 1 << 16):
            shown += data.decode(errors="replace")
    except OSError:
        pass  # the terminal closes when its process ends
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "client-4" in text
    assert "Traceback" not in text


def test_a_request_log_has_principals_and_no_bytes() -> None:
    code, out, notes = run(str(PLACE / "4.4.0.log"), "--format", "json", "--filter", "User:alice")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, len(rows)) == (0, 5)
    assert {row["principal"] for row in rows} == {"User:alice"}
    assert {row["requestBytes"] for row in rows} == {None}
    assert "4 requests that brokers forwarded are not counted again" in notes
    _, text, _ = run(str(PLACE / "4.4.0.log"), "--filter", "payments-writer")
    assert "User:alice" in text


def test_options_that_do_not_go_together_are_refused() -> None:
    for arguments in (["--metrics", "127.0.0.1:0"], ["--metrics-beyond-loopback"]):
        done = CliRunner().invoke(app, ["who", EVERYTHING, "--once", *arguments])
        assert done.exit_code == 1
        assert "--metrics" in str(done.exception)


@pytest.mark.long
@pytest.mark.slow
def test_metrics_are_served_as_a_capture_grows(tmp_path: Path) -> None:
    one, other = capture_files("everything")[:2]
    shutil.copy(one, tmp_path)
    words = ["who", str(tmp_path), "--interval", "0.1", "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]

        def requests() -> int:
            with urllib.request.urlopen(url, timeout=300) as answer:  # noqa: S310 - loopback
                lines = answer.read().decode().splitlines()
            counts = [line for line in lines if line.startswith("flexwire_who_requests_total")]
            return sum(int(line.rsplit(" ", 1)[1]) for line in counts)

        while not (before := requests()):
            pass
        shutil.copy(other, tmp_path)
        while requests() == before:
            pass
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=300)
    assert (process.returncode, out) == (0, "")
