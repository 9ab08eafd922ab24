"""Reads numbers that stand side by side, and arrays of structures that are nothing else."""

from __future__ import annotations

from flexwire.kernels.columns.filling import mark, set_used
from flexwire.kernels.columns.layout import (
    C_COLUMNS,
    C_LEVELS,
    K_DATA,
    N_COUNT,
    NUMBER_ROW,
    O_CODE,
    O_COLUMN,
    O_INTS,
    O_LEVEL,
    O_LONGS,
    O_OTHERS,
    O_ROWS_END,
    O_SHORTS,
    O_WIDTH,
    OPERATION,
    R_COLUMN,
    R_KIND,
    R_PLACE,
    REFUSED,
)
from flexwire.kernels.machine import (
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import inlined, seldom, store_int16_native, store_int32_native
from flexwire.kernels.wire.operations import BOOL, INT8, INT16, INT32, TAGS, VALID


@inlined
def read_numbers(operation: int, columns: int, index: int, position: int, end: int) -> int:
    """Read numbers that stand side by side, each of the width of its column."""
    if load_word(operation + O_WIDTH) > end - position:
        seldom()
        return REFUSED
    row = load_word(operation + O_INTS)
    while row < load_word(operation + O_SHORTS):
        data = load_word(columns + load_word(row + R_COLUMN) + K_DATA)
        store_int32_native(data + 4 * index, load_int32(position + load_word(row + R_PLACE)))
        row += NUMBER_ROW
    while row < load_word(operation + O_LONGS):
        data = load_word(columns + load_word(row + R_COLUMN) + K_DATA)
        store_int16_native(data + 2 * index, load_int16(position + load_word(row + R_PLACE)))
        row += NUMBER_ROW
    while row < load_word(operation + O_OTHERS):
        data = load_word(columns + load_word(row + R_COLUMN) + K_DATA)
        store_word(data + 8 * index, load_int64(position + load_word(row + R_PLACE)))
        row += NUMBER_ROW
    while row < load_word(operation + O_ROWS_END):
        kind, column = load_word(row + R_KIND), columns + load_word(row + R_COLUMN)
        if kind == VALID:
            mark(column, index, 1)
        else:
            number = load_uint8(position + load_word(row + R_PLACE))
            if kind == BOOL and number > 1:
                return REFUSED
            store_int8(load_word(column + K_DATA) + index, number)
        row += NUMBER_ROW
    return position + load_word(operation + O_WIDTH)


@inlined
def spread_numbers(kind: int, data: int, first: int, count: int, source: int, stride: int) -> None:
    """Read a column of a table."""
    if kind == INT32:
        data += 4 * first
        for number in range(count):
            store_int32_native(data + 4 * number, load_int32(source + stride * number))
    elif kind == INT16:
        data += 2 * first
        for number in range(count):
            store_int16_native(data + 2 * number, load_int16(source + stride * number))
    elif kind == BOOL or kind == INT8:
        data += first
        for number in range(count):
            store_int8(data + number, load_uint8(source + stride * number))
    else:
        data += 8 * first
        for number in range(count):
            store_word(data + 8 * number, load_int64(source + stride * number))


@inlined
def highest(position: int, count: int, stride: int) -> int:
    """Give all bits that are set in bytes that stand some way apart."""
    bits = 0
    for number in range(count):
        bits |= load_uint8(position + stride * number)
    return bits


@part
def read_table(call: int, operation: int, first: int, count: int, position: int) -> int:
    """Read an array of structures that are nothing but numbers, column by column.

    The elements begin at ``first`` in their columns, which have room for them, and the input has
    their bytes. A tagged field in one of them, or a bool that is neither 0 nor 1, makes it REFUSED,
    and each is to be read by itself.
    """
    columns, stride = load_word(call + C_COLUMNS), load_word(operation + O_WIDTH)
    numbers = operation + OPERATION
    tags = numbers + OPERATION
    if load_word(tags + O_CODE) == TAGS:
        if highest(position + stride - 1, count, stride) != 0:
            return REFUSED
        level = load_word(call + C_LEVELS) + load_word(tags + O_LEVEL)
        column, items = columns + load_word(tags + O_COLUMN), load_word(level + N_COUNT)
        for index in range(first, first + count):
            set_used(column, index, items)
    row, last = load_word(numbers + O_INTS), load_word(numbers + O_ROWS_END)
    while row < last:
        kind, column = load_word(row + R_KIND), columns + load_word(row + R_COLUMN)
        if kind == VALID:
            for index in range(first, first + count):
                mark(column, index, 1)
        else:
            source = position + load_word(row + R_PLACE)
            if kind == BOOL and highest(source, count, stride) > 1:
                return REFUSED
            spread_numbers(kind, load_word(column + K_DATA), first, count, source, stride)
        row += NUMBER_ROW
    return position + stride * count
