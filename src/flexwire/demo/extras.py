"""The demo's optional dependencies, asked for only when they are needed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from flexwire.errors import FlexwireError

if TYPE_CHECKING:
    from types import ModuleType


def require(module: str) -> ModuleType:
    """Import a module of the demo, or say which extra to install.

    Raises `FlexwireError` if a package that the module needs is not installed.

    >>> require("flexwire.demo.content").__name__
    'flexwire.demo.content'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "flexwire":
            raise
        raise FlexwireError(
            f"the demo needs the Python package {error.name!r}, which is not installed: "
            "pip install 'flexwire[demo]'"
        ) from error
