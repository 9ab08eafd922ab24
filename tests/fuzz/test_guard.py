"""The run between guard pages fails if a lie goes unnoticed, or if a program does not end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzz import guard

ROOT = Path(__file__).parents[2]


class Programs:
    """Stand in for the programs: record each call, and return its exit status."""

    def __init__(self, sound: int, lying: int) -> None:
        self.sound, self.lying = sound, lying
        self.calls: list[list[str]] = []

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(command[2:])
        code = self.lying if "--lie" in command else self.sound
        return subprocess.CompletedProcess(command, code)


@pytest.mark.parametrize(
    ("sound", "lying", "code"),
    [
        (0, -signal.SIGSEGV, 0),
        (0, -signal.SIGBUS, 0),
        # The kernel did not notice a lie, or a control run failed for another reason.
        (0, 0, 1),
        (0, 1, 1),
        (0, -signal.SIGABRT, 1),
        (-signal.SIGSEGV, -signal.SIGSEGV, 1),
        (1, -signal.SIGSEGV, 1),
    ],
)
def test_only_lies_end_at_a_page(
    monkeypatch: pytest.MonkeyPatch, sound: int, lying: int, code: int
) -> None:
    programs = Programs(sound, lying)
    monkeypatch.setattr(subprocess, "run", programs)
    monkeypatch.setattr(sys, "argv", ["guard", "--rounds", "7"])
    assert guard.main() == code
    assert {call[1] for call in programs.calls} == {"7"}
    assert len(programs.calls) == sum(1 + len(lies) for lies in guard.PROGRAMS.values())


def test_one_that_fails_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        caught = "--lie" in command and command[-1] != "columns"
        return subprocess.CompletedProcess(command, -signal.SIGSEGV if caught else 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["guard"])
    assert guard.main() == 1


def test_every_guard_of_the_tests_is_run_with_every_lie_it_knows() -> None:
    found = {}
    for path in (ROOT / "tests").rglob("*guard.py"):
        text = path.read_text(encoding="utf-8")
        if "__main__" in text and not path.name.startswith("test_"):
            lies = re.search(r"\basked\(__doc__((?:, \"\w+\")+)\)", text)
            words = re.findall(r"\w+", lies[1]) if lies else []
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name] = tuple(("--lie", word) for word in words) or (("--lie",),)
    assert found == guard.PROGRAMS
