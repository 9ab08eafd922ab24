"""The rules of lint, one in each file: the file's name is the rule's id, its docstring its page."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.check.rule import Rule


@cache
def rules() -> dict[str, Rule]:
    """Every rule by its id, in alphabetical order."""
    found = [import_module(f"{__name__}.{one.name}").RULE for one in iter_modules(__path__)]
    return {rule.id: rule for rule in found}
