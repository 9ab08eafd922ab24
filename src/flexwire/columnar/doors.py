"""What the functions of `flexwire.columnar` take: checked before a row is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from flexwire.arguments import refuse, to_choice, to_int, to_kind, to_list, to_version
from flexwire.columnar.record_schema import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.columnar.rows import Mode, Versions
from flexwire.schema.served import check_message
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from flexwire.schema.served import MessageLike

_ENDS = 2


def versions_of(
    message: MessageLike,
    data: Any,
    versions: Any,
    encoding: Encoding,
    mode: Mode,
    *,
    is_read: bool,
) -> Versions:
    """Check what messages are decoded or encoded from, and give the version of each row."""
    check_message(message)
    to_kind(encoding, "encoding", Encoding)
    to_choice(mode, "mode", get_args(Mode))
    if not isinstance(data, pa.Array | pa.ChunkedArray):
        name = "data" if is_read else "structs"
        raise refuse(name, "an Arrow Array or ChunkedArray; pa.array makes one", data)
    if is_read and data.type not in {pa.binary(), pa.large_binary()}:
        raise refuse("data", "a column of binary or large_binary", str(data.type))
    if not is_read and not pa.types.is_struct(data.type):
        raise refuse("structs", "a column of structs", str(data.type))
    given = _numbers(versions)
    if not isinstance(given, int) and len(given) != len(data):
        raise refuse("versions", f"one for each of {len(data)} rows", f"{len(given)} of them")
    return Versions(given, len(data))


def _numbers(versions: Any) -> int | pa.Array | pa.ChunkedArray:
    """Give one version, or a column of them."""
    if isinstance(versions, pa.Array | pa.ChunkedArray):
        if not pa.types.is_integer(versions.type) and not pa.types.is_null(versions.type):
            raise refuse("versions", "a column of integers", str(versions.type))
        try:
            return versions.cast(pa.int64())
        except pa.ArrowInvalid:
            raise refuse("versions", "integers of 64 bits", str(versions.type)) from None
    if isinstance(versions, np.ndarray) and versions.ndim:
        if versions.dtype.kind not in "iu" or versions.ndim > 1:
            raise refuse("versions", "one column of integers", versions)
        return _numbers(pa.array(versions))
    if isinstance(versions, int) or not hasattr(versions, "__iter__"):
        return to_version(versions)
    several = to_list(versions, "versions", "a version, or one for each row")
    # Arrow follows a list that contains itself until the process ends.
    return pa.array([None if one is None else to_version(one) for one in several], pa.int64())


def column_names(columns: object) -> tuple[str, ...]:
    """Give the columns of records that are asked for."""
    known = RECORD_COLUMNS | BATCH_COLUMNS
    names = to_list(columns, "columns", "a list of names")
    if not names:
        raise refuse("columns", "one at least", columns)
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise refuse("columns", f"names of {', '.join(known)}", name)
    return tuple(names)


def range_of(ends: object, name: str) -> tuple[int | None, int | None]:
    """Give the ends of a range, each an int64 or None."""
    if not isinstance(ends, tuple | list) or len(ends) != _ENDS:
        raise refuse(name, "a pair of the first and the last, or None for no end", ends)
    low, high = (None if one is None else to_int(one, name) for one in ends)
    return low, high
