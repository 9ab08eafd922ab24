"""Counting references to objects that much else has references to, None among them."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ROUNDS = 4


def changed_counts(work: Callable[[], None], objects: Sequence[Any]) -> list[int]:
    """Return by how many references each object's count changes when ``work`` is done, at least.

    It is done several times. What other tests left behind may end meanwhile, which changes a count
    once; work that counts wrongly does so each time.
    """
    changes = []
    for _ in range(_ROUNDS):
        gc.collect()
        before = [sys.getrefcount(one) for one in objects]
        work()
        gc.collect()
        after = [sys.getrefcount(one) for one in objects]
        changes.append([abs(new - old) for new, old in zip(after, before, strict=True)])
    return [min(each) for each in zip(*changes, strict=True)]
