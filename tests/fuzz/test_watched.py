"""The run with sanitizers fails if one reports an error, and states why if none is available."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import watched
from fuzz.guard import PROGRAMS
from tests import sanitized


@pytest.mark.parametrize(
    ("status", "told", "code"),
    [
        (0, "", 0),
        (1, "", 1),
        (0, "kernel.pyx:7: runtime error: shift", 1),
        (1, "AddressSanitizer", 1),
    ],
)
def test_what_a_sanitizer_finds_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    told: str,
    code: int,
) -> None:
    asked = []

    def run(kernels: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        asked.append((kernels, arguments))
        return subprocess.CompletedProcess([], status, "", told)

    monkeypatch.setattr(sanitized, "lacking", lambda: None)
    monkeypatch.setattr(sanitized, "built", lambda: Path("kernels"))
    monkeypatch.setattr(sanitized, "run", run)
    monkeypatch.setattr(sys, "argv", ["watched", "--rounds", "7"])
    assert watched.main() == code
    assert asked == [(Path("kernels"), (program, "7")) for program in PROGRAMS]
    assert told in capsys.readouterr().out


def test_a_machine_without_sanitizers_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sanitized, "lacking", lambda: "no compiler")
    monkeypatch.setattr(sys, "argv", ["watched"])
    assert watched.main() == 0
    assert "no compiler" in capsys.readouterr().out
