"""The command line of programs that run random rounds: ``[--rounds N] [--seed N]``."""

from __future__ import annotations

import argparse
import secrets
from typing import NamedTuple


class Asked(NamedTuple):
    """The number of rounds, and the seed that reproduces them."""

    rounds: int
    seed: int


def asked(program: str, page: str | None, *, rounds: int, of: str) -> Asked:
    """Read the command line; without a number, run ``rounds`` rounds.

    ``of`` names a round in the help.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=page)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"{of}, {rounds} by default")
    parser.add_argument("--seed", type=int, default=None, help="the same rounds again")
    given = parser.parse_args()
    return Asked(given.rounds, secrets.randbits(32) if given.seed is None else given.seed)
