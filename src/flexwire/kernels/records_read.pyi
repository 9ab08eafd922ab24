from collections.abc import Callable, Sequence

import pyarrow as pa
from _typeshed import ReadableBuffer, WriteableBuffer

class RecordColumns:
    def __init__(
        self,
        allocate: Callable[[int], pa.Buffer] | None,
        columns: Sequence[str],
        limits: tuple[int, int, int, int],
        bounds: tuple[int, int, int],
        shares: dict[str, float],
    ) -> None: ...
    def read(
        self, table: WriteableBuffer, first: int, data: ReadableBuffer, check_crc: bool
    ) -> tuple[int, bool]: ...
    @property
    def rows(self) -> int: ...
    def shares(self, size: int) -> dict[str, float]: ...
    def take_column(
        self, name: str, take: Callable[[int, pa.DataType], pa.Array], kind: pa.DataType
    ) -> pa.Array: ...
    def take_batch(
        self,
        columns: list[str | pa.Array],
        take: Callable[[int, pa.Schema], pa.RecordBatch],
        schema: pa.Schema,
    ) -> pa.RecordBatch: ...
