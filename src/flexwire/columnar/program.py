"""Compile the schemas of a message's versions to a program for the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar import layout as L  # noqa: N812 - a short prefix for about ninety names
from flexwire.columnar import operations as W  # noqa: N812 - a short prefix for many names
from flexwire.columnar.defaults import ColumnDefaults
from flexwire.columnar.operations import FORMS, operation_of
from flexwire.columnar.types import ColumnNode, ColumnTree, as_list, cast, validate_nulls
from flexwire.errors import EncodeError
from flexwire.wire import types
from flexwire.wire.limits import INT32_MAX
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexwire.columnar.arrays import NumpyArray


# The number of bytes that a number occupies in its column, by operation.
_WIDTHS = {
    W.BOOL: 1,
    W.INT8: 1,
    W.INT16: 2,
    W.UINT16: 4,
    W.INT32: 4,
    W.UINT32: 8,
    W.INT64: 8,
    W.FLOAT64: 8,
}
# The operations that `W.NUMBERS` can contain, and the largest total size of the numbers in bytes.
# The kernel that writes numbers reserves this much room in advance.
_PLAIN = {W.BOOL, W.INT8, W.INT16, W.INT32, W.INT64, W.FLOAT64}
_MOST_NUMBERS = 64
# The order of numbers, and where each group of types begins.
_ROWS = {
    L.O_INTS: {W.INT32},
    L.O_SHORTS: {W.INT16},
    L.O_LONGS: {W.INT64, W.FLOAT64},
    L.O_OTHERS: {W.BOOL, W.INT8, W.VALID},
    L.O_ROWS_END: set[int](),
}
# If the elements of an array consist of these operations, all elements are read and written
# together.
_BULK = {"INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8, "FLOAT64": 8}
_WORD = np.dtype(np.int64)


class ColumnProgram:
    """A program that reads or writes messages in some versions, as words for a kernel.

    ``entries`` contains the first operation for each version, and ``refuse`` is the entry for
    unknown versions. A program does not change after it has been made, so threads can share it.
    """

    def __init__(
        self,
        schemas: Mapping[int, Schema],
        kind: pa.StructType,
        *,
        writing: bool,
        absent_are_null: bool = True,
    ) -> None:
        self.kind = kind
        self.tree = ColumnTree(kind)
        self.tree.root.used = self.tree.root.nullable = True
        self.writing = writing
        self.defaults = ColumnDefaults(absent_are_null=absent_are_null, writing=writing)
        self.depth = 1
        # The sizes that a run passes on to the next run: elements of each level and bytes of each
        # column, per row.
        self.level_hints: NumpyArray = np.zeros(self.tree.levels)
        self.data_hints: NumpyArray = np.zeros(len(self.tree.nodes))
        self._operations: list[list[int]] = []
        self._later: list[Callable[[], None]] = []
        self._tag_rows: list[int] = []
        self._refused: list[int] = []
        self._rows: dict[int, list[list[int]]] = {}
        # The operation to which the next number is added, if it is adjacent to the previous number.
        self._numbers = -1
        for schema in schemas.values():
            self.defaults.survey(schema, self.tree.root)
        self.refuse = self._here()
        self._emit(W.REFUSE)
        self.blank = self._here()
        if not writing:
            self._fill(self.defaults.null(self.tree.root))
        self._emit(W.END)
        self.entries = {version: self._entry(schema) for version, schema in schemas.items()}
        self.stack = (self.depth + 2) * (L.FRAME // 8)
        self._finish()

    def entry(self, version: int | None) -> int:
        """Return the first operation for a version.

        For an unknown version, this operation refuses the row.
        """
        return self.refuse if version is None else self.entries.get(version, self.refuse)

    def _entry(self, schema: Schema) -> int:
        begin = self._here()
        self._struct(schema, self.tree.root, 1)
        self._emit(W.END)
        while self._later:
            self._later.pop()()
        return begin

    def _emit(self, code: int, words: Mapping[int, int] | None = None) -> int:
        self._numbers = -1
        self._operations.append([0] * (L.OPERATION // 8))
        number = len(self._operations) - 1
        self._patch(number, {L.O_CODE: code, **(words or {})})
        return number

    def _patch(self, number: int, words: Mapping[int, int]) -> None:
        for word, value in words.items():
            self._operations[number][word // 8] = value

    def _word(self, number: int, word: int) -> int:
        return self._operations[number][word // 8]

    def _here(self) -> int:
        """Return the place of the next operation, so that another operation can jump to it."""
        self._numbers = -1
        return len(self._operations) * L.OPERATION

    def _fill(self, defaults: list[list[int]], code: int = W.FILL) -> None:
        if defaults:
            at, count = self.defaults.keep(defaults)
            self._emit(code, {L.O_DEFAULTS: at, L.O_COUNT: count})

    # The code below compiles structures.

    def _struct(self, schema: Schema, node: ColumnNode, depth: int) -> None:
        self.depth = max(self.depth, depth + 1)
        self._fill(self.defaults.absent(schema, node), W.CHECK if self.writing else W.FILL)
        if schema.tags_lead:
            self._tags(schema, node, depth)
        for field in schema.inline:
            self._value(field.type, node.fields[field.attribute], depth)
        if schema.flexible and not schema.tags_lead:
            self._tags(schema, node, depth)

    def _tags(self, schema: Schema, node: ColumnNode, depth: int) -> None:
        unknown = node.fields[UNKNOWN_TAGGED_FIELDS]
        place = {
            L.O_COLUMN: unknown.number * L.COLUMN,
            L.O_LEVEL: unknown.items * L.LEVEL,
            L.O_FORM: FORMS[schema.form],
        }
        first = self._emit(W.TAGS, place)
        tag = self._emit(W.TAG, place)
        tagged = [(field, node.fields[field.attribute]) for field in schema.tagged.values()]
        rows = len(self._tag_rows) // 4
        defaults: list[list[int]] = []
        for field, child in tagged:
            each = self.defaults.of(field, child)
            defaults += each
            at, count = self.defaults.keep(each)
            self._tag_rows += [field.tag or 0, 0, at, count]
        counts = {L.O_KNOWN: len(tagged), L.O_KNOWNS: rows * L.KNOWN}
        refused = {
            L.O_REFUSED: len(schema.refused_tags),
            L.O_REFUSEDS: len(self._refused) * 8,
        }
        self._refused += sorted(schema.refused_tags)
        self._patch(tag, counts | refused)
        self._patch(first, counts | {L.O_AFTER: self._here()})

        def later() -> None:
            if tagged and not self.writing:
                self._patch(first, {L.O_AFTER: self._here()})
                self._fill(defaults)
                self._emit(W.JUMP, {L.O_AFTER: (tag + 1) * L.OPERATION})
            for number, (field, child) in enumerate(tagged):
                self._tag_rows[(rows + number) * 4 + 1] = self._here()
                self._value(field.type, child, depth + 1)
                self._emit(W.TAG_END, {L.O_AFTER: tag * L.OPERATION, L.O_FORM: FORMS[schema.form]})

        self._later.append(later)

    # The code below compiles values.

    def _value(self, kind: types.Type, node: ColumnNode, depth: int) -> None:
        self.depth = max(self.depth, depth + 1)
        column = node.number * L.COLUMN
        # If this column may contain nulls in other versions, mark this value as not null.
        if node.nullable and not self.writing and not (node.is_text or node.is_list):
            self._number(W.VALID, 0, column)
        match kind:
            case types.ArrayType():
                self._array(kind, node, depth)
            case NullableStruct():
                self._nullable_struct(kind, node, depth)
            case Schema():
                if self.writing:
                    self._number(W.VALID, 0, column)
                self._struct(kind, node, depth)
            case types.Uuid():
                self._emit(W.UUID, {L.O_COLUMN: column})
            case types.String() | types.Bytes():
                code = W.STRING if isinstance(kind, types.String) else W.BYTES
                words = {L.O_NULLABLE: kind.nullable, L.O_COMPACT: kind.compact}
                self._emit(code, {L.O_COLUMN: column} | words)
            case _:
                code = operation_of(kind)
                width = _WIDTHS[code]
                if width != node.width:
                    wide = {L.O_COLUMN: column, L.O_LEAST: code, L.O_WIDTH: node.width}
                    self._emit(W.WIDENED, wide)
                elif code in _PLAIN:
                    self._number(code, width, column)
                else:
                    self._emit(code, {L.O_COLUMN: column})

    def _number(self, code: int, width: int, column: int) -> None:
        """Add a number to those that are adjacent in the message."""
        number = self._numbers
        if number < 0 or self._word(number, L.O_WIDTH) + width > _MOST_NUMBERS:
            number = self._emit(W.NUMBERS)
            self._numbers = number
            self._rows[number] = []
        place = self._word(number, L.O_WIDTH)
        self._rows[number].append([code, column, place])
        self._patch(number, {L.O_WIDTH: place + width})

    def _array(self, kind: types.ArrayType, node: ColumnNode, depth: int) -> None:
        element = kind.element
        is_number = isinstance(element, types.Integer | types.Float64)
        bulk = _BULK.get(element.name, 0) if is_number else 0
        if bulk != node.element.width or node.element.nullable:
            bulk = 0
        words = {
            L.O_COLUMN: node.number * L.COLUMN,
            L.O_LEVEL: node.items * L.LEVEL,
            L.O_NULLABLE: kind.nullable,
            L.O_COMPACT: kind.compact,
            L.O_LEAST: bulk or element.least_size,
            L.O_WIDTH: bulk,
        }
        array = self._emit(W.BULK if bulk else W.ARRAY, words)
        if not bulk:
            body = self._here()
            self._value(element, node.element, depth + 1)
            self._emit(W.NEXT, {L.O_AFTER: body})
            self._make_table(array)
            self._patch(array, {L.O_AFTER: self._here()})

    def _make_table(self, array: int) -> None:
        """Convert an array whose elements contain only numbers to a TABLE, processed by column."""
        codes = [operation[L.O_CODE // 8] for operation in self._operations[array + 1 :]]
        if codes == [W.NUMBERS, W.NEXT]:
            size = self._word(array + 1, L.O_WIDTH)
        elif codes == [W.NUMBERS, W.TAGS, W.TAG, W.NEXT] and not self._word(array + 3, L.O_KNOWN):
            # Most elements have no tagged fields. The tag section of such an element is a single
            # byte.
            size = self._word(array + 1, L.O_WIDTH) + 1
        else:
            return
        self._patch(array, {L.O_CODE: W.TABLE, L.O_WIDTH: size, L.O_LEAST: size})

    def _nullable_struct(self, kind: NullableStruct, node: ColumnNode, depth: int) -> None:
        words = {L.O_COLUMN: node.number * L.COLUMN, L.O_COMPACT: kind.tagged}
        marker = self._emit(W.MARKER, words)
        self._struct(kind.schema, node, depth)
        after = self._here()
        self._patch(marker, {L.O_AFTER: after})
        if not self.writing:

            def later() -> None:
                self._patch(marker, {L.O_AFTER: self._here()})
                self._fill(self.defaults.null(node))
                self._emit(W.JUMP, {L.O_AFTER: after})

            self._later.append(later)

    # The code below finishes the words.

    def _number_rows(self) -> NumpyArray:
        """Return the rows of all numbers. The rows of an operation are sorted by type."""
        number_rows: list[list[int]] = []
        for number, rows in self._rows.items():
            for word, kinds in _ROWS.items():
                self._patch(number, {word: len(number_rows) * L.NUMBER_ROW})
                number_rows += [row for row in rows if row[0] in kinds]
        return np.array(number_rows or [[0] * (L.NUMBER_ROW // 8)], _WORD)

    def _finish(self) -> None:
        rows = self._number_rows()
        self.operations = np.array(self._operations, _WORD)
        tag_rows = np.array(self._tag_rows or [0], _WORD)
        refused = np.array(self._refused or [0], _WORD)
        defaults = self.defaults.words()
        tag_rows[2::4] += address(defaults)
        codes = self.operations[:, 0]
        # Up to this point, operations were identified by their offsets.
        base = address(self.operations)
        jumps = np.isin(codes, [W.ARRAY, W.TABLE, W.NEXT, W.MARKER, W.TAGS, W.TAG_END, W.JUMP])
        self.operations[jumps, L.O_AFTER // 8] += base
        tag_rows[1::4] += base
        self.refuse += base
        self.blank += base
        self.entries = {version: at + base for version, at in self.entries.items()}
        tags = np.isin(codes, [W.TAGS, W.TAG])
        fills = np.isin(codes, [W.FILL, W.CHECK])
        for word in _ROWS:
            self.operations[codes == W.NUMBERS, word // 8] += address(rows)
        self.operations[tags, L.O_KNOWNS // 8] += address(tag_rows)
        self.operations[codes == W.TAG, L.O_REFUSEDS // 8] += address(refused)
        self.operations[fills, L.O_DEFAULTS // 8] += address(defaults)
        self.used = list(self.tree.used())
        self.of_level = [
            [node for node in self.used if node.level == level] for level in range(self.tree.levels)
        ]
        branches = [
            [node.number * L.COLUMN, node.level * L.LEVEL, node.items * L.LEVEL]
            for node in self.used
            if node.is_list
        ]
        self.branches = np.array(branches or [[0] * 3], _WORD)
        self.branch_count = len(branches)
        # The arrays that the words point to are kept alive together with the words.
        self._kept: list[Any] = [tag_rows, refused, defaults, rows]


def address(array: NumpyArray) -> int:
    """Return the address of a contiguous array's values. This is three times as fast as NumPy."""
    return int(pa.py_buffer(array).address)


