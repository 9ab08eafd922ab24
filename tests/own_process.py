"""Tests that change their whole process run in a process of their own.

A pytest-xdist worker has a thread that communicates with the run. A test that makes allocations
fail, or sends signals to its process, also affects that thread, and the run loses the worker. All
tests in a file that have the marker ``own_process`` run together in one separate process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from tests import ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest._code.code import TerminalRepr

MARKER: Final = "own_process"
MINUTES: Final = 10.0
"""How many minutes the marked tests of one file may take."""

_REPORTS = "FLEXWIRE_TEST_REPORTS"
"""The environment variable that names the file to which such a process writes its results."""

_TOLD = 20_000

Reports = dict[str, list[pytest.TestReport]]


class OwnProcess(pytest.Item):
    """A stand-in for a test that runs in its own process; it reports that test's result."""

    def __init__(self, *, test: pytest.Item, **about: Any) -> None:
        super().__init__(**about)
        self.test = test
        self.own_markers = test.own_markers
        self.keywords.update(test.keywords)

    @classmethod
    def of(cls, test: pytest.Item) -> OwnProcess:
        """Return the stand-in for a test."""
        assert test.parent is not None
        found = cls.from_parent(test.parent, name=test.name, nodeid=test.nodeid, test=test)
        assert isinstance(found, OwnProcess)
        return found

    def runtest(self) -> None:
        """Run the file's marked tests, unless they have run, and report this test's result."""
        kept = self.config.stash.setdefault(_RUN, {})
        if self.path not in kept:
            kept[self.path] = _run(
                [
                    one.nodeid
                    for one in self.session.items
                    if isinstance(one, OwnProcess) and one.path == self.path
                ],
                self.config,
            )
        reports, told = kept[self.path]
        mine = reports.get(self.nodeid, [])
        for one in mine:
            if one.failed:
                raise FailedElsewhere(one.longreprtext, one.sections)
            if one.skipped:
                # The last element, after the location of the skip, is the reason.
                *_, reason = cast("Sequence[Any]", one.longrepr)
                pytest.skip(str(reason).removeprefix("Skipped: "))
        if not mine or mine[-1].when != "teardown":
            raise FailedElsewhere(f"{self.nodeid} has no result.\n{told}", [])

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        """Return the failure message from the test's own process."""
        if not isinstance(excinfo.value, FailedElsewhere):
            return super().repr_failure(excinfo, style)
        text, sections = excinfo.value.args
        return "\n".join([text, *(f"--- {name} ---\n{said}" for name, said in sections)])

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return the location of the test."""
        return self.test.reportinfo()


class FailedElsewhere(Exception):  # noqa: N818 - the statement reports a failure
    """The failure of a test in its own process: its text and its output."""


_RUN: Final = pytest.StashKey[dict[Path, tuple[Reports, str]]]()


def _run(nodeids: list[str], config: pytest.Config) -> tuple[Reports, str]:
    """Run these tests in one process; return their reports, and a text on how the process ended."""
    with tempfile.TemporaryDirectory() as room:
        reports = Path(room) / "reports"
        reports.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ""]
        command += ["-p", "no:xdist", "--basetemp", f"{room}/temporary", *nodeids]
        done = subprocess.run(
            command,
            cwd=config.rootpath,
            env={**os.environ, _REPORTS: str(reports), ending.VARIABLE: str(MINUTES)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        found: Reports = {}
        for line in reports.read_text().splitlines():
            report = config.hook.pytest_report_from_serializable(
                config=config, data=json.loads(line)
            )
            found.setdefault(report.nodeid, []).append(report)
    told = f"Its process ended with {done.returncode}, and printed:\n{done.stdout[-_TOLD:]}"
    return found, told


def is_own(config: pytest.Config) -> bool:
    """Return whether this process was started to run marked tests, and is not a worker of a run."""
    return _REPORTS in os.environ and not hasattr(config, "workerinput")


class Reporter:
    """Write the result of each test as soon as it is known."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        # The child processes of a test must not count as such processes.
        self._path = Path(os.environ.pop(_REPORTS))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write one report."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("a") as file:
            file.write(json.dumps(data) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """If this process was started to run marked tests, report each result to the run."""
    if is_own(config):
        config.pluginmanager.register(Reporter(config), _NAME)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Replace the marked tests with stand-ins, which run them in a separate process."""
    if not config.pluginmanager.has_plugin(_NAME):
        items[:] = [
            OwnProcess.of(item) if item.get_closest_marker(MARKER) else item for item in items
        ]


_NAME = "own_process_reporter"
