"""With every reader, a compression bomb takes no more memory than its limit allows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from flexwire.records.inflation import Inflation
from tests.records.batches import record
from tests.records.inflating import FORMS
from tests.tables.inflating import EXECUTORS, check

pytestmark = pytest.mark.own_process

MIB: Final = 1 << 20
INSIDE: Final = 80 * MIB
ALLOWED: Final = 32 * MIB
"""Reused buffers take 20 MiB of this memory."""
COPIES: Final = 5
"""How often the bomb's own bytes are copied on their way into a table."""


def _peak() -> int:
    """Return the peak memory of the process in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [line] = [one for one in status.splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.magic == 2])
def test_a_bomb_is_refused_in_little_memory(name: str) -> None:
    form = FORMS[name]
    data = form.packed(record(value=bytes(INSIDE)), 1)
    small = form.body([b"x" * 500] * 9)
    # One-time work runs before the measurement.
    check(form, small, 9, Inflation(), is_read=True)
    for how in (Inflation(MIB), Inflation(max_ratio=2).held()):
        for run in EXECUTORS:
            _forget_peak()
            before = _peak()
            told = run(data, how)
            assert told.records == 0, run
            assert len(told.reasons) == 1, run
            assert _peak() - before < ALLOWED + COPIES * len(data), run
