"""Where messages are written, and how it grows."""

from __future__ import annotations

from flexwire.kernels.columns.layout import C_NEED, C_OUT, FULL
from flexwire.kernels.machine import load_word, part, store_word

# What each operation has room for before it begins: more than any number and any header takes.
SLACK = 64


@part
def grow_output(call: int, at: int, length: int) -> int:
    """Ask for room for ``length`` bytes more, and what an operation needs besides."""
    store_word(call + C_NEED, at - load_word(call + C_OUT) + length + SLACK)
    return FULL
