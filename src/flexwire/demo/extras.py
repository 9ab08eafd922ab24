"""The demo's optional dependencies, asked for only when they are needed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from flexwire.extras import needed_by

if TYPE_CHECKING:
    from types import ModuleType


def require(module: str) -> ModuleType:
    """Import a module of the demo, or say which extra to install.

    Raises `MissingExtraError` if a package that the module needs is not installed.

    >>> require("flexwire.demo.content").__name__
    'flexwire.demo.content'
    """
    with needed_by("the demo", "demo"):
        return importlib.import_module(module)
