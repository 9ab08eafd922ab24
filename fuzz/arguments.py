"""The command line of what runs in rounds of chance: ``[--rounds N] [--seed N]``."""

from __future__ import annotations

import argparse
import secrets
from typing import NamedTuple


class Asked(NamedTuple):
    """How many rounds, and the seed that makes them the same again."""

    rounds: int
    seed: int


def asked(program: str, page: str | None, *, rounds: int, of: str) -> Asked:
    """What the command line asks for: so many ``rounds`` ``of`` something, if it says no number."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=page)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"{of}, {rounds} by default")
    parser.add_argument("--seed", type=int, default=None, help="the same rounds again")
    given = parser.parse_args()
    return Asked(given.rounds, secrets.randbits(32) if given.seed is None else given.seed)
