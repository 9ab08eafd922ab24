"""A test that changes or measures its whole process runs in a process of its own.

A pytest-xdist worker runs other threads: one communicates with the run, and others belong to
servers that tests share. If a test changes its process, it affects these threads too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.own_process import MARKER, OwnProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[1]
# The functions by module; `monkeypatch` and `contextlib.chdir` undo their changes.
CHANGES = {
    "os": "umask chdir fchdir chroot putenv unsetenv dup2 closerange fork forkpty nice setpriority"
    " sched_setaffinity sched_setscheduler setuid setgid setsid setpgid setgroups abort _exit"
    " set_blocking",
    "os.environ": "update pop popitem setdefault clear",
    "signal": "signal raise_signal alarm setitimer pthread_kill set_wakeup_fd siginterrupt",
    "_thread": "interrupt_main",
    "resource": "setrlimit prlimit",
    "locale": "setlocale",
    "time": "tzset",
    "gc": "enable disable freeze unfreeze set_threshold set_debug",
    "sys": "setswitchinterval setrecursionlimit set_int_max_str_digits set_asyncgen_hooks"
    " addaudithook setdlopenflags getallocatedblocks",
    "threading": "settrace settrace_all_threads setprofile setprofile_all_threads stack_size",
    "faulthandler": "enable disable register unregister dump_traceback_later",
    "tracemalloc": "start stop clear_traces reset_peak",
    "socket": "setdefaulttimeout",
    "random": "seed",
    "decimal": "setcontext",
    "logging": "disable basicConfig captureWarnings",
    "logging.root": "setLevel",
    "multiprocessing": "set_start_method set_executable set_forkserver_preload",
    "asyncio": "set_event_loop set_event_loop_policy",
}
WHOLE = {f"{module}.{name}" for module, names in CHANGES.items() for name in names.split()}
# Functions from CPython's own tests, under any import name.
ANYWHERE = {"set_nomemory", "remove_mem_hooks"}
# Files without tests that change a process, with the reason.
MAY = {
    "collecting.py": "what it sets for all tests holds until their process ends",
    "conftest.py": "where Java is holds for the session of Spark",
    "ending.py": "it ends the run",
    "own_process.py": "it takes its own variable from the environment",
    "sanitized.py": "it is a program, which ends without the interpreter's own end",
    "traced.py": "it ends the tracing whatever happens",
    "spark/faulty.py": "its functions run in workers of Spark",
    "spark/on_cluster.py": "its functions run in workers of Spark",
    "spark/parts.py": "its functions run in workers of Spark",
}


def names(tree: ast.AST) -> dict[str, str]:
    """Return the meaning of each imported name."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                found[one.asname or one.name.partition(".")[0]] = one.name
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                found[one.asname or one.name] = f"{node.module}.{one.name}"
    return found


def dotted(node: ast.AST, imported: dict[str, str]) -> str:
    """Return the dotted name that the expression reads, or ""."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (before := dotted(node.value, imported)):
        return f"{before}.{node.attr}"
    return ""


def changes(node: ast.AST, imported: dict[str, str]) -> Iterator[str]:
    """Yield the calls in a piece of code that change the whole process."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name | ast.Attribute):
            name = dotted(one, imported)
            if name in WHOLE or name.rpartition(".")[2] in ANYWHERE:
                yield name
        # The code sets or removes a variable of the environment.
        if isinstance(one, ast.Subscript) and not isinstance(one.ctx, ast.Load):
            yield from {dotted(one.value, imported)} & {"os.environ"}
        if isinstance(one, ast.Call):
            # The function is called, or passed to a function that calls it.
            called = {dotted(part, imported) for part in (one.func, *one.args)}
            if called & {"os.kill", "os.killpg"} and re.search(r"getp(id|grp)", ast.unparse(one)):
                yield "os.kill"
            if dotted(one.func, imported) == "os.close" and ".fileno" in ast.unparse(one.args[0]):
                yield "os.close"


def is_marked(node: ast.AST) -> bool:
    return f"pytest.mark.{MARKER}" in ast.unparse(node)


