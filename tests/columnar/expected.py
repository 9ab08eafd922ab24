"""Return the reference executor's results for messages, as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.codec import Encoding
from flexwire.columnar import message_type, reference
from flexwire.errors import CodecError, UnknownMessageError
from flexwire.schema.message_schemas import schemas_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def decoded(
    message: Any,
    rows: Sequence[bytes | None],
    versions: Sequence[int],
    encoding: Encoding = Encoding.KAFKA,
    *,
    absent: str = "null",
) -> tuple[pa.Array, list[Any]]:
    """Return the column and, for each row, its error or None."""
    served = schemas_of(message)
    values: list[Any] = []
    errors: list[Any] = []
    for raw, version in zip(rows, versions, strict=True):
        value = error = None
        try:
            if raw is not None:
                schema = served.schema(version, encoding)
                value = reference.read_row(schema, raw, absent_are_null=absent == "null")
        except CodecError as caught:
            error = {"reason": caught.reason, "path": caught.path, "offset": caught.offset}
        except UnknownMessageError as caught:
            error = {"reason": str(caught), "path": "", "offset": None}
        values.append(value)
        errors.append(error)
    return pa.array(values, message_type(message)), errors


def written(
    message: Any, rows: Sequence[Any], versions: Sequence[int], encoding: Encoding = Encoding.KAFKA
) -> tuple[list[bytes | None], list[Any]]:
    """Return each row's bytes or None, and its error or None."""
    served = schemas_of(message)
    values: list[bytes | None] = []
    errors: list[Any] = []
    for row, version in zip(rows, versions, strict=True):
        value = error = None
        try:
            if row is not None:
                value = reference.write_row(served.schema(version, encoding), row)
        except CodecError as caught:
            error = {"reason": caught.reason, "path": caught.path, "offset": caught.offset}
        values.append(value)
        errors.append(error)
    return values, errors


def same(found: pa.Array, expected: pa.Array) -> None:
    """Check that a column is valid and equal to another; NaN equals itself."""
    found.validate(full=True)
    # Arrow's comparison ignores values that a null hides.
    for one in found.type:
        below = found.field(one.name).filter(found.is_null())
        assert below.null_count == len(below) == found.null_count
    if not found.equals(expected):
        # The differences, as a test's own comparison reports them.
        for row, (one, other) in enumerate(
            zip(found.to_pylist(), expected.to_pylist(), strict=True)
        ):
            assert repr(one) == repr(other), row
