"""The values that columns have for fields that a message does not contain: a default or null.

A default consists of rows, one for each of the field's columns. When messages are read, the columns
are filled with these rows; when messages are written, the columns are compared with them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from flexwire.columnar import layout as L  # noqa: N812 - a short prefix for about twenty names
from flexwire.columnar.types import in_column
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Presence, struct_of

if TYPE_CHECKING:
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.columnar.types import ColumnNode
    from flexwire.wire.schema import Field, Schema

    Rows = list[list[int]]


class ColumnDefaults:
    """The defaults in one program. With ``absent_are_null``, absent fields are read as null."""

    def __init__(self, *, absent_are_null: bool, writing: bool) -> None:
        self.absent_are_null = absent_are_null
        self.writing = writing
        self._rows: Rows = []
        self._texts: dict[bytes, NumpyArray] = {}

    def keep(self, rows: Rows) -> tuple[int, int]:
        """Add rows to the program. Return their offset in bytes and their number."""
        at = len(self._rows) * L.DEFAULT
        self._rows += rows
        return at, len(rows)

    def words(self) -> NumpyArray:
        """Return all rows that have been added."""
        return np.array(self._rows or [[0] * (L.DEFAULT // 8)], np.int64)

    # The code below determines which columns are read at all, and which columns may be null.

    def survey(self, schema: Schema, node: ColumnNode) -> None:
        """Mark the columns that exist in a version, and the columns that it leaves null."""
        fields = schema.by_attribute
        for name, child in node.fields.items():
            field = fields.get(name)
            if name == UNKNOWN_TAGGED_FIELDS:
                if schema.flexible:
                    child.use()
            elif field is None:
                child.nullable = True
            elif field.presence is Presence.ABSENT:
                self._survey_absent(field, child)
            else:
                self._survey_present(field, child)

    def _survey_present(self, field: Field, node: ColumnNode) -> None:
        node.used = True
        node.nullable |= field.nullable
        if field.presence is Presence.TAGGED:
            self._survey_default(field, node)
        inner = struct_of(field.type)
        if node.is_list:
            node = node.element
            node.used = True
        if inner is not None:
            self.survey(inner, node)

    def _survey_absent(self, field: Field, node: ColumnNode) -> None:
        if self.absent_are_null:
            node.nullable = True
        else:
            node.used = True
            self._survey_default(field, node)

    def _survey_default(self, field: Field, node: ColumnNode) -> None:
        if field.default is None:
            node.nullable = True
        elif node.is_struct:
            for each in _fields(field):
                child = node.fields[each.attribute]
                if each.presence is Presence.ABSENT:
                    self._survey_absent(each, child)
                else:
                    child.used = True
                    self._survey_default(each, child)

    # The code below creates rows of defaults.

    def absent(self, schema: Schema, node: ColumnNode) -> Rows:
        """Return the values, for reading, of fields that a version does not have.

        When messages are written, the columns must have these values, so that no value is lost.
        """
        fields = schema.by_attribute
        rows: Rows = []
        for name, child in node.fields.items():
            field = fields.get(name)
            if name == UNKNOWN_TAGGED_FIELDS:
                if not schema.flexible and (child.used or self.writing):
                    rows.append(_row(L.NO_ITEMS, child, loose=self.writing))
            elif field is None:
                rows += self.null(child)
            elif field.presence is Presence.ABSENT and not (field.ignorable and self.writing):
                rows += self._absent(field, child)
        return rows

    def _absent(self, field: Field, node: ColumnNode) -> Rows:
        if self.absent_are_null and not self.writing:
            return self.null(node)
        rows = self.of(field, node)
        if rows:
            # Null also counts as the default, because the version cannot hold a value for this
            # field.
            rows[0][-1] = 1
        return rows

    def of(self, field: Field, node: ColumnNode) -> Rows:
        """Return a field's default for its column and, in structures, for the inner columns."""
        if not (node.used or self.writing):
            return []
        if field.default is None:
            return self.null(node)
        if node.is_list:
            return [_row(L.NO_ITEMS, node)]
        if not node.is_struct:
            return [self._scalar(field.default, node)]
        rows: Rows = []
        for each in _fields(field):
            child = node.fields[each.attribute]
            absent = each.presence is Presence.ABSENT
            rows += self._absent(each, child) if absent else self.of(each, child)
        unknown = node.fields[UNKNOWN_TAGGED_FIELDS]
        if unknown.used or self.writing:
            rows.append(_row(L.NO_ITEMS, unknown, loose=True))
        # If null counts as the default, this applies to the whole structure.
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
        assert isinstance(default, str | bytes)  # noqa: S101 - all other kinds of defaults are handled above
        raw = default.encode() if isinstance(default, str) else default
        text = self._texts.setdefault(raw, np.frombuffer(raw or b" ", np.uint8))
        return _row(L.TEXT, node, int(text.ctypes.data), len(raw))

    def null(self, node: ColumnNode) -> Rows:
        """Return a null. If a structure is null, reading fills its columns with blank values."""
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


def _fields(field: Field) -> tuple[Field, ...]:
    inner = struct_of(field.type)
    assert inner is not None  # noqa: S101 - the column of the field is a struct
    return inner.fields


def _row(
    kind: int, node: ColumnNode, value: int = 0, length: int = 0, *, loose: bool = False
) -> list[int]:
    level = node.items * L.LEVEL if node.is_list else 0
    return [kind, node.number * L.COLUMN, value, length, level, int(loose)]
