"""The kernels that inflate and bound touch no byte beyond the data or the room."""

from __future__ import annotations

import signal

import pytest

from tests.modules import run

pytestmark = pytest.mark.guard

GUARD = "tests.columnar.inflating_guard"


def test_nothing_is_touched_beyond_a_guard() -> None:
    done = run(GUARD, "60000")
    assert done.returncode == 0, done.stderr
    rounds, frames, members = (int(part.split()[0]) for part in done.stdout.split(", "))
    assert rounds == 60_000
    # Some of the damage is in literals, so that frames are read to their last byte too.
    assert frames > 4000
    # A member with damage is read to its end, and refused by its crc.
    assert members > 1500


@pytest.mark.parametrize("lie", ["input", "output"])
def test_the_guard_would_catch_a_byte_too_many(lie: str) -> None:
    assert run(GUARD, "3000", "--lie", lie).returncode == -signal.SIGSEGV
