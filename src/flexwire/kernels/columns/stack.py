"""The stack of arrays that a kernel stands in."""

from __future__ import annotations

from flexwire.kernels.columns.layout import F_INDEX, F_LEFT, FRAME, O_AFTER, OPERATION
from flexwire.kernels.machine import load_word, store_word
from flexwire.kernels.memory import inlined


@inlined
def next_element(operation: int, frame: int, index: int) -> tuple[int, int, int]:
    """Go on with an array's next element, or after it; gives the operation, frame and index."""
    left = load_word(frame - FRAME + F_LEFT) - 1
    if left > 0:
        store_word(frame - FRAME + F_LEFT, left)
        return load_word(operation + O_AFTER), frame, index + 1
    return operation + OPERATION, frame - FRAME, load_word(frame - FRAME + F_INDEX)
