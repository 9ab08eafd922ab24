"""Rows of the records table that have the same facts, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

Words = np.ndarray[Any, np.dtype[Any]]

NO_TOPIC = "?"
"""The topic of records that tell neither its name nor its id."""


def run_starts(rows: pa.RecordBatch, names: Iterable[str]) -> Words:
    """Give the rows that differ from the row before in one of the columns named, the first too."""
    is_start = np.ones(len(rows), np.bool_)
    if len(rows):
        is_start[1:] = False
        for name in names:
            _mark_changes(rows[name], is_start[1:])
    return np.flatnonzero(is_start)


def _mark_changes(column: pa.Array, marked: Words) -> None:
    if column.null_count == len(column):
        return
    if not column.null_count and pa.types.is_integer(column.type):
        numbers = column.to_numpy()
        marked |= numbers[1:] != numbers[:-1]
        return
    before, after = column.slice(0, len(column) - 1), column.slice(1)
    differ = pc.not_equal(after, before)
    if differ.null_count:
        differ = differ.fill_null(fill_value=False)
        valid = bits(column.is_valid())
        marked |= valid[1:] != valid[:-1]
    marked |= bits(differ)


def bits(flags: pa.BooleanArray) -> Words:
    """Give flags without nulls as an array."""
    values: Words = flags.to_numpy(zero_copy_only=False)
    return values


def extents(lists: pa.Array) -> Words:
    """Give the length of each list or value of bytes, 0 of a null."""
    offsets = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset :][: len(lists) + 1]
    lengths = np.diff(offsets)
    if lists.null_count:
        lengths[bits(lists.is_null())] = 0
    return lengths


def topic_names(rows: pa.RecordBatch) -> pa.StringArray:
    """Give the name of each row's topic, or its id."""
    return pc.coalesce(rows["topic"], rows["topic_id"], pa.scalar(NO_TOPIC))


def grouped(codes: Words) -> tuple[Words, Words]:
    """Give an order in which rows of one code stand together, and where in it each code begins.

    Rows of one code stay in their order.
    """
    order = np.argsort(codes, kind="stable")
    return order, changes(codes[order])


def changes(codes: Words) -> Words:
    """Give where numbers differ from the one before, the first place too."""
    is_first = np.ones(len(codes), np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)
