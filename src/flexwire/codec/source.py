"""Python source being written: lines, indentation, and the constants they use."""

from __future__ import annotations

import linecache
import math
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flexwire.wire.types import Array, Boolean, Float64, Integer, Type, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Refused(Exception):  # noqa: N818 - never leaves the codec: the reference says what is wrong
    """Generated code met something out of the ordinary; the reference executor decides on it."""


class Source:
    """The text of a generated module and the namespace it runs in."""

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self._depth = 0

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add ``head`` and indent what follows."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def constant(self, name: str, value: Any) -> str:
        """Put a value into the namespace and give the name to use for it."""
        self.namespace[name] = value
        return name

    def text(self) -> str:
        """Give the whole source."""
        return "\n".join(self.lines) + "\n"

    def compile(self, function: str) -> Callable[..., Any]:
        """Compile, register with `linecache` so that tracebacks show it, and give a function."""
        text = self.text()
        linecache.cache[self.filename] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            self.filename,
        )
        exec(compile(text, self.filename, "exec"), self.namespace)  # noqa: S102 - our own source
        made: Callable[..., Any] = self.namespace[function]
        return made


def fixed_code(kind: Type) -> str | None:
    """Give the `struct` code of a fixed-width type, None for others.

    >>> from flexwire.wire import types
    >>> fixed_code(types.INT32), fixed_code(types.UUID), fixed_code(types.STRING)
    ('i', '16s', None)
    """
    if isinstance(kind, Boolean):
        return "B"
    if isinstance(kind, Uuid):
        return "16s"
    return kind.code if isinstance(kind, Integer | Float64) else None


def default_expression(source: Source, kind: Type, default: Any, struct: str | None) -> str:
    """Give an expression that makes the default anew; ``struct`` names the structure's class."""
    if default is None:
        return "None"
    if isinstance(kind, Array):
        return "[]"
    if struct is not None:
        return f"{struct}()"
    if isinstance(default, uuid.UUID):
        return source.constant(f"UUID_{default.hex}", default)
    if isinstance(default, float) and not math.isfinite(default):
        return f"float({str(default)!r})"
    return repr(default)
