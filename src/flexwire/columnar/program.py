"""From the schemas of a message's versions to the program that the kernels run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.defaults import Defaults
from flexwire.columnar.nodes import Node, Tree
from flexwire.kernels.columns import layout as L  # noqa: N812 - a word in front of some ninety
from flexwire.kernels.wire import operations as W  # noqa: N812 - as L
from flexwire.kernels.wire.operations import FORMS, operation_of
from flexwire.wire import types
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The bytes of a number in its column, by its operation.
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
# What `W.NUMBERS` takes, and how many bytes of them at most: the kernel that writes has room for
# them before it begins.
_PLAIN = {W.BOOL, W.INT8, W.INT16, W.INT32, W.INT64, W.FLOAT64}
_MOST_NUMBERS = 64
# In which order, and where each begins.
_ROWS = {
    L.O_INTS: {W.INT32},
    L.O_SHORTS: {W.INT16},
    L.O_LONGS: {W.INT64, W.FLOAT64},
    L.O_OTHERS: {W.BOOL, W.INT8, W.VALID},
    L.O_ROWS_END: set[int](),
}
# Read and written all at once where they are an array's elements.
_BULK = {"INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8, "FLOAT64": 8}
_WORD = np.dtype(np.int64)


class ColumnProgram:
    """How to read or write messages of some versions, in words that a kernel runs.

    ``entries`` says for each version where its operations begin; ``refuse`` is the entry for what
    no version is. It is never changed once it is made, so threads share it.
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
        self.tree = Tree(kind)
        self.tree.root.used = self.tree.root.nullable = True
        self.writing = writing
        self.defaults = Defaults(absent_are_null=absent_are_null, writing=writing)
        self.depth = 1
        # What a run learns for the next: elements of each level and bytes of each column, by row.
        self.level_hints: np.ndarray[Any, Any] = np.zeros(self.tree.levels)
        self.data_hints: np.ndarray[Any, Any] = np.zeros(len(self.tree.nodes))
        self._operations: list[list[int]] = []
        self._later: list[Callable[[], None]] = []
        self._known: list[int] = []
        self._refused: list[int] = []
        self._rows: dict[int, list[list[int]]] = {}
        # The operation that takes the next number, if it is one of some that stand side by side.
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
        """Give where the operations of a version begin; those of one it does not have refuse."""
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
        """Give where the next operation stands, which may be gone to."""
        self._numbers = -1
        return len(self._operations) * L.OPERATION

    def _fill(self, defaults: list[list[int]], code: int = W.FILL) -> None:
        if defaults:
            at, count = self.defaults.keep(defaults)
            self._emit(code, {L.O_DEFAULTS: at, L.O_COUNT: count})

    # Structures.

    def _struct(self, schema: Schema, node: Node, depth: int) -> None:
        self.depth = max(self.depth, depth + 1)
        self._fill(self.defaults.absent(schema, node), W.CHECK if self.writing else W.FILL)
        if schema.tags_lead:
            self._tags(schema, node, depth)
        for one in schema.inline:
            self._value(one.type, node.fields[one.attribute], depth)
        if schema.flexible and not schema.tags_lead:
            self._tags(schema, node, depth)

    def _tags(self, schema: Schema, node: Node, depth: int) -> None:
        unknown = node.fields[UNKNOWN_TAGGED_FIELDS]
        place = {
            L.O_COLUMN: unknown.number * L.COLUMN,
            L.O_LEVEL: unknown.items * L.LEVEL,
            L.O_FORM: FORMS[schema.form],
        }
        first = self._emit(W.TAGS, place)
        tag = self._emit(W.TAG, place)
        known = [(one, node.fields[one.attribute]) for one in schema.tagged.values()]
        rows = len(self._known) // 4
        defaults: list[list[int]] = []
        for one, child in known:
            each = self.defaults.of(one, child)
            defaults += each
            at, count = self.defaults.keep(each)
            self._known += [one.tag or 0, 0, at, count]
        counts = {L.O_KNOWN: len(known), L.O_KNOWNS: rows * L.KNOWN}
        refused = {
            L.O_REFUSED: len(schema.refused_tags),
            L.O_REFUSEDS: len(self._refused) * 8,
        }
        self._refused += sorted(schema.refused_tags)
        self._patch(tag, counts | refused)
        self._patch(first, counts | {L.O_AFTER: self._here()})

        def later() -> None:
            if known and not self.writing:
                self._patch(first, {L.O_AFTER: self._here()})
                self._fill(defaults)
                self._emit(W.JUMP, {L.O_AFTER: (tag + 1) * L.OPERATION})
            for number, (one, child) in enumerate(known):
                self._known[(rows + number) * 4 + 1] = self._here()
                self._value(one.type, child, depth + 1)
                self._emit(W.TAG_END, {L.O_AFTER: tag * L.OPERATION, L.O_FORM: FORMS[schema.form]})

        self._later.append(later)

    # Values.

    def _value(self, kind: types.Type, node: Node, depth: int) -> None:
        self.depth = max(self.depth, depth + 1)
        column = node.number * L.COLUMN
        # A column where other versions have nulls is told that this value is none.
        if node.nullable and not self.writing and not (node.is_text or node.is_list):
            self._number(W.VALID, 0, column)
        match kind:
            case types.Array():
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
        """Have a number done with those that it stands beside."""
        number = self._numbers
        if number < 0 or self._word(number, L.O_WIDTH) + width > _MOST_NUMBERS:
            number = self._emit(W.NUMBERS)
            self._numbers = number
            self._rows[number] = []
        place = self._word(number, L.O_WIDTH)
        self._rows[number].append([code, column, place])
        self._patch(number, {L.O_WIDTH: place + width})

    def _array(self, kind: types.Array, node: Node, depth: int) -> None:
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
        """Have an array read and written column by column if its elements are but numbers."""
        codes = [one[L.O_CODE // 8] for one in self._operations[array + 1 :]]
        if codes == [W.NUMBERS, W.NEXT]:
            size = self._word(array + 1, L.O_WIDTH)
        elif codes == [W.NUMBERS, W.TAGS, W.TAG, W.NEXT] and not self._word(array + 3, L.O_KNOWN):
            # Its tagged fields are mostly none, in one byte.
            size = self._word(array + 1, L.O_WIDTH) + 1
        else:
            return
        self._patch(array, {L.O_CODE: W.TABLE, L.O_WIDTH: size, L.O_LEAST: size})

    def _nullable_struct(self, kind: NullableStruct, node: Node, depth: int) -> None:
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

    # The words, once all of them are there.

    def _number_rows(self) -> np.ndarray[Any, Any]:
        """Give the rows of all numbers, those of one operation by their types."""
        kept: list[list[int]] = []
        for number, rows in self._rows.items():
            for word, kinds in _ROWS.items():
                self._patch(number, {word: len(kept) * L.NUMBER_ROW})
                kept += [one for one in rows if one[0] in kinds]
        return np.array(kept or [[0] * (L.NUMBER_ROW // 8)], _WORD)

    def _finish(self) -> None:
        rows = self._number_rows()
        self.operations = np.array(self._operations, _WORD)
        known = np.array(self._known or [0], _WORD)
        refused = np.array(self._refused or [0], _WORD)
        defaults = self.defaults.words()
        known[2::4] += address(defaults)
        codes = self.operations[:, 0]
        # Up to here, operations were told by their offsets.
        base = address(self.operations)
        jumps = np.isin(codes, [W.ARRAY, W.TABLE, W.NEXT, W.MARKER, W.TAGS, W.TAG_END, W.JUMP])
        self.operations[jumps, L.O_AFTER // 8] += base
        known[1::4] += base
        self.refuse += base
        self.blank += base
        self.entries = {version: at + base for version, at in self.entries.items()}
        tags = np.isin(codes, [W.TAGS, W.TAG])
        fills = np.isin(codes, [W.FILL, W.CHECK])
        for word in _ROWS:
            self.operations[codes == W.NUMBERS, word // 8] += address(rows)
        self.operations[tags, L.O_KNOWNS // 8] += address(known)
        self.operations[codes == W.TAG, L.O_REFUSEDS // 8] += address(refused)
        self.operations[fills, L.O_DEFAULTS // 8] += address(defaults)
        self.used = list(self.tree.used())
        self.of_level = [
            [one for one in self.used if one.level == level] for level in range(self.tree.levels)
        ]
        branches = [
            [one.number * L.COLUMN, one.level * L.LEVEL, one.items * L.LEVEL]
            for one in self.used
            if one.is_list
        ]
        self.branches = np.array(branches or [[0] * 3], _WORD)
        self.branch_count = len(branches)
        # Whatever the words point to is kept with them.
        self._kept: list[Any] = [known, refused, defaults, rows]


def address(array: np.ndarray[Any, Any]) -> int:
    """Give where the values of an array without gaps begin; numpy takes three times as long."""
    return int(pa.py_buffer(array).address)
