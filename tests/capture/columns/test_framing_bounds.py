"""Kernels that cut segments into frames touch no byte outside the payloads and output buffers.

``make guard`` proves that the guard catches one byte too many.
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
    # The kernels processed most of the segments.
    assert rounds >= 10000
    assert frames > 1500
