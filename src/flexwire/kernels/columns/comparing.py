"""What the columns say of one value: whether it is null, and whether it is its field's default."""

from __future__ import annotations

from flexwire.kernels.columns.layout import (
    D_COLUMN,
    D_KIND,
    D_LENGTH,
    D_LOOSE,
    D_VALUE,
    DEFAULT,
    DOUBLE,
    FLAG,
    K_BIT,
    K_CAPACITY,
    K_DATA,
    K_OFFSETS,
    K_VALID,
    K_VALID_BIT,
    K_WIDTH,
    MISSING,
    NO_ITEMS,
    NO_TEXT,
    NULL_ITEMS,
    NULL_NUMBER,
    NUMBER,
    PRESENT,
)
from flexwire.kernels.machine import as_double, load_int32_native, load_uint8, load_word, part
from flexwire.kernels.memory import inlined, load_native


@inlined
def flag(column: int, index: int) -> int:
    """Give a bool."""
    bit = load_word(column + K_BIT) + index
    return (load_uint8(load_word(column + K_DATA) + (bit >> 3)) >> (bit & 7)) & 1


@inlined
def is_null(column: int, index: int) -> bool:
    """Whether there is no value."""
    validity = load_word(column + K_VALID)
    if validity == 0:
        return False
    bit = load_word(column + K_VALID_BIT) + index
    return (load_uint8(validity + (bit >> 3)) >> (bit & 7)) & 1 == 0


@inlined
def span(column: int, index: int) -> tuple[int, int]:
    """Give where a text or array begins and ends, as its column says, which may be nowhere."""
    offsets = load_word(column + K_OFFSETS) + 4 * index
    return load_int32_native(offsets), load_int32_native(offsets + 4)


@inlined
def is_within(column: int, begin: int, end: int) -> bool:
    """Whether a `span` is in order and within its column, by a single test."""
    return begin | (end - begin) | (load_word(column + K_CAPACITY) - end) >= 0


@inlined
def extent(column: int, index: int) -> tuple[int, int]:
    """Give where a text or array begins and its length; -1 for a length that cannot be."""
    begin, end = span(column, index)
    return (begin, end - begin) if is_within(column, begin, end) else (0, -1)


@part
def is_same(first: int, second: int, count: int) -> bool:
    """Whether bytes are the same."""
    for place in range(count):
        if load_uint8(first + place) != load_uint8(second + place):
            return False
    return True


@part
def is_default(column: int, default: int, index: int) -> bool:
    """Whether one column has its default, as the reference executor compares them."""
    kind = load_word(default + D_KIND)
    null = is_null(column, index)
    if kind == NO_TEXT or kind == NULL_ITEMS or kind == NULL_NUMBER or kind == MISSING:
        return null
    if null:
        return load_word(default + D_LOOSE) != 0
    if kind == PRESENT:
        return True
    value = load_word(default + D_VALUE)
    if kind == FLAG:
        return flag(column, index) == value
    if kind == NUMBER or kind == DOUBLE:
        width = load_word(column + K_WIDTH)
        found = load_native(load_word(column + K_DATA) + width * index, width)
        # 0.0 and -0.0 are equal though their bits differ, and NaN equals nothing.
        return as_double(found) == as_double(value) if kind == DOUBLE else found == value
    begin, length = extent(column, index)
    if kind == NO_ITEMS:
        return length == 0
    data = load_word(column + K_DATA)
    return length == load_word(default + D_LENGTH) and is_same(data + begin, value, length)


@part
def are_defaults(columns: int, default: int, count: int, index: int) -> bool:
    """Whether columns have their defaults; below a null that stands for one, all have."""
    number = 0
    while number < count:
        column = columns + load_word(default + D_COLUMN)
        if not is_default(column, default, index):
            return False
        skipped = 0
        if load_word(default + D_KIND) == PRESENT and is_null(column, index):
            skipped = load_word(default + D_LENGTH)
        number += skipped + 1
        default += (skipped + 1) * DEFAULT
    return True
