"""The kernels that cut segments into frames touch no byte beyond payloads and the room for them.

That the guard would catch a byte too many is held by ``make guard``.
"""

from __future__ import annotations

import pytest

from tests.modules import run

pytestmark = pytest.mark.guard

GUARD = "tests.capture.columns.framing_guard"


def test_nothing_is_touched_beyond_a_guard() -> None:
    done = run(GUARD, "10000")
    assert done.returncode == 0, done.stderr
    rounds, frames = (int(part.split()[0]) for part in done.stdout.split(", "))
    # So that the kernels took most segments in.
    assert rounds >= 10000
    assert frames > 1500
