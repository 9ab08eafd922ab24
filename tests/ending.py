"""A test run ends if one of its processes is lost, or if the run takes too long.

pytest-xdist replaces a lost worker. If whole files are assigned to processes, the replacement may
get a single test and wait for a second one before it runs the first. Then the run never ends. Here,
the loss of a worker ends the run with an error.

A run that takes 20 minutes prints which tests are running, and also ends. The variable
``FLEXWIRE_TEST_MINUTES`` sets another limit; 0 means no limit. A Python thread enforces the limit.
If a test holds the interpreter's lock, `faulthandler` ends the run a little later.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE: Final = "FLEXWIRE_TEST_MINUTES"
MINUTES: Final = 20.0
"""How many minutes a run may take, unless the variable sets another limit."""

LONGER: Final = {"long": 60.0, "cluster": 60.0, "kafka": 120.0}
"""How many minutes a run with tests of each marker may take. `make test` has no such tests."""

GRACE_SECONDS = 20.0
"""How long after the limit `faulthandler` ends a run that the thread could not end."""

_TRACEBACK_SECONDS = 5.0
_TOLD = 3
_DUMP = signal.SIGUSR1


class Watch:
    """Keep the state of a run, and end the run if necessary.

    There is one instance for each run, not one for each worker.
    """

    def __init__(self, minutes: float, stderr: int) -> None:
        self.minutes = minutes
        self.scheduler: Any = None
        self.workers: dict[str, int] = {}
        """The process id of each ready worker, by the worker's name."""
        self._running: dict[str, float] = {}
        self._failed: list[str] = []
        self._begun = time.monotonic()
        self._stderr = stderr
        self._changed = threading.Event()
        self._at = self._begun

    def start(self) -> None:
        """Start enforcing the limit."""
        self.limit(self.minutes)
        threading.Thread(target=self._keep, name="limit of the tests", daemon=True).start()

    def limit(self, minutes: float) -> None:
        """Set the limit, in minutes from the beginning of the run."""
        self.minutes = minutes
        self._at = self._begun + 60 * minutes
        left = max(0.1, self._at - time.monotonic())
        faulthandler.dump_traceback_later(left + GRACE_SECONDS, exit=True, file=self._stderr)
        self._changed.set()

    def doing(self) -> Iterator[str]:
        """Yield a line for each process: its running tests, and how long each has run."""
        now = time.monotonic()
        running = {
            test: f"{test} for {now - begun:.0f} s" for test, begun in dict(self._running).items()
        }
        of: dict[str, list[str]] = {name: [] for name in self.workers}
        for node, units in dict(getattr(self.scheduler, "assigned_work", {})).items():
            has = {test for unit in dict(units).values() for test in dict(unit)}
            of.setdefault(node.gateway.id, []).extend(
                running.pop(test) for test in has & running.keys()
            )
        if running or not of:
            of["this process"] = [*running.values()]
        for name, tests in of.items():
            yield f"  {name}: {', '.join(tests) or 'no test'}"

    def waiting(self) -> Iterator[str]:
        """Yield a line for each worker: its tests that have not ended."""
        for node, units in dict(getattr(self.scheduler, "assigned_work", {})).items():
            tests = [test for unit in units.values() for test, ended in unit.items() if not ended]
            more = f" and {len(tests) - _TOLD} more" if len(tests) > _TOLD else ""
            yield f"  {node.gateway.id}: {', '.join(tests[:_TOLD]) or 'no test'}{more}"

    def end_workers(self) -> None:
        """Kill the workers and all their child processes."""
        for pid in descendants(os.getpid()):
            _signal(pid, signal.SIGKILL)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test has started."""
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test has finished."""
        self._running.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember which tests failed, because a killed run prints no summary."""
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Give runs with slower tests a longer limit."""
        for marker, minutes in LONGER.items():
            if VARIABLE not in os.environ and any(one.get_closest_marker(marker) for one in items):
                self.limit(max(self.minutes, minutes))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Remember the process id of a worker."""
        self.workers[node.gateway.id] = node.gateway._rinfo().pid

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """End the run if a worker is lost: it has ended, or it no longer sends anything."""
        if not error:
            self.workers.pop(node.gateway.id, None)
            return
        doing = "\n".join(self.doing())
        self.end_workers()
        pytest.exit(
            f"The worker {node.gateway.id} was lost ({error}); the run ends here. "
            f"The tests that were running:\n{doing}",
            returncode=pytest.ExitCode.INTERRUPTED,
        )

    def pytest_internalerror(self) -> None:
        """Report the workers' tests, and end the workers.

        If a worker is lost early, xdist fails when it sends something to that worker.
        """
        lines = ["The run itself failed. Tests of its workers that did not end:", *self.waiting()]
        os.write(self._stderr, "\n".join([*lines, ""]).encode())
        self.end_workers()

    def _keep(self) -> None:
        while (left := self._at - time.monotonic()) > 0:
            self._changed.wait(left)
            self._changed.clear()
        lines = [
            f"\nThe tests took {self.minutes:g} minutes, and are ended.",
            f"{VARIABLE} sets another limit.",
            "The tests that were running:",
            *self.doing(),
            f"Failed so far: {', '.join(dict.fromkeys(self._failed)) or 'none'}",
            "",
        ]
        os.write(self._stderr, "\n".join(lines).encode())
        for pid in self.workers.values():
            _signal(pid, _DUMP)
        if not self.workers:
            faulthandler.dump_traceback(self._stderr)
        time.sleep(_TRACEBACK_SECONDS)
        self.end_workers()
        os._exit(pytest.ExitCode.INTERRUPTED)


WATCH: Final = pytest.StashKey[Watch]()


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run; a worker only reports its state when the run asks for it."""
    # Later, output is captured, so the real standard error is kept.
    stderr = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    if hasattr(config, "workerinput"):
        faulthandler.register(_DUMP, stderr)
        return
    watch = Watch(float(os.environ.get(VARIABLE, MINUTES)), stderr)
    config.stash[WATCH] = watch
    config.pluginmanager.register(watch, "watch")
    if watch.minutes:
        watch.start()


def descendants(pid: int) -> list[int]:
    """Return the child processes of a process, and all of their descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program, in parentheses, may contain any characters.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue  # the process has ended
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = list(children.get(pid, ()))
    for one in found:
        found += children.get(one, ())
    return found


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # the process has ended
