"""No test fails because the machine is busy: tests assert no durations and wait long enough."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.test_process_changes import dotted, names

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[1]
CLOCKS = {
    f"time.{name}{unit}"
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
}
# Calls that accept a limit in seconds, and fail when it is reached.
LIMITED = {"run", "check_call", "check_output", "call", "communicate", "wait", "join", "result"}
LIMITED |= {"get", "wait_for"}
PATIENCE = 300
"""The shortest wait for an expected event, in seconds; `tests/ending.py` ends the whole run."""


def hurries(text: str) -> Iterator[str]:
    """Yield the clocks that a file's assertions read, and its short limits."""
    tree = ast.parse(text)
    imported = names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            # A difference is a duration. In contrast, a loop may compare a clock with the end of
            # its wait.
            taken = [one for one in ast.walk(node.test) if isinstance(one, ast.BinOp)]
            for one in (part for whole in taken for part in ast.walk(whole)):
                if isinstance(one, ast.Call) and (name := dotted(one.func, imported)) in CLOCKS:
                    yield name
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            limits = [one.value for one in node.keywords if one.arg == "timeout"]
            for limit in limits if node.func.attr in LIMITED else []:
                seconds = limit.value if isinstance(limit, ast.Constant) else None
                if isinstance(seconds, int | float) and seconds < PATIENCE:
                    yield f"{node.func.attr}(timeout={seconds})"


@pytest.mark.slow
def test_no_test_hurries() -> None:
    found = {
        f"{path.relative_to(TESTS).as_posix()}: {one}"
        for path in TESTS.rglob("*.py")
        for one in hurries(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "body",
    [
        "import time\nassert time.monotonic() - begun < 1",
        "from time import process_time as now\nassert now() - begun < 1",
        "subprocess.run(command, timeout=60)",
        "process.wait(timeout=5)",
        "answers.get(timeout=0.5)",
    ],
)
def test_what_hurries_is_seen(body: str) -> None:
    assert [*hurries(body)]


@pytest.mark.parametrize(
    "body",
    [
        "import time\nassert time.monotonic() < until",
        "run(command, timeout=300)",
        "ask(a, timeout=0.2)",
    ],
)
def test_what_does_not_is_not(body: str) -> None:
    assert not [*hurries(body)]
