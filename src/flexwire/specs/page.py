"""What all rules have: an id and a page, which are a module's name and its docstring."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


@dataclass(frozen=True, slots=True)
class Page:
    """A rule as it is read about. Its module's name is its id, its module's docstring its page."""

    module: str
    docstring: str | None

    @property
    def id(self) -> str:
        """The id: in capitals, and worded so that it reads well after "allow"."""
        return self.module.rpartition(".")[2].upper()

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.partition("\n\n")[0].replace("\n", " ")

    @property
    def page(self) -> str:
        """What is flagged, why, what to write instead, and by whose rule."""
        return (self.docstring or "").strip()


def rules_of(package: ModuleType) -> dict[str, Any]:
    """Give the rules that stand in the modules of a package, by id, in alphabetical order."""
    names = sorted(one.name for one in iter_modules(package.__path__))
    found = [import_module(f"{package.__name__}.{name}").RULE for name in names]
    return {rule.id: rule for rule in found}
