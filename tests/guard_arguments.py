"""The command line of programs that run kernels beside protected pages: ``ROUNDS [--lie WHAT]``."""

from __future__ import annotations

import argparse


def asked(told: str | None, *lies: str) -> tuple[int, str | None]:
    """Return the number of rounds, and the lie chosen from ``lies``; ``told`` is the help text."""
    parser = argparse.ArgumentParser(description=told)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--lie", choices=lies)
    given = parser.parse_args()
    return given.rounds, given.lie