def unsafe(text: str) -> Iterator[str]:
    """Yield the tests that change their process without a mark, each with the change."""
    tree = ast.parse(text)
    imported = names(tree)
    assigned = [one for one in tree.body if isinstance(one, ast.Assign)]
    is_whole = any(
        ast.unparse(one.targets[0]) == "pytestmark" and is_marked(one) for one in assigned
    )
    if is_whole or not any(changes(tree, imported)):
        return
    functions = {
        one.name: one
        for one in tree.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    found = {name: {*changes(one, imported)} for name, one in functions.items()}
    used = {
        name: {part.id for part in ast.walk(one) if isinstance(part, ast.Name)}
        | {part.arg for part in ast.walk(one) if isinstance(part, ast.arg)}
        for name, one in functions.items()
    }
    # A caller has the same effects as the function that it calls.
    grew = any(found.values())
    while grew:
        grew = False
        for name, others in used.items():
            more = {one for other in others & functions.keys() for one in found[other]}
            grew |= not more <= found[name]
            found[name] |= more
    for name, one in functions.items():
        if name.lower().startswith("test") and found[name] and not is_marked_function(one):
            yield f"{name}: {', '.join(sorted(found[name]))}"
    outside = [one for one in tree.body if one not in functions.values()]
    for statement in outside:
        yield from (f"line {statement.lineno}: {name}" for name in changes(statement, imported))


def is_marked_function(node: ast.AST) -> bool:
    return any(map(is_marked, getattr(node, "decorator_list", ())))


@pytest.mark.slow
def test_what_changes_its_process_has_one_of_its_own() -> None:
    found = {
        f"{name}::{one}"
        for path in sorted(TESTS.rglob("*.py"))
        if (name := str(path.relative_to(TESTS))).rpartition("/")[2].startswith("test_")
        for one in unsafe(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.slow
def test_what_is_no_test_changes_no_process_without_a_reason() -> None:
    found = {
        name
        for path in TESTS.rglob("*.py")
        if not (name := str(path.relative_to(TESTS))).rpartition("/")[2].startswith("test_")
        and [*changes(tree := ast.parse(path.read_text(encoding="utf-8")), names(tree))]
    }
    assert found == MAY.keys()


@pytest.mark.parametrize(
    "body",
    [
        "import os\ndef test_a():\n os.umask(0)",
        "from os import umask as mask\ndef test_a():\n mask(0)",
        "import os\ndef test_a():\n os.environ['A'] = 'b'",
        "import os\ndef test_a():\n del os.environ['A']",
        "import os\ndef test_a():\n os.environ.pop('A')",
        "import os, signal\ndef test_a():\n os.kill(os.getpid(), signal.SIGINT)",
        "import os\ndef test_a(loop):\n loop.call_soon(os.kill, os.getpid(), 2)",
        "import gc\ndef helped():\n gc.freeze()\ndef test_a():\n helped()",
        "import gc, pytest\n@pytest.fixture\ndef off():\n gc.disable()\ndef test_a(off):\n pass",
        "import resource\nclass TestA:\n def test_a(self):\n  resource.setrlimit(1, (1, 1))",
        "def test_a():\n import signal\n signal.alarm(1)",
        "def test_a(module):\n module.set_nomemory(1)",
        "import sys\ndef test_a():\n assert sys.getallocatedblocks() < 9",
        "import os\ndef test_a(file):\n os.close(file.fileno())",
    ],
)
def test_changes_are_found(body: str) -> None:
    assert [*unsafe(body)]
    head = "class TestA" if "class" in body else "def test_a"
    assert not [*unsafe(body.replace(head, f"@pytest.mark.{MARKER}\n{head}"))]
    assert not [*unsafe(f"pytestmark = pytest.mark.{MARKER}\n{body}")]


def test_what_restores_itself_is_none() -> None:
    body = "import os\ndef test_a(monkeypatch):\n monkeypatch.setenv('A', 'b')\n os.environ['A']"
    assert not [*unsafe(body)]
    assert not [*unsafe("import os\ndef test_a(other):\n os.kill(other.pid, 9)")]


def test_marked_tests_are_run_elsewhere(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        assert isinstance(item, OwnProcess) or not item.get_closest_marker(MARKER)
