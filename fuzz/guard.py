"""``python -m fuzz.guard [--rounds N]``: run every kernel between protected pages.

Each program first gets lies that lead it onto such a page, and must crash: a guard that misses a
lie proves nothing. Then it reads many damaged inputs, and must not crash.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MILLION = 1_000_000
# A lie is noticed at the first input that reaches its page; this limit is many times that.
_CONTROL_ROUNDS = 20_000
# The signals for access to such a page.
_CAUGHT = {-signal.SIGSEGV, -signal.SIGBUS}
PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "tests.kernels.guard": (("--lie",),),
    "tests.records.guard": (("--lie",),),
    "tests.columnar.guard": (("--lie", "input"), ("--lie", "columns"), ("--lie", "output")),
    "tests.columnar.record_guard": (("--lie", "input"), ("--lie", "output")),
    "tests.capture.packets_guard": (("--lie", "input"), ("--lie", "rows")),
    "tests.capture.columns.framing_guard": (("--lie", "input"), ("--lie", "output")),
    "tests.capture.columns.turns_guard": (("--lie",),),
}
"""The programs, and the arguments that make each of them lie."""


def main() -> int:
    """Run all programs, with all their lies; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.guard", description=__doc__)
    parser.add_argument("--rounds", type=int, default=MILLION, help="inputs for each program")
    rounds = parser.parse_args().rounds
    failed = 0
    for program, lies in PROGRAMS.items():
        for lie in lies:
            found = _run(program, min(rounds, _CONTROL_ROUNDS), lie)
            failed += not _told(found in _CAUGHT, f"is caught (status {found})")
        found = _run(program, rounds, ())
        failed += not _told(found == 0, f"touches nothing (status {found})")
    return 1 if failed else 0


def _run(program: str, rounds: int, lie: tuple[str, ...]) -> int:
    sys.stdout.write(f"== {' '.join([program, str(rounds), *lie])}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", program, str(rounds), *lie]
    started = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own
    sys.stdout.write(f"   {time.monotonic() - started:.0f} s: ")
    return code


def _told(right: bool, what: str) -> bool:  # noqa: FBT001 - what was found
    sys.stdout.write(f"{what}\n" if right else f"FAILED, expected: {what}\n")
    sys.stdout.flush()
    return right


if __name__ == "__main__":
    sys.exit(main())