class ColumnBinding:
    """The table of an array's columns. The columns' memory is kept as long as the table exists.

    If a field exists in none of the requested versions, its column may be missing. Raises
    `EncodeError` for a column that is missing, for a column that belongs to no version, and for a
    type that cannot be converted without loss.
    """

    def __init__(self, program: ColumnProgram, array: pa.Array) -> None:
        self.columns = np.zeros((len(program.tree.nodes), L.COLUMN // 8), np.int64)
        self._kept: list[pa.Array] = []
        self._bind(program.tree.root, array, "")

    def _bind(self, node: ColumnNode, array: pa.Array, path: str) -> None:
        array = _fitted(node, array, path)
        self._kept.append(array)
        buffers, offset = array.buffers(), array.offset
        row: dict[int, int] = {L.K_WIDTH: node.width}
        if array.null_count:
            row |= {L.K_VALID: buffers[0].address, L.K_VALID_BIT: offset}
        if node.is_struct:
            self._bind_fields(node, array, path)
        elif node.is_list:
            row |= {L.K_OFFSETS: _address(buffers[1]) + 4 * offset}
            row |= {L.K_CAPACITY: len(array.values)}
            self._bind(node.element, array.values, f"{path}[]")
        elif node.is_text:
            row |= {L.K_OFFSETS: _address(buffers[1]) + 4 * offset, L.K_DATA: _address(buffers[2])}
            row |= {L.K_CAPACITY: buffers[2].size if buffers[2] else 0}
        elif pa.types.is_boolean(node.kind):
            row |= {L.K_DATA: _address(buffers[1]), L.K_BIT: offset}
        else:
            row |= {L.K_DATA: _address(buffers[1]) + node.width * offset}
        for word, value in row.items():
            self.columns[node.number, word // 8] = value

    def _bind_fields(self, node: ColumnNode, array: pa.StructArray, path: str) -> None:
        names = [field.name for field in array.type]
        for name in names:
            if name not in node.fields or names.count(name) > 1:
                raise EncodeError(
                    "no version has this field, or the field is repeated", path=_join(path, name)
                )
        for name, child in node.fields.items():
            if name in names:
                self._bind(child, array.field(names.index(name)), _join(path, name))
            elif child.used and not child.is_tagged_fields:
                raise EncodeError("the column is missing", path=_join(path, name))
            else:
                self._bind(child, pa.nulls(len(array), child.kind), _join(path, name))


def _fitted(node: ColumnNode, array: pa.Array, path: str) -> pa.Array:
    """Return a column with its node's type, and with offsets that kernels can rely on."""
    if node.is_struct:
        if not pa.types.is_struct(array.type):
            raise EncodeError(f"expected a struct column, got {array.type}", path=path)
        return array
    array = as_list(array, path) if node.is_list else cast(array, node.kind, path)
    if node.used and (node.is_list or node.is_text):
        validate_nulls(array, path)
    return array


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _address(buffer: Any) -> int:
    return int(buffer.address) if buffer else 0


# The largest number of bytes in a string column, and of elements in an array: an Arrow offset is an
# int32.
MOST = INT32_MAX
# A column gets this many times as much room as the last batches needed.
_MARGIN = 1.1


class ColumnFullError(Exception):
    """A column would exceed `MOST`. The remaining rows must go into another chunk."""


def allocate(size: int) -> NumpyArray:
    """Return memory from Arrow's pool, which keeps freed memory for the next batch.

    Getting new memory from the system takes as long as filling it, and blocks other threads.
    """
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


class ColumnBuffers:
    """The columns for ``rows`` rows.

    ``bound`` is the largest number of elements or bytes that the columns can have. The columns of a
    level grow together. The bytes of each string column grow separately.
    """

    def __init__(self, program: ColumnProgram, rows: int, bound: int) -> None:
        self.program = program
        self.columns = np.zeros((len(program.tree.nodes), L.COLUMN // 8), np.int64)
        self.levels = np.zeros((program.tree.levels, L.LEVEL // 8), np.int64)
        self._nodes = program.used
        self._data: dict[int, NumpyArray] = {}
        self._offsets: dict[int, NumpyArray] = {}
        self._valid: dict[int, NumpyArray] = {}
        bound = min(bound, MOST)
        self._grow_level(0, rows)
        # A kernel marks only the rows that it sets to null.
        self._valid[program.tree.root.number][:] = 1
        for level in range(1, program.tree.levels):
            self._grow_level(level, min(bound, 64 + int(program.level_hints[level] * rows)))
        for node in self._nodes:
            if node.is_text:
                learned = 256 + int(program.data_hints[node.number] * rows)
                self._grow_data(node.number, min(bound, learned))
            self.columns[node.number, L.K_WIDTH // 8] = node.width

    def grow(self, status: int, what: int, need: int) -> None:
        """Allocate the memory that a kernel requests. Raises `ColumnFullError` beyond `MOST`."""
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
        for node in self.program.of_level[level]:
            if node.width:
                self._replace(self._data, node, L.K_DATA, capacity * node.width, count * node.width)
            elif node.is_text or node.is_list:
                self._replace(self._offsets, node, L.K_OFFSETS, 4 * capacity + 4, 4 * count + 4)
            if node.nullable:
                self._replace(self._valid, node, L.K_VALID, capacity, count)
        self.levels[level, L.N_CAPACITY // 8] = capacity

    def _grow_data(self, column: int, capacity: int) -> None:
        node = self.program.tree.nodes[column]
        before = int(self.columns[column, L.K_CAPACITY // 8])
        self._replace(self._data, node, L.K_DATA, capacity, before)
        self.columns[column, L.K_CAPACITY // 8] = capacity

    def _replace(
        self, buffers: dict[int, NumpyArray], node: ColumnNode, word: int, size: int, used: int
    ) -> None:
        new = allocate(max(size, 8))
        old = buffers.get(node.number)
        if old is None:
            # The first offset, if the column has any offsets.
            new[:8] = 0
        else:
            new[:used] = old[:used]
        buffers[node.number] = new
        self.columns[node.number, word // 8] = address(new)

    # The part that has been filled.

    def learn(self, rows: int) -> None:
        """Begin the next run with about as much room as this run needed."""
        share = _MARGIN / max(1, rows)
        self.program.level_hints = self.levels[:, L.N_COUNT // 8] * share
        for node in self._nodes:
            if node.is_text:
                count = rows if node.level == 0 else self._count(node)
                self.program.data_hints[node.number] = self._end(node, count) * share

    def _count(self, node: ColumnNode) -> int:
        return int(self.levels[node.level, L.N_COUNT // 8])

    def _end(self, node: ColumnNode, count: int) -> int:
        return int(self._offsets[node.number][4 * count : 4 * count + 4].view(np.int32)[0])

    def to_arrow(self, rows: int) -> pa.StructArray:
        """Return the first ``rows`` rows."""
        return self._array(self.program.tree.root, rows, None)

    def _array(self, node: ColumnNode, count: int, within: NumpyArray | None) -> pa.Array:
        """Return a column. ``within`` is the validity of the enclosing structure, or None.

        The fields of a null structure are also null. Arrow does not require this, but it makes a
        field correct even when it is used by itself.
        """
        if not node.used:
            return _unused(node, count, within)
        valid = self._validity(node, count, within)
        buffers: list[Any] = [None if valid is None else bits(valid)]
        children: list[pa.Array] | None = None
        if node.is_struct:
            children = [self._array(child, count, valid) for child in node.fields.values()]
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

    def _validity(
        self, node: ColumnNode, count: int, within: NumpyArray | None
    ) -> NumpyArray | None:
        valid = self._valid.get(node.number)
        if valid is None:
            return within
        valid = valid[:count]
        if within is not None:
            return valid & within
        # Finding the minimum takes a third as long as `all`.
        return None if valid.min(initial=1) else valid


def _unused(node: ColumnNode, count: int, within: NumpyArray | None) -> pa.Array:
    if node.is_tagged_fields:
        offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
        valid = None if within is None else bits(within)
        child = pa.nulls(0, node.kind.value_type)
        return pa.Array.from_buffers(node.kind, count, [valid, offsets], children=[child])
    return pa.nulls(count, node.kind)


def buffer(array: NumpyArray, size: int) -> pa.Buffer:
    """Return the first ``size`` bytes in an array."""
    return trimmed(pa.py_buffer(array), size)


def trimmed(room: pa.Buffer, size: int) -> pa.Buffer:
    """Return the first ``size`` bytes in a buffer."""
    part = room.slice(0, size)
    # A mostly empty buffer would remain in memory as long as the column.
    return pa.py_buffer(part.to_pybytes()) if room.size > 2 * size + 4096 else part


def bits(flags: NumpyArray) -> pa.Buffer:
    """Return one bit for each flag, in Arrow's form."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
