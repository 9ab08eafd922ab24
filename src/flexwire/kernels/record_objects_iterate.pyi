from collections.abc import Callable
from typing import Any, Self

from flexwire.kernels.record_objects import Classes, RecordCall
from flexwire.records.batch import RecordBatch
from flexwire.records.decode import PartialBatch

class BatchIterator:
    _data: bytes
    _check_crc: bool
    _max_inflated: int
    _partial: PartialBatch | None
    _position: int
    def __init__(self) -> None: ...
    def position(self) -> int: ...
    def partial(self) -> PartialBatch | None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordBatch: ...

class IteratorCall:
    def __init__(self, steps: RecordCall, fallback: Callable[..., Any]) -> None: ...

def iterator_maker(
    classes: Classes, fallback: Callable[..., Any], next_fallback: Callable[..., Any]
) -> Callable[..., Any]: ...
