"""The kernel that reads packets uses no byte and no row outside its buffers."""

from __future__ import annotations

import signal

import pytest

from tests.modules import run

pytestmark = pytest.mark.guard

GUARD = "tests.capture.packets_guard"


def test_nothing_is_touched_beyond_a_guard() -> None:
    done = run(GUARD, "15000")
    assert done.returncode == 0, done.stderr
    rounds, segments = (int(part.split()[0]) for part in done.stdout.split(", "))
    assert rounds == 15_000
    assert segments > 3000


@pytest.mark.long
@pytest.mark.parametrize("lie", ["input", "rows"])
def test_the_guard_would_catch_a_byte_too_many(lie: str) -> None:
    assert run(GUARD, "3000", "--lie", lie).returncode == -signal.SIGSEGV
