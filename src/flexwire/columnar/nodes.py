"""The columns that a message's Arrow type consists of, as a tree of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.columnar.types import RAW_TAGGED_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator


class Node:
    """One column: of a struct, a list, text or numbers; ``number`` is its row in the table.

    Columns are numbered from the top down, so a list's elements follow the list. ``level`` says in
    which array a column stands, 0 outside of all; ``items`` is the level of a list's elements.
    """

    def __init__(self, tree: Tree, kind: pa.DataType, level: int) -> None:
        self.kind = kind
        self.level = level
        self.number = len(tree.nodes)
        tree.nodes.append(self)
        self.items = -1
        self.width = 0
        # What a program finds out: whether any version has it, and whether it can be null.
        self.used = False
        self.nullable = False
        self.fields: dict[str, Node] = {}
        self.is_struct = bool(pa.types.is_struct(kind))
        self.is_list = bool(pa.types.is_list(kind))
        self.is_text = kind in {pa.string(), pa.binary()}
        self.is_tagged_fields = bool(kind == RAW_TAGGED_FIELDS)
        if self.is_struct:
            self.fields = {one.name: Node(tree, one.type, level) for one in kind}
        elif self.is_list:
            self.items = tree.levels
            tree.levels += 1
            self.element = Node(tree, kind.value_type, self.items)
        elif not self.is_text:
            # A bool is a byte in the kernels.
            self.width = max(8, kind.bit_width) // 8

    def use(self) -> None:
        """Have the column filled, and those below it whose form every message gives."""
        self.used = True
        if self.is_tagged_fields:
            for one in (self.element, *self.element.fields.values()):
                one.used = True


class Tree:
    """All columns of a message; ``levels`` is how many arrays there are, and one for the rows."""

    def __init__(self, kind: pa.StructType) -> None:
        self.nodes: list[Node] = []
        self.levels = 1
        self.root = Node(self, kind, 0)

    def used(self) -> Iterator[Node]:
        """Give the columns that a program fills, from the top down."""
        return (one for one in self.nodes if one.used)
