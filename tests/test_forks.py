"""A process that is forked while other threads work inherits no lock that remains locked."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flexwire
from tests.house.test_process_changes import dotted, names

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(flexwire.__file__).parent
LOCKS = {f"threading.{name}" for name in ("Lock", "RLock", "Condition", "Semaphore")}
OURS = "flexwire.forks.lock_over_forks"
MANNER = PACKAGE / "forks.py"

# A thread holds the lock nearly all the time, and each new process checks whether it is free.
FORKED = """
import os, sys, threading, warnings
from importlib import import_module
warnings.simplefilter("ignore", DeprecationWarning)
lock = getattr(import_module(sys.argv[1]), sys.argv[2])
is_held, is_over = threading.Event(), threading.Event()

def hold():
    while not is_over.is_set():
        with lock:
            is_held.set()
            sum(range(100_000))

holder = threading.Thread(target=hold)
holder.start()
is_held.wait()
left = 0
for _ in range(8):
    child = os.fork()
    if not child:
        os._exit(not lock.acquire(blocking=False))
    left += os.waitpid(child, 0)[1] != 0
is_over.set()
holder.join()
sys.exit(left)
"""


def module_of(path: Path) -> str:
    return ".".join(["flexwire", *path.relative_to(PACKAGE).with_suffix("").parts])


def locks_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each lock that a file creates on import: the function that makes the lock, and its
    name.
    """
    tree = ast.parse(text)
    imported = names(tree)
    for node in tree.body:
        value = getattr(node, "value", None)
        if not (isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(value, ast.Call)):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        made = dotted(value.func, imported)
        if made in LOCKS | {OURS} and isinstance(target, ast.Name):
            yield made, target.id


TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
FOUND = [
    (module_of(path), made, name)
    for path, text in TEXTS.items()
    # If all files were parsed, each process of a run would spend seconds on this.
    if path != MANNER and re.search(r"\b(threading|forks)\b", text)
    for made, name in locks_of(text)
]


def test_every_lock_of_a_process_is_one_that_a_fork_waits_for() -> None:
    assert len(FOUND) >= 2
    assert [(module, name) for module, made, name in FOUND if made != OURS] == []


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), [(module, name) for module, _, name in FOUND])
def test_a_lock_is_free_in_a_new_process(module: str, name: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, module, name], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "import threading\n_LOCK = threading.Lock()",
        "from threading import RLock\nA: RLock = RLock()",
        "from flexwire.forks import lock_over_forks\nA = lock_over_forks()",
    ],
)
def test_a_lock_is_seen(text: str) -> None:
    assert [*locks_of(text)]
