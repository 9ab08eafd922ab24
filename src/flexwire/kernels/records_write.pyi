from _typeshed import ReadableBuffer, WriteableBuffer

class RecordWriter:
    def __init__(
        self,
        offsets: ReadableBuffer,
        timestamps: ReadableBuffer,
        key: object,
        value: object,
        headers: object = None,
        header_key: object = None,
        header_value: object = None,
    ) -> None: ...
    def write(
        self,
        first: int,
        last: int,
        each: int,
        gap: int,
        out: WriteableBuffer,
        extents: WriteableBuffer,
    ) -> int: ...

def seal(out: WriteableBuffer, extents: ReadableBuffer) -> None: ...
