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
# The number of damaged inputs for each program; `make guard` has a million.
ROUNDS = "400"


def test_damaged_inputs_and_boundaries_touch_nothing_else() -> None:
    kernels = sanitized.built()
    watched = set[str]()
    for arguments in (*((one, ROUNDS) for one in PROGRAMS), (*PYTEST, *WRITES)):
        done = sanitized.run(kernels, *arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        assert not any(one in done.stderr for one in FOUND), done.stderr[-6000:]
        watched |= sanitized.rooms(done.stdout)
    # Every room was compiled with sanitizers.
    assert watched >= ROOMS


def test_the_mistakes_planted_in_these_kernels_were_found() -> None:
    # It reads and writes no buffer.
    assert ROOMS - {*MISTAKES} == {"record_objects"}
    recorded = RECORD.read_text(encoding="utf-8").strip()
    assert recorded == digest(), "run `python -m tests.kernels.planted`: the kernels have changed"
