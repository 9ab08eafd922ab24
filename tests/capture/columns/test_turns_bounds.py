"""Kernels that read headers and copy payloads touch no byte outside a payload."""

from __future__ import annotations

import signal

import pytest

from tests.modules import run

pytestmark = pytest.mark.guard

GUARD = "tests.capture.columns.turns_guard"


def test_nothing_is_touched_beyond_a_guard() -> None:
    done = run(GUARD, "2000")
    assert done.returncode == 0, done.stderr
    rounds, plain = (int(part.split()[0]) for part in done.stdout.split(", "))
    assert rounds == 2000
    # The kernel also read the payloads to their last byte.
    assert plain > 800


@pytest.mark.long
def test_the_guard_would_catch_a_byte_too_many() -> None:
    assert run(GUARD, "1000", "--lie").returncode == -signal.SIGSEGV
