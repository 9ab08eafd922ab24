"""Writes numbers that stand side by side, and arrays of structures that are nothing else."""

from __future__ import annotations

from flexwire.kernels.columns.comparing import flag, is_null
from flexwire.kernels.columns.layout import (
    C_COLUMNS,
    C_LIMIT,
    K_CAPACITY,
    K_DATA,
    K_VALID,
    NUMBER_ROW,
    O_CODE,
    O_COLUMN,
    O_INTS,
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
from flexwire.kernels.columns.output import grow_output
from flexwire.kernels.machine import (
    load_int8,
    load_int32_native,
    load_word,
    part,
    store_int8,
    store_int16,
    store_int32,
    store_int64,
)
from flexwire.kernels.memory import inlined, load_int16_native, seldom
from flexwire.kernels.wire.operations import BOOL, INT8, INT16, INT32, TAGS, VALID


@inlined
def write_numbers(operation: int, columns: int, index: int, at: int, writing: bool) -> int:
    """Write numbers that stand side by side, each of the width of its column."""
    row = load_word(operation + O_INTS)
    while row < load_word(operation + O_SHORTS):
        column = columns + load_word(row + R_COLUMN)
        if is_null(column, index):
            seldom()
            return REFUSED
        if writing:
            number = load_int32_native(load_word(column + K_DATA) + 4 * index)
            store_int32(at + load_word(row + R_PLACE), number)
        row += NUMBER_ROW
    while row < load_word(operation + O_LONGS):
        column = columns + load_word(row + R_COLUMN)
        if is_null(column, index):
            seldom()
            return REFUSED
        if writing:
            number = load_int16_native(load_word(column + K_DATA) + 2 * index)
            store_int16(at + load_word(row + R_PLACE), number)
        row += NUMBER_ROW
    while row < load_word(operation + O_OTHERS):
        column = columns + load_word(row + R_COLUMN)
        if is_null(column, index):
            seldom()
            return REFUSED
        if writing:
            number = load_word(load_word(column + K_DATA) + 8 * index)
            store_int64(at + load_word(row + R_PLACE), number)
        row += NUMBER_ROW
    while row < load_word(operation + O_ROWS_END):
        kind, column = load_word(row + R_KIND), columns + load_word(row + R_COLUMN)
        if is_null(column, index):
            seldom()
            return REFUSED
        if writing and kind == INT8:
            number = load_int8(load_word(column + K_DATA) + index)
            store_int8(at + load_word(row + R_PLACE), number)
        elif writing and kind == BOOL:
            store_int8(at + load_word(row + R_PLACE), flag(column, index))
        row += NUMBER_ROW
    return at + load_word(operation + O_WIDTH)


@inlined
def gather_numbers(
    kind: int, column: int, first: int, count: int, target: int, stride: int
) -> None:
    """Write a column of a table."""
    data = load_word(column + K_DATA)
    if kind == INT32:
        data += 4 * first
        for number in range(count):
            store_int32(target + stride * number, load_int32_native(data + 4 * number))
    elif kind == INT16:
        data += 2 * first
        for number in range(count):
            store_int16(target + stride * number, load_int16_native(data + 2 * number))
    elif kind == INT8:
        data += first
        for number in range(count):
            store_int8(target + stride * number, load_int8(data + number))
    elif kind == BOOL:
        for number in range(count):
            store_int8(target + stride * number, flag(column, first + number))
    elif kind != VALID:
        data += 8 * first
        for number in range(count):
            store_int64(target + stride * number, load_word(data + 8 * number))


@part
def write_table(call: int, operation: int, first: int, count: int, at: int, writing: bool) -> int:
    """Write an array of structures that are nothing but numbers, column by column.

    Columns with nulls, or with tagged fields, make it REFUSED, and each element is to be written
    by itself.
    """
    columns, stride = load_word(call + C_COLUMNS), load_word(operation + O_WIDTH)
    numbers = operation + OPERATION
    row, last = load_word(numbers + O_INTS), load_word(numbers + O_ROWS_END)
    tags = numbers + OPERATION
    has_tags = load_word(tags + O_CODE) == TAGS
    if has_tags and load_word(columns + load_word(tags + O_COLUMN) + K_CAPACITY) > 0:
        return REFUSED
    while row < last:
        if load_word(columns + load_word(row + R_COLUMN) + K_VALID):
            return REFUSED
        row += NUMBER_ROW
    if writing:
        if count * stride > load_word(call + C_LIMIT) - at:
            return grow_output(call, at, count * stride)
        if has_tags:
            for number in range(count):
                store_int8(at + stride * number + stride - 1, 0)
        row = load_word(numbers + O_INTS)
        while row < last:
            target, column = at + load_word(row + R_PLACE), columns + load_word(row + R_COLUMN)
            gather_numbers(load_word(row + R_KIND), column, first, count, target, stride)
            row += NUMBER_ROW
    return at + count * stride
