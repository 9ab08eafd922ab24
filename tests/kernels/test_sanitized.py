"""Kernels compiled with sanitizers use only their own memory; planted mistakes were found."""

from __future__ import annotations

import pytest

from fuzz.guard import PROGRAMS
from tests import sanitized
from tests.kernels.planted import MISTAKES, PYTEST, RECORD, WRITES, digest
from tests.sanitized import FOUND, KERNELS, ROOT

_LACKING = sanitized.lacking()
pytestmark = [
    pytest.mark.guard,
    pytest.mark.skipif(_LACKING is not None, reason=_LACKING or "it runs"),
]
ROOMS = {one.stem for one in (ROOT / KERNELS).glob("*.pyx")}
# The number of damaged inputs for each program; `make guard` uses a million.
ROUNDS = "400"


def watched(*arguments: str) -> set[str]:
    """Run a module with sanitized kernels; return the kernels that it used."""
    done = sanitized.run(sanitized.built(), *arguments)
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    assert not any(one in done.stderr for one in FOUND), done.stderr[-6000:]
    return sanitized.rooms(done.stdout)


# `make test` runs the same programs with guard pages.
@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
def test_damaged_inputs_touch_nothing_else(program: str) -> None:
    assert watched(program, ROUNDS)


@pytest.mark.long
def test_boundaries_touch_nothing_else() -> None:
    used = watched(*PYTEST, *WRITES)
    # Every package was compiled with sanitizers, and is used by at least one of these tests or
    # programs.
    assert used.union(*(watched(one, "1") for one in PROGRAMS)) >= ROOMS


def test_the_mistakes_planted_in_these_kernels_were_found() -> None:
    # This module reads and writes no buffer.
    assert ROOMS - {*MISTAKES} == {"record_objects"}
    recorded = RECORD.read_text(encoding="utf-8").strip()
    assert recorded == digest(), "run `python -m tests.kernels.planted`: the kernels have changed"
