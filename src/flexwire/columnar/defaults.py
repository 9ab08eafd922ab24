"""What stands in a column where a message says nothing: a field's default, or null.

A default is a list of rows, one for each column of the field: reading fills the columns with them,
writing compares the columns with them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.columnar import layout as L  # noqa: N812 - a word in front of some twenty
from flexwire.columnar.types import in_column
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Presence, struct_of

if TYPE_CHECKING:
    from flexwire.columnar.types import ColumnNode
    from flexwire.wire.schema import Field, Schema

    Rows = list[list[int]]


class ColumnDefaults:
    """The defaults of one program. ``absent_are_null`` says what an absent field is read as."""

    def __init__(self, *, absent_are_null: bool, writing: bool) -> None:
        self.absent_are_null = absent_are_null
        self.writing = writing
        self._rows: Rows = []
        self._texts: dict[bytes, np.ndarray[Any, Any]] = {}

    def keep(self, rows: Rows) -> tuple[int, int]:
        """Put rows into the program; gives where, in bytes, and how many."""
        at = len(self._rows) * L.DEFAULT
        self._rows += rows
        return at, len(rows)

    def words(self) -> np.ndarray[Any, Any]:
        """Give all rows kept."""
        return np.array(self._rows or [[0] * (L.DEFAULT // 8)], np.int64)

    # Which columns are read at all, and which can be null.

    def survey(self, schema: Schema, node: ColumnNode) -> None:
        """Mark the columns that a version has, and those that it leaves null."""
        fields = schema.by_attribute
        for name, child in node.fields.items():
            one = fields.get(name)
            if name == UNKNOWN_TAGGED_FIELDS:
                if schema.flexible:
                    child.use()
            elif one is None:
                child.nullable = True
            elif one.presence is Presence.ABSENT:
                self._survey_absent(one, child)
            else:
                self._survey_present(one, child)

    def _survey_present(self, one: Field, node: ColumnNode) -> None:
        node.used = True
        node.nullable |= one.nullable
        if one.presence is Presence.TAGGED:
            self._survey_default(one, node)
        inner = struct_of(one.type)
        if node.is_list:
            node = node.element
            node.used = True
        if inner is not None:
            self.survey(inner, node)

    def _survey_absent(self, one: Field, node: ColumnNode) -> None:
        if self.absent_are_null:
            node.nullable = True
        else:
            node.used = True
            self._survey_default(one, node)

    def _survey_default(self, one: Field, node: ColumnNode) -> None:
        if one.default is None:
            node.nullable = True
        elif node.is_struct:
            for each in _fields(one):
                child = node.fields[each.attribute]
                if each.presence is Presence.ABSENT:
                    self._survey_absent(each, child)
                else:
                    child.used = True
                    self._survey_default(each, child)

    # Rows.

    def absent(self, schema: Schema, node: ColumnNode) -> Rows:
        """Give what is read of the fields that a version does not have.

        Or, when writing, what their columns must be, lest their values be lost.
        """
        fields = schema.by_attribute
        rows: Rows = []
        for name, child in node.fields.items():
            one = fields.get(name)
            if name == UNKNOWN_TAGGED_FIELDS:
                if not schema.flexible and (child.used or self.writing):
                    rows.append(_row(L.NO_ITEMS, child, loose=self.writing))
            elif one is None:
                rows += self.null(child)
            elif one.presence is Presence.ABSENT and not (one.ignorable and self.writing):
                rows += self._absent(one, child)
        return rows

    def _absent(self, one: Field, node: ColumnNode) -> Rows:
        if self.absent_are_null and not self.writing:
            return self.null(node)
        rows = self.of(one, node)
        if rows:
            # Null is as good as the default: a version that has no such field gives no value.
            rows[0][-1] = 1
        return rows

    def of(self, one: Field, node: ColumnNode) -> Rows:
        """Give the default of a field, for its column and those of the structure that it is."""
        if not (node.used or self.writing):
            return []
        if one.default is None:
            return self.null(node)
        if node.is_list:
            return [_row(L.NO_ITEMS, node)]
        if not node.is_struct:
            return [self._scalar(one.default, node)]
        rows: Rows = []
        for each in _fields(one):
            child = node.fields[each.attribute]
            absent = each.presence is Presence.ABSENT
            rows += self._absent(each, child) if absent else self.of(each, child)
        unknown = node.fields[UNKNOWN_TAGGED_FIELDS]
        if unknown.used or self.writing:
            rows.append(_row(L.NO_ITEMS, unknown, loose=True))
        # Where null will do as well, it does for all of it.
        return [_row(L.PRESENT, node, length=len(rows)), *rows]

    def _scalar(self, default: object, node: ColumnNode) -> list[int]:
        if isinstance(default, bool):
            return _row(L.FLAG if self.writing else L.NUMBER, node, int(default))
        if isinstance(default, int):
            return _row(L.NUMBER, node, default)
        if isinstance(default, float):
            (bits,) = struct.unpack("q", struct.pack("d", default))
            return _row(L.DOUBLE if self.writing else L.NUMBER, node, bits)
        return self._text(in_column(default), node)

    def _text(self, default: object, node: ColumnNode) -> list[int]:
        assert isinstance(default, str | bytes)  # noqa: S101 - all other defaults are above
        raw = default.encode() if isinstance(default, str) else default
        text = self._texts.setdefault(raw, np.frombuffer(raw or b" ", np.uint8))
        return _row(L.TEXT, node, int(text.ctypes.data), len(raw))

    def null(self, node: ColumnNode) -> Rows:
        """Give a null; where it is a structure's, what is below it is blank when it is read."""
        if not (node.used or self.writing):
            return []
        if node.is_struct:
            rows = [_row(L.MISSING, node)]
            if not self.writing:
                for child in node.fields.values():
                    rows += self._blank(child)
            return rows
        if node.is_list:
            return [_row(L.NULL_ITEMS, node)]
        return [_row(L.NO_TEXT if node.is_text else L.NULL_NUMBER, node)]

    def _blank(self, node: ColumnNode) -> Rows:
        if not node.used:
            return []
        if node.is_struct:
            rows = [_row(L.PRESENT, node)]
            for child in node.fields.values():
                rows += self._blank(child)
            return rows
        if node.is_list:
            return [_row(L.NO_ITEMS, node)]
        return [_row(L.TEXT if node.is_text else L.NUMBER, node)]


def _fields(one: Field) -> tuple[Field, ...]:
    inner = struct_of(one.type)
    assert inner is not None  # noqa: S101 - the field's column is a struct
    return inner.fields


def _row(
    kind: int, node: ColumnNode, value: int = 0, length: int = 0, *, loose: bool = False
) -> list[int]:
    level = node.items * L.LEVEL if node.is_list else 0
    return [kind, node.number * L.COLUMN, value, length, level, int(loose)]
