"""Puts values into columns that grow, and takes them back."""

from __future__ import annotations

from flexwire.kernels.columns.layout import (
    B_COLUMN,
    B_ITEMS,
    B_LEVEL,
    BRANCH,
    C_BRANCH_COUNT,
    C_BRANCHES,
    C_COLUMNS,
    C_GROW,
    C_LEVELS,
    C_NEED,
    C_STATUS,
    COLUMN,
    D_COLUMN,
    D_KIND,
    D_LENGTH,
    D_LEVEL,
    D_VALUE,
    DEFAULT,
    FULL,
    GROW_DATA,
    GROW_LEVEL,
    K_CAPACITY,
    K_DATA,
    K_OFFSETS,
    K_VALID,
    K_WIDTH,
    MISSING,
    N_COUNT,
    N_START,
    NO_ITEMS,
    NO_TEXT,
    NULL_ITEMS,
    NULL_NUMBER,
    NUMBER,
    PRESENT,
    TEXT,
)
from flexwire.kernels.machine import load_int32_native, load_word, part, store_int8, store_word
from flexwire.kernels.memory import copy_bytes, inlined, store_int32_native, store_native


@inlined
def mark(column: int, index: int, valid: int) -> None:
    """Say whether a value is there, in a column that can have nulls."""
    validity = load_word(column + K_VALID)
    if validity:
        store_int8(validity + index, valid)


@inlined
def used(column: int, index: int) -> int:
    """Give how many bytes or elements stand before the value at ``index``."""
    return load_int32_native(load_word(column + K_OFFSETS) + 4 * index)


@inlined
def set_used(column: int, index: int, count: int) -> None:
    """Say how many bytes or elements there are with the value at ``index``."""
    store_int32_native(load_word(column + K_OFFSETS) + 4 * index + 4, count)


@part
def grow_level(call: int, level: int, need: int) -> int:
    """Ask for room for ``need`` elements of a level."""
    store_word(call + C_STATUS, GROW_LEVEL)
    store_word(call + C_GROW, level - load_word(call + C_LEVELS))
    store_word(call + C_NEED, need)
    return FULL


@part
def grow_data(call: int, column: int, need: int) -> int:
    """Ask for room for ``need`` bytes of a text column."""
    store_word(call + C_STATUS, GROW_DATA)
    store_word(call + C_GROW, (column - load_word(call + C_COLUMNS)) // COLUMN)
    store_word(call + C_NEED, need)
    return FULL


@part
def fill(call: int, default: int, count: int, index: int) -> int:
    """Put defaults into their columns; gives 0, or says that a column must grow first."""
    columns = load_word(call + C_COLUMNS)
    for _ in range(count):
        column = columns + load_word(default + D_COLUMN)
        kind = load_word(default + D_KIND)
        if kind == NUMBER or kind == NULL_NUMBER:
            width = load_word(column + K_WIDTH)
            value = load_word(default + D_VALUE)
            store_native(load_word(column + K_DATA) + width * index, width, value)
            mark(column, index, 1 if kind == NUMBER else 0)
        elif kind == TEXT or kind == NO_TEXT:
            length = load_word(default + D_LENGTH)
            before = used(column, index)
            if length > load_word(column + K_CAPACITY) - before:
                return grow_data(call, column, before + length)
            copy_bytes(load_word(column + K_DATA) + before, load_word(default + D_VALUE), length)
            set_used(column, index, before + length)
            mark(column, index, 1 if kind == TEXT else 0)
        elif kind == NO_ITEMS or kind == NULL_ITEMS:
            level = load_word(call + C_LEVELS) + load_word(default + D_LEVEL)
            set_used(column, index, load_word(level + N_COUNT))
            mark(column, index, 1 if kind == NO_ITEMS else 0)
        elif kind == PRESENT or kind == MISSING:
            mark(column, index, 1 if kind == PRESENT else 0)
        default += DEFAULT
    return 0


@part
def take_back(call: int, index: int) -> None:
    """Forget all elements of the row at ``index``: the row before says how many there were."""
    levels, columns = load_word(call + C_LEVELS), load_word(call + C_COLUMNS)
    store_word(levels + N_START, index)
    branch = load_word(call + C_BRANCHES)
    for _ in range(load_word(call + C_BRANCH_COUNT)):
        column = columns + load_word(branch + B_COLUMN)
        start = load_word(levels + load_word(branch + B_LEVEL) + N_START)
        items = levels + load_word(branch + B_ITEMS)
        before = used(column, start)
        store_word(items + N_START, before)
        store_word(items + N_COUNT, before)
        branch += BRANCH
