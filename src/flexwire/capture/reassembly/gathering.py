"""Bytes from many places of an array put side by side, as Arrow has the values of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.columnar.program import address, allocate
from flexwire.kernels.capture import turns_layout as L  # noqa: N812 - a word in front of some ten
from flexwire.kernels.engine import kernel

if TYPE_CHECKING:
    Words = np.ndarray[Any, Any]


def gathered(data: Words, starts: Words, offsets: Words) -> Words:
    """Give bytes of ``data`` from ``starts`` on, of each as many as lie between two ``offsets``.

    ``offsets`` are int32, one more than ``starts``, and say where each comes to lie.
    """
    copied = allocate(int(offsets[-1]))
    run = kernel("gather_bytes")
    if len(copied) and run is not None:
        given, start = np.ascontiguousarray(data), np.ascontiguousarray(starts, np.int64)
        words = np.zeros(L.GATHER // 8, np.int64)
        for word, values in (
            *((L.G_DATA, given), (L.G_START, start)),
            *((L.G_OFFSETS, offsets), (L.G_OUT, copied)),
        ):
            words[word // 8] = address(values)
        words[L.G_COUNT // 8] = len(start)
        run(address(words), 0, 0)
    elif len(copied):
        for row in np.flatnonzero(np.diff(offsets)).tolist():
            size = offsets[row + 1] - offsets[row]
            copied[offsets[row] : offsets[row + 1]] = data[starts[row] : starts[row] + size]
    return copied
