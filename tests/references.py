"""Count the references to objects that many others refer to, such as None."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ROUNDS = 4


def changed_counts(work: Callable[[], None], objects: Sequence[Any]) -> list[int]:
    """Return the smallest change that ``work`` makes to each object's reference count.

    The work is done several times. Meanwhile, objects from other tests may be freed, which changes
    a count once. Faulty work changes the count every time.
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
