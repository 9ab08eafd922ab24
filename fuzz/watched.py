"""``python -m fuzz.watched [--rounds N]``: run every kernel with sanitizers on damaged inputs.

It runs the programs of `fuzz.guard`. If a kernel reads or writes outside its memory, its program
ends and prints the line. If sanitizers are not available, it prints the reason, which is no
failure.
"""

from __future__ import annotations

import argparse
import sys

from fuzz.guard import PROGRAMS
from tests import sanitized

ROUNDS = 50_000


def main() -> int:
    """Run all programs; return 1 if a sanitizer reports something or a program fails."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.watched", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="inputs for each program")
    rounds = parser.parse_args().rounds
    if (lacking := sanitized.lacking()) is not None:
        sys.stdout.write(f"not run with sanitizers: {lacking}\n")
        return 0
    kernels, failed = sanitized.built(), 0
    for program in PROGRAMS:
        sys.stdout.write(f"== {program} {rounds}, with sanitizers\n")
        sys.stdout.flush()
        done = sanitized.run(kernels, program, str(rounds))
        found = any(one in done.stderr for one in sanitized.FOUND)
        if done.returncode or found:
            failed += 1
            sys.stdout.write(f"FAILED (status {done.returncode})\n{done.stderr[-8000:]}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
