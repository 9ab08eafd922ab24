"""Whether Arrow arrays are what their types say, looked at before anything follows their offsets.

pyarrow's own look at an array without ``full`` costs nothing, and compares no offset but the first
and the last. The kernels compare those of each row that is not null; what else follows offsets, as
a cast, a copy or pyarrow's own ``to_pylist`` does, needs the full look.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flexwire.errors import CodecError, EncodeError

_INT32 = 4


def validate(data: pa.Array, path: str = "", *, full: bool = False) -> None:
    """Raise `CodecError` for an array whose buffers are not what its type says."""
    try:
        data.validate(full=full)
    except pa.ArrowException as error:
        raise CodecError(f"not a valid Arrow array: {error}", path=path) from None


def validate_nulls(data: pa.Array, path: str) -> None:
    """Raise `CodecError` for text or lists with nulls whose int32 offsets go down.

    No kernel compares the offsets of a null row, so what stands around one could overlap.
    """
    if not data.null_count:
        return
    offsets = np.frombuffer(data.buffers()[1], np.int32, len(data) + 1, _INT32 * data.offset)
    if (offsets[1:] < offsets[:-1]).any():
        validate(data, path, full=True)


def cast(data: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    """Give a column as another type; `EncodeError` where that loses something."""
    if data.type == kind:
        return data
    if not _is_flat(data.type):
        validate(data, path, full=True)
    try:
        return data.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EncodeError(f"{data.type} does not become {kind}: {error}", path=path) from None


def as_list(data: pa.Array, path: str) -> pa.ListArray:
    """Give a column of lists of any kind as one with int32 offsets."""
    kind = data.type
    if pa.types.is_list(kind):
        return data
    if not (pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise EncodeError(f"a column of lists, not of {kind}", path=path)
    return cast(data, pa.list_(kind.value_type), path)


def _is_flat(kind: pa.DataType) -> bool:
    """Whether a cast of the type follows nothing but the first and the last offset, if any."""
    text = {pa.null(), pa.binary(), pa.string(), pa.large_binary(), pa.large_string()}
    return bool(kind in text or pa.types.is_primitive(kind))
