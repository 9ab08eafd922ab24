"""The columns of one run while they are filled: buffers that grow, then Arrow arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.program import address
from flexwire.kernels.columns import layout as L  # noqa: N812 - a word in front of some twenty
from flexwire.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from flexwire.columnar.nodes import Node
    from flexwire.columnar.program import ColumnProgram

    Words = np.ndarray[Any, Any]

# An Arrow offset is an int32: the most bytes of a text column, and the most elements of an array.
MOST = INT32_MAX
# What a column gets beyond what the last batches took.
_MARGIN = 1.1


class ColumnFullError(Exception):
    """A column would pass `MOST`: what is read goes into a chunk of its own."""


def allocate(size: int) -> Words:
    """Give memory that Arrow's pool keeps for the next batch once it is free.

    Memory fresh from the system costs as much again as filling it, and threads wait for it.
    """
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


class Buffers:
    """The columns of ``rows`` rows. ``bound`` is how many elements or bytes they can have at all.

    A level's columns grow together, a text column's bytes for themselves.
    """

    def __init__(self, program: ColumnProgram, rows: int, bound: int) -> None:
        self.program = program
        self.columns = np.zeros((len(program.tree.nodes), L.COLUMN // 8), np.int64)
        self.levels = np.zeros((program.tree.levels, L.LEVEL // 8), np.int64)
        self._nodes = program.used
        self._data: dict[int, Words] = {}
        self._offsets: dict[int, Words] = {}
        self._valid: dict[int, Words] = {}
        bound = min(bound, MOST)
        self._grow_level(0, rows)
        # The rows that a kernel nulls are the only ones that it marks.
        self._valid[program.tree.root.number][:] = 1
        for level in range(1, program.tree.levels):
            self._grow_level(level, min(bound, 64 + int(program.level_hints[level] * rows)))
        for one in self._nodes:
            if one.is_text:
                learned = 256 + int(program.data_hints[one.number] * rows)
                self._grow_data(one.number, min(bound, learned))
            self.columns[one.number, L.K_WIDTH // 8] = one.width

    def grow(self, status: int, what: int, need: int) -> None:
        """Make room for what a kernel asked for; raises `ColumnFullError` beyond `MOST`."""
        if need > MOST:
            raise ColumnFullError
        if status == L.GROW_LEVEL:
            capacity = int(self.levels[what // L.LEVEL, L.N_CAPACITY // 8])
            self._grow_level(what // L.LEVEL, min(MOST, max(need, 2 * capacity)))
        else:
            capacity = int(self.columns[what, L.K_CAPACITY // 8])
            self._grow_data(what, min(MOST, max(need, 2 * capacity)))

    def _grow_level(self, level: int, capacity: int) -> None:
        count = int(self.levels[level, L.N_COUNT // 8])
        for one in self.program.of_level[level]:
            if one.width:
                self._replace(self._data, one, L.K_DATA, capacity * one.width, count * one.width)
            elif one.is_text or one.is_list:
                self._replace(self._offsets, one, L.K_OFFSETS, 4 * capacity + 4, 4 * count + 4)
            if one.nullable:
                self._replace(self._valid, one, L.K_VALID, capacity, count)
        self.levels[level, L.N_CAPACITY // 8] = capacity

    def _grow_data(self, column: int, capacity: int) -> None:
        node = self.program.tree.nodes[column]
        before = int(self.columns[column, L.K_CAPACITY // 8])
        self._replace(self._data, node, L.K_DATA, capacity, before)
        self.columns[column, L.K_CAPACITY // 8] = capacity

    def _replace(
        self, buffers: dict[int, Words], node: Node, word: int, size: int, kept: int
    ) -> None:
        new = allocate(max(size, 8))
        old = buffers.get(node.number)
        if old is None:
            # The first offset, where there are offsets.
            new[:8] = 0
        else:
            new[:kept] = old[:kept]
        buffers[node.number] = new
        self.columns[node.number, word // 8] = address(new)

    # What was filled.

    def learn(self, rows: int) -> None:
        """Let the next run begin with about as much room as this one took."""
        share = _MARGIN / max(1, rows)
        self.program.level_hints = self.levels[:, L.N_COUNT // 8] * share
        for one in self._nodes:
            if one.is_text:
                count = rows if one.level == 0 else self._count(one)
                self.program.data_hints[one.number] = self._end(one, count) * share

    def _count(self, node: Node) -> int:
        return int(self.levels[node.level, L.N_COUNT // 8])

    def _end(self, node: Node, count: int) -> int:
        return int(self._offsets[node.number][4 * count : 4 * count + 4].view(np.int32)[0])

    def to_arrow(self, rows: int) -> pa.StructArray:
        """Give the first ``rows`` rows."""
        return self._array(self.program.tree.root, rows, None)

    def _array(self, node: Node, count: int, within: Words | None) -> pa.Array:
        """Give a column; ``within`` says where the structure that it belongs to is null, if it is.

        A null's fields are null, although Arrow would not need it: so a field taken alone is right.
        """
        if not node.used:
            return _unused(node, count, within)
        valid = self._validity(node, count, within)
        buffers: list[Any] = [None if valid is None else bits(valid)]
        children: list[pa.Array] | None = None
        if node.is_struct:
            children = [self._array(one, count, valid) for one in node.fields.values()]
        elif node.is_list:
            buffers.append(buffer(self._offsets[node.number], 4 * count + 4))
            children = [self._array(node.element, self._end(node, count), None)]
        elif node.is_text:
            buffers.append(buffer(self._offsets[node.number], 4 * count + 4))
            buffers.append(buffer(self._data[node.number], self._end(node, count)))
        elif pa.types.is_boolean(node.kind):
            buffers.append(bits(self._data[node.number][:count]))
        else:
            buffers.append(buffer(self._data[node.number], count * node.width))
        return pa.Array.from_buffers(node.kind, count, buffers, children=children)

    def _validity(self, node: Node, count: int, within: Words | None) -> Words | None:
        valid = self._valid.get(node.number)
        if valid is None:
            return within
        valid = valid[:count]
        if within is not None:
            return valid & within
        # The lowest is found in a third of the time that `all` takes.
        return None if valid.min(initial=1) else valid


def _unused(node: Node, count: int, within: Words | None) -> pa.Array:
    if node.is_tagged_fields:
        offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
        valid = None if within is None else bits(within)
        child = pa.nulls(0, node.kind.value_type)
        return pa.Array.from_buffers(node.kind, count, [valid, offsets], children=[child])
    return pa.nulls(count, node.kind)


def buffer(array: Words, size: int) -> pa.Buffer:
    """Give the first ``size`` bytes of an array."""
    # A buffer that is mostly air would be kept as long as the column.
    return pa.py_buffer(array[:size].copy() if len(array) > 2 * size + 4096 else array[:size])


def bits(flags: Words) -> pa.Buffer:
    """Give a bit for each flag, as Arrow has them."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
