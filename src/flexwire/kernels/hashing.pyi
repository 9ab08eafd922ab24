from _typeshed import ReadableBuffer, WriteableBuffer

def hash_values(
    data: ReadableBuffer, offsets: ReadableBuffer, hashes: WriteableBuffer, texts: WriteableBuffer
) -> None: ...
