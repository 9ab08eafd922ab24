"""Work of tasks that is too large to travel with each of them: it lies in a file beside the output.

Spark has what a task does in its plan, in Java's memory and in every message that starts a task:
a million captures, which a survey has to know, would be 100 MB in each.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flexwire.errors import AnalysisError

if TYPE_CHECKING:
    from flexwire.spark.publishing.drop import Drop
    from flexwire.spark.publishing.places import Place

LARGEST_WORK: Final = 1 << 18
"""So many bytes of work travel."""


@dataclass(frozen=True, slots=True)
class LeftWork:
    """Work that was left in a file, which each task reads."""

    place: Place
    name: str
    digest: str

    @classmethod
    def leave(cls, packed: bytes, place: Place, name: str) -> LeftWork:
        """Leave work that was pickled."""
        place.write(name, packed)
        return cls(place, name, hashlib.sha256(packed).hexdigest())

    def __call__(self, number: int, drop: Drop) -> Any:
        """Do it."""
        packed = self.place.read(self.name)
        if hashlib.sha256(packed).hexdigest() != self.digest:
            raise AnalysisError(f"{self.name} was written by something else")
        # Its digest came with the task.
        work = pickle.loads(packed)  # noqa: S301 - see above
        del packed
        return work(number, drop)
