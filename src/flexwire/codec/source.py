"""Python source being written, as ruff would format it: lines, imports and constants.

What is longer than a line is broken where it is written, mostly one item to a line. The rest of the
formatter's rules are few: quotes, numbers, and blank lines between functions.
"""

from __future__ import annotations

import linecache
import math
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

from flexwire.codec.naming import HOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

LONGEST_LINE = 100
_INDENT = "    "


class Source:
    """The text of a generated module, and what it is given beside its text."""

    def __init__(self, filename: str, about: str) -> None:
        self.filename = filename
        self.about = about
        self.namespace: dict[str, Any] = {}
        self._used: set[str] = set()
        self._constants: dict[str, list[str]] = {}
        self._lines: list[str] = []
        self._depth = 0

    # Statements.

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self._lines.append(_INDENT * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add ``head`` and indent what follows."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Add a function, apart from what stands before it."""
        self._lines += ["", ""]
        with self.block(head):
            yield

    @contextmanager
    def condition(self, word: str, options: Sequence[str]) -> Iterator[None]:
        """Add ``if one or other:`` and indent what follows."""
        head = f"{word} {' or '.join(options)}:"
        if not self.fits(head):
            with self.block(f"{word} ("):
                for place, one in enumerate(options):
                    self.line(f"or {one}" if place else one)
            head = "):"
        with self.block(head):
            yield

    def call(self, function: str, *arguments: str, before: str = "") -> None:
        """Add a call; ``before`` is what its result becomes."""
        joined = ", ".join(arguments)
        if self.fits(f"{before}{function}({joined})"):
            self.line(f"{before}{function}({joined})")
        elif self.fits(_INDENT + joined):
            with self.block(f"{before}{function}("):
                self.line(joined)
            self.line(")")
        else:
            self._one_to_a_line(f"{before}{function}(", arguments, ")")

    def listing(self, name: str, item: str) -> None:
        """Add ``name = [item]``."""
        flat = f"{name} = [{item}]"
        if self.fits(flat):
            self.line(flat)
        else:
            self._one_to_a_line(f"{name} = [", [item], "]")

    def comprehension(
        self, name: str, call: tuple[str, Sequence[str]], targets: Sequence[str], values: str
    ) -> None:
        """Add ``name = [call for targets in values]``; the call is a function and its arguments."""
        made, arguments = call
        joined = f"({', '.join(targets)}{',' * (len(targets) == 1)})"
        loop = f"for {joined} in {values}"
        whole = f"{made}({', '.join(arguments)}) {loop}"
        if self.fits(f"{name} = [{whole}]"):
            self.line(f"{name} = [{whole}]")
            return
        with self.block(f"{name} = ["):
            if self.fits(whole):
                self.line(whole)
            else:
                self.call(made, *arguments)
                if self.fits(loop):
                    self.line(loop)
                else:
                    self._one_to_a_line("for (", targets, f") in {values}")
        self.line("]")

    def unpack(self, names: Sequence[str], value: str) -> None:
        """Add ``names = value``, the value being a tuple."""
        joined = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
        if self.fits(f"{joined} = {value}"):
            self.line(f"{joined} = {value}")
        else:
            self._one_to_a_line("(", names, f") = {value}")

    def _one_to_a_line(self, head: str, items: Sequence[str], tail: str) -> None:
        for text in _one_to_a_line(head, items, tail):
            self.line(text)

    def fits(self, text: str) -> bool:
        """Whether a text is short enough for a line at the present depth."""
        return len(_INDENT) * self._depth + len(text) <= LONGEST_LINE

    # What statements name.

    def use(self, name: str) -> str:
        """Import what generated source may need, and give its name."""
        self._used.add(name)
        return name

    def constant(self, name: str, expression: str) -> str:
        """Set a constant at the beginning of the module, and give its name."""
        self._constants[name] = [f"{name} = {expression}"]
        return name

    def numbers(self, name: str, numbers: Collection[int]) -> str:
        """Set a constant to a set of numbers, and give its name."""
        items = list(map(str, sorted(numbers)))
        flat = f"{name} = {{{', '.join(items)}}}"
        exploded = _one_to_a_line(f"{name} = {{", items, "}")
        self._constants[name] = [flat] if len(flat) <= LONGEST_LINE else exploded
        return name

    def given(self, name: str, value: Any) -> str:
        """Put what no text can say into the namespace, and give its name."""
        self.namespace[name] = value
        return name

    # The whole.

    def text(self) -> str:
        """Give the whole source."""
        own = sorted(name for name in self._used if "." in HOMES[name])
        python = sorted(self._used.difference(own), key=lambda name: (HOMES[name], name))
        constants = [line for lines in self._constants.values() for line in lines]
        parts = [[f'"""{self.about}"""'], _imports(python), _imports(own), constants]
        head = "\n\n".join("\n".join(lines) for lines in parts if lines)
        return "\n".join([head, *self._lines, ""])

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


def _imports(names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for home, group in groupby(names, HOMES.__getitem__):
        items = list(group)
        flat = f"from {home} import {', '.join(items)}"
        exploded = _one_to_a_line(f"from {home} import (", items, ")")
        lines += [flat] if len(flat) <= LONGEST_LINE else exploded
    return lines


def _one_to_a_line(head: str, items: Sequence[str], tail: str) -> list[str]:
    return [head, *(f"{_INDENT}{item}," for item in items), tail]


def literal(value: str | bytes | float | None) -> str:
    r"""Write a value that has a literal, with the quotes and digits that ruff would choose.

    >>> print(literal("it's"), literal('"'), literal(b"\xff"), literal(1e300), literal(-1))
    "it's" '"' b"\xff" 1e300 -1
    >>> literal(float("nan"))
    'float("nan")'
    """
    if isinstance(value, str | bytes):
        return _quoted(repr(value))
    if isinstance(value, float):
        text = repr(value).replace("e+", "e")
        return text if math.isfinite(value) else f'float("{text}")'
    return repr(value)


def _quoted(text: str) -> str:
    """Give a literal in double quotes, unless these need more backslashes than single ones."""
    quote = text[-1]
    prefix, inner = text[: text.index(quote)], text[text.index(quote) + 1 : -1]
    plain = inner.replace("\\'", "'")
    if quote == '"' or plain.count('"') > plain.count("'"):
        return text
    escaped = plain.replace('"', '\\"')
    return f'{prefix}"{escaped}"'
