"""Run a notebook's cells as Jupyter does, without Jupyter: in order, in one namespace."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Followed:
    """The results of the cells: their names, and the value of each last expression."""

    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    values: list[Any] = field(default_factory=list)


def cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def follow(path: Path, **names: Any) -> Followed:
    """Run all cells in the current directory; ``names`` are defined before the first cell."""
    followed = Followed()
    followed.names |= names
    for cell in cells(path):
        tree = ast.parse("".join(cell["source"]))
        where = f"{path.name}[{cell['id']}]"
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, where, "exec"), followed.names)  # noqa: S102 - the notebook is ours
        value = None
        if isinstance(last, ast.Expr):
            # The output that Jupyter shows below a cell.
            value = eval(compile(ast.Expression(last.value), where, "eval"), followed.names)  # noqa: S307 - see above
        followed.values.append(value)
    return followed
