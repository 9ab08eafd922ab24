"""Many small files of a place, one after the other; of a store some are fetched ahead."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from flexwire.spark.publishing.places import Place

# To fetch a small file of a store is mostly waiting; what waits here is held in memory.
_AHEAD, _AHEAD_BYTES = 16, 64 << 20


def fetched(place: Place, files: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Give the bytes of each file, in order; ``files`` are their names and sizes."""
    if place.path is not None:
        for name, _ in files:
            yield place.read(name)
        return
    waiting: deque[tuple[int, Future[bytes]]] = deque()
    held = 0
    with ThreadPoolExecutor(_AHEAD, thread_name_prefix="flexwire-fetch") as pool:
        for name, size in files:
            while waiting and (len(waiting) == _AHEAD or held + size > _AHEAD_BYTES):
                first, data = waiting.popleft()
                held -= first
                yield data.result()
            waiting.append((size, pool.submit(place.read, name)))
            held += size
        for _, data in waiting:
            yield data.result()
