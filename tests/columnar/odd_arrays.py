"""Draw Arrow arrays that are odd but possible: any offsets, and data hidden behind nulls.

The arrays include everything that pyarrow accepts without full validation: valid arrays, slices,
and offsets that decrease or point outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

Draw = Any


def is_valid(array: pa.Array) -> bool:
    """Return whether pyarrow's full validation finds no error."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _offsets(draw: Draw, rows: int, most: int) -> Any:
    """Draw int32 offsets up to ``most``: usually ascending, otherwise any values in the range."""
    inner = draw(st.lists(st.integers(0, most), min_size=rows - 1, max_size=rows - 1))
    inner.sort()
    if inner and draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(inner) - 1))
        inner[place] = draw(st.sampled_from([-1, 0, most, most + 1, 2**31 - 1, -(2**31)]))
    return np.array([0, *inner, most], np.int32)


def _bits(draw: Draw, rows: int) -> Any:
    valid = draw(st.none() | st.lists(st.booleans(), min_size=rows, max_size=rows))
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(np.array(valid, bool), bitorder="little").tobytes())


def _checked(kind: pa.DataType, rows: int, buffers: list[Any], children: Any = None) -> pa.Array:
    try:
        return pa.Array.from_buffers(kind, rows, buffers, children=children)
    except pa.ArrowInvalid:
        assume(False)
        raise


@st.composite
def texts(draw: Draw, rows: int, kind: pa.DataType) -> pa.Array:
    """Draw a column of bytes or ASCII text."""
    data = draw(st.text("abc", max_size=12)).encode()
    offsets = _offsets(draw, rows, len(data))
    buffers = [_bits(draw, rows), pa.py_buffer(offsets), pa.py_buffer(data)]
    return _checked(kind, rows, buffers)


@st.composite
def structs(draw: Draw, rows: int, columns: dict[str, Any]) -> pa.Array:
    """Draw a column of structures; null rows have data behind them."""
    children = [draw(column) for column in columns.values()]
    kind = pa.struct([(name, one.type) for name, one in zip(columns, children, strict=True)])
    return _checked(kind, rows, [_bits(draw, rows)], children)


@st.composite
def lists(draw: Draw, rows: int, elements: Any, most: int = 5) -> pa.Array:
    """Draw a column of lists; ``elements`` draws the given number of elements."""
    count = draw(st.integers(1, most))
    child = draw(elements(count))
    buffers = [_bits(draw, rows), pa.py_buffer(_offsets(draw, rows, count))]
    return _checked(pa.list_(child.type), rows, buffers, [child])
