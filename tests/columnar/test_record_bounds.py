"""No record kernel touches a byte outside the data or its columns."""

from __future__ import annotations

import signal

import pytest

from tests.modules import run

pytestmark = pytest.mark.guard

GUARD = "tests.columnar.record_guard"


def test_nothing_is_touched_beyond_a_guard() -> None:
    done = run(GUARD, "2000")
    assert done.returncode == 0, done.stderr
    rounds, read, counted = (int(part.split()[0]) for part in done.stdout.split(", "))
    assert rounds == 2000
    # Some damage is in values, so that kernels also read batches to their last byte.
    assert read > 2000
    assert counted > 2000


@pytest.mark.long
@pytest.mark.parametrize("lie", ["input", "output"])
def test_the_guard_would_catch_one_byte_too_many(lie: str) -> None:
    assert run(GUARD, "3000", "--lie", lie).returncode == -signal.SIGSEGV
