"""The text of `flexwire records dump` fits terminals of any width, and pipes."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from flexwire.cli.records_dump_options import DumpOptions
from flexwire.cli.records_dump_rows import rows
from flexwire.cli.records_dump_text import DumpText
from flexwire.records.conventions import CONVENTIONS
from tests.capture.log_vectors import BASE, data_of, vectors, write, write_all
from tests.each import each

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("logs")
    write_all(made)
    return made


@pytest.mark.long
@pytest.mark.slow
@each("path", list(vectors()))
def test_whatever_the_bytes_there_are_rows_and_lines(tmp_path: Path, path: str) -> None:
    picked = random.Random(path)
    data = data_of(path)
    for _ in range(8):
        damaged = bytearray(data)
        for _ in range(picked.randrange(1, 5) if data else 0):
            damaged[picked.randrange(len(data))] = picked.choice([0, 1, 0x7F, 0x80, 0xFF])
        made = write(tmp_path, path, bytes(damaged[: picked.randrange(len(data) + 1)]))
        text = DumpText(width=60, colour=True)
        for row in rows(made, DumpOptions(deep=True, convention=CONVENTIONS["connect"])):
            assert list(text.lines(json.loads(msgspec.json.encode(row))))
        assert text.summary()


def lines(row: Row, width: int | None = None, *, colour: bool = False) -> list[str]:
    return list(DumpText(width=width, colour=colour).lines(row))


def record(**fields: Any) -> Row:
    given = {"type": "record", "file": "f", "offset": 7, "timestamp": 0, "headers": []}
    return {**given, "key": None, "value": None, "keySize": -1, "valueSize": -1, **fields}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain text", "plain text"),
        ("null", '"null"'),
        (None, "null"),
        ("", '""'),
        ("0x12", '"0x12"'),
        ("a ", '"a "'),
        ('"a', r'"\"a"'),
        ("\x1b[31m", r'"\u001b[31m"'),
        ("\x9b31m\u202e", r'"\u009b31m\u202e"'),
        ({"base64": "AAH/"}, "0x0001ff"),
        ({"hex": "0001ff"}, "0x0001ff"),
        ({"base64": "AA==", "reason": "no"}, "0x00 (no)"),
        ({"reason": "no"}, "null (no)"),
        (-5, "-5"),
        ({"type": 1, "message": "M", "version": 2, "data": {"a": 1}}, 'M v2 {"a": 1}'),
        ({"type": 1, "message": "M", "version": 2, "data": {}, "state": "Dead"}, "M v2 Dead {}"),
    ],
)
def test_values_in_text_look_like_nothing_else(value: Any, shown: str) -> None:
    [line] = lines(record(value=value))
    assert line.endswith(f"  key null  value {shown}")


def test_a_terminal_is_never_overrun() -> None:
    long = record(key="k" * 300, value="v" * 5000, keySize=300, valueSize=5000)
    for width in (40, 80, 200):
        shown = lines(long, width)
        assert all(len(line) <= width for line in shown)
        assert shown[-1].endswith("v… 5000 bytes")
    [whole] = lines(long)
    assert "v" * 5000 in whole


def test_colour_changes_no_word() -> None:
    row = record(key="k", value="v", headers=[{"key": "a", "value": None}])
    coloured = "\n".join(lines(row, 80, colour=True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9]*m", "", coloured) == "\n".join(lines(row, 80))


def test_a_closed_pipe_is_no_error_to_read_about(root: Path) -> None:
    dump = [
        sys.executable,
        "-m",
        "flexwire",
        "records",
        "dump",
        "--deep",
        *map(str, root.glob("*-0")),
    ]
    with subprocess.Popen(dump, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""


@pytest.mark.slow
def test_on_a_terminal_there_is_colour_unless_it_is_unwanted(root: Path) -> None:
    assert b"\x1b[" in on_a_terminal(root / f"tx-0/{BASE}.log", {})
    assert b"\x1b[" not in on_a_terminal(root / f"tx-0/{BASE}.log", {"NO_COLOR": "1"})


def on_a_terminal(path: Path, environment: dict[str, str]) -> bytes:
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "flexwire", "records", "dump", str(path)],
            stdout=theirs,
            env={**os.environ, "TERM": "xterm", **environment},
            check=True,
        )
        return os.read(ours, 100_000)
    finally:
        os.close(theirs)
        os.close(ours)


def test_a_progress_bar_leaves_the_output_alone(tmp_path: Path) -> None:
    # The library rich would interpret this name as markup.
    log = write(tmp_path, f"[red]-0/{BASE}.log", data_of(f"orders-none-0/{BASE}.log") * 400)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "flexwire", "records", "dump", "--format", "json", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        out, _ = running.communicate()
        told = os.read(ours, 100_000)
    os.close(ours)
    assert sum(json.loads(line)["type"] == "batch" for line in out.splitlines()) == 2000
    assert b"[red]-0/" in told
    assert running.returncode == 100
