"""The columns of an Arrow array, put where the kernels that write find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.validity import as_list, cast, validate_nulls
from flexwire.errors import EncodeError
from flexwire.kernels.columns import layout as L  # noqa: N812 - a word in front of some ten

if TYPE_CHECKING:
    from flexwire.columnar.nodes import Node
    from flexwire.columnar.program import ColumnProgram


class Binding:
    """The table of the columns of ``array``; their memory is held as long as it lives.

    A field that no version asked for has need not have a column. Raises `EncodeError` for a column
    that is missing, that no version has, or whose type does not become the field's without loss.
    """

    def __init__(self, program: ColumnProgram, array: pa.Array) -> None:
        self.columns = np.zeros((len(program.tree.nodes), L.COLUMN // 8), np.int64)
        self._kept: list[pa.Array] = []
        self._bind(program.tree.root, array, "")

    def _bind(self, node: Node, array: pa.Array, path: str) -> None:
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

    def _bind_fields(self, node: Node, array: pa.StructArray, path: str) -> None:
        given = [one.name for one in array.type]
        for name in given:
            if name not in node.fields or given.count(name) > 1:
                raise EncodeError("no version has such a field", path=_join(path, name))
        for name, child in node.fields.items():
            if name in given:
                self._bind(child, array.field(given.index(name)), _join(path, name))
            elif child.used and not child.is_tagged_fields:
                raise EncodeError("the column is missing", path=_join(path, name))
            else:
                self._bind(child, pa.nulls(len(array), child.kind), _join(path, name))


def _fitted(node: Node, array: pa.Array, path: str) -> pa.Array:
    """Give a column as the type of its node, with offsets that the kernels can rely on."""
    if node.is_struct:
        if not pa.types.is_struct(array.type):
            raise EncodeError(f"a column of structs, not of {array.type}", path=path)
        return array
    array = as_list(array, path) if node.is_list else cast(array, node.kind, path)
    if node.used and (node.is_list or node.is_text):
        validate_nulls(array, path)
    return array


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _address(buffer: Any) -> int:
    return int(buffer.address) if buffer else 0
