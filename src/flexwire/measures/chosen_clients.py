"""Which clients an audit judges where there are too many: those with most requests.

Clients name themselves, and a request log is read from whoever wrote it: each line may be another
client. What an audit holds of one is a hundred times what is needed to choose, so all are counted
first, by hashes, and evidence is gathered of those that were chosen. The others are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.measures.values import hashes_and_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    Array = np.ndarray[Any, np.dtype[Any]]

MOST_CLIENTS: Final = 50_000
"""So many clients are judged."""
MOST_USES: Final = 300_000
"""So many different uses of versions they have, each with another evidence around it."""
MOST_USES_OF_ONE: Final = 20_000
"""One with more is not judged: no client has a hundredth of that."""

# Any odd number: hashes of several columns are one after it.
_FOLD: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


class Chosen(NamedTuple):
    """The hashes of the clients that are judged, ascending, and what is left out."""

    clients: Array
    left_out: int
    requests: int


def hashes(columns: Iterable[pa.Array], rows: int) -> Array:
    """A hash of what each row has in these columns of texts and whole numbers; null is a value."""
    told = np.zeros(rows, np.uint64)
    for column in columns:
        if pa.types.is_string(column.type):
            each, _ = hashes_and_texts(pc.fill_null(column, "").cast(pa.binary()))
        else:
            each = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
            each = each.astype(np.int64).view(np.uint64)
        is_null = np.asarray(column.is_null()).astype(np.uint64)
        told = (told ^ each) * _FOLD + is_null
        told ^= told >> _SHIFT
    return told


class Candidates:
    """All clients, and how many requests and different uses each has."""

    def __init__(self) -> None:
        self._clients = _Counts()
        self._uses = _Counts()

    def add(self, clients: Array, uses: Array, requests: Array) -> None:
        """Take in rows: of which client, by its hash, which use of its own, and how many."""
        self._clients.add(clients, requests)
        self._uses.add(clients * _FOLD + uses, np.zeros(len(uses), np.int64), clients)

    def chosen(self) -> Chosen | None:
        """Those that are judged; None where all are."""
        every, requests = self._clients.keys, self._clients.sums
        # Each use is of a client that is there.
        place = np.searchsorted(every, self._uses.others)
        uses = np.bincount(place, minlength=len(every))
        fits = uses <= MOST_USES_OF_ONE
        if len(every) <= MOST_CLIENTS and uses.sum() <= MOST_USES and fits.all():
            return None
        order = np.lexsort((every, -requests))
        order = order[fits[order]]
        order = order[: np.searchsorted(np.cumsum(uses[order]), MOST_USES, "right")]
        kept = order[:MOST_CLIENTS]
        left_out = int(requests.sum() - requests[kept].sum())
        return Chosen(np.sort(every[kept]), len(every) - len(kept), left_out)


class _Counts:
    """The sum of numbers by key, and what else is known of a key."""

    def __init__(self) -> None:
        self.keys = np.zeros(0, np.uint64)
        self.sums = np.zeros(0, np.int64)
        self.others = np.zeros(0, np.uint64)

    def add(self, keys: Array, numbers: Array, others: Array | None = None) -> None:
        """Take in rows."""
        every = np.concatenate([self.keys, keys])
        counts = np.concatenate([self.sums, numbers])
        known = np.concatenate([self.others, keys if others is None else others])
        self.keys, first, of = np.unique(every, return_index=True, return_inverse=True)
        self.sums = np.zeros(len(self.keys), np.int64)
        np.add.at(self.sums, of, counts)
        self.others = known[first]
