"""Where messages are written, and how that grows.

``writing`` is False where they are only measured.
"""

from __future__ import annotations

from flexwire.kernels.columns.layout import C_NEED, C_OUT, FULL, O_COMPACT
from flexwire.kernels.machine import load_word, part, store_word
from flexwire.kernels.memory import inlined
from flexwire.kernels.wire.lengths import length_size, write_length

# What each operation has room for before it begins: more than any number and any header takes.
SLACK = 64


@part
def grow_output(call: int, at: int, length: int) -> int:
    """Ask for room for ``length`` bytes more, and what an operation needs besides."""
    store_word(call + C_NEED, at - load_word(call + C_OUT) + length + SLACK)
    return FULL


@inlined
def put_length(operation: int, width: int, length: int, at: int, writing: bool) -> int:
    """Write a length or count, or `NULL`; gives the position after it."""
    compact = load_word(operation + O_COMPACT)
    if writing:
        return write_length(at, compact, width, length)
    return at + length_size(compact, width, length)
