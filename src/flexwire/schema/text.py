"""Parse the JSON dialect of message specs into nodes that store their place in the text."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from flexwire.errors import SpecError, short
from flexwire.schema.spec import Position

if TYPE_CHECKING:
    from collections.abc import Iterator

# Released specs are nested at most 10 levels deep. Without a limit, a hostile text could exhaust
# the stack.
MAX_DEPTH = 100
# The largest number of problems that are collected. More problems do not help a reader, and a
# hostile text might have a problem every few characters.
MOST_PROBLEMS = 1000


class ScalarKind(Enum):
    """The notation of a scalar. The parser decides what the scalar means."""

    STRING = "a string"
    NUMBER = "a number"
    BOOLEAN = "a boolean"
    NULL = "null"


@dataclass(slots=True)
class JsonScalar:
    """The characters of a string, or the text of a number, a boolean or null."""

    kind: ScalarKind
    text: str
    offset: int


@dataclass(slots=True)
class JsonArray:
    """A JSON array."""

    items: list[Node]
    offset: int


@dataclass(slots=True)
class JsonMember:
    """A key of an object, with its value. ``offset`` is the place of the key."""

    offset: int
    value: Node


@dataclass(slots=True)
class JsonObject:
    """A JSON object. If a key is repeated, the last value is used, as in Jackson."""

    members: dict[str, JsonMember]
    offset: int


Node = JsonScalar | JsonArray | JsonObject

# Every alternative is written without nested repetition, so that no text makes the pattern
# backtrack repeatedly. The last alternative matches any character, so that there are no gaps
# between tokens.
_TOKEN = re.compile(
    r"""
    (?:[ \t\r\n]+ | //[^\r\n]* | /\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*
    (?: "(?P<plain>[^"\\\x00-\x1f]*)"
      | (?P<mark>[{}\[\]:,])
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<boolean>true\b|false\b)
      | (?P<null>null\b)
      | (?P<escaped>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")
      | (?P<end>\Z)
      | (?P<other>.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN, _MARK = _TOKEN.groupindex["plain"], _TOKEN.groupindex["mark"]
_LINE_END = re.compile(r"\r\n|\r|\n")
_KINDS = {"number": ScalarKind.NUMBER, "boolean": ScalarKind.BOOLEAN, "null": ScalarKind.NULL}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in one place in a spec. ``rule`` is the id of the violated lint rule.

    If the problem is in the members of an object, ``owner`` is the place where this object begins.
    """

    rule: str
    reason: str
    at: Position
    owner: Position | None


class SpecText:
    """The text of a spec, and the places in it.

    The text is JSON with ``//`` and ``/* */`` comments. Trailing commas, single quotes and ``#``
    comments are errors. The source is the set of Jackson options in Kafka's generator.

    If a list of ``problems`` is given, reading continues after most problems, which are added to
    the list.
    """

    def __init__(self, text: str, source: str, problems: list[Problem] | None = None) -> None:
        self.text = text
        self.source = source
        self.problems = problems

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def position(self, offset: int) -> Position:
        """Return the line and column of a character."""
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Return a line of the text without its end. The first line has number 1."""
        starts = self._line_starts
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def error(self, reason: str, offset: int) -> SpecError:
        """Return an error that points at a character."""
        return self.error_at(reason, self.position(offset))

    def error_at(self, reason: str, at: Position) -> SpecError:
        """Return an error that points at a place."""
        return SpecError(reason, source=self.source, line=at.line, column=at.column)

    def refuse(self, rule: str, reason: str, at: Position, owner: Position | None = None) -> None:
        """Raise `SpecError`, or add the problem to the list if problems are collected."""
        if self.problems is None or len(self.problems) >= MOST_PROBLEMS:
            raise self.error_at(reason, at)
        self.problems.append(Problem(rule, reason, at, owner))

    def read(self, *, whole: bool) -> Node:
        """Return the only value in the text. Text that is not JSON always raises `SpecError`.

        With ``whole``, text after the value, except comments, is an error. Otherwise such text is
        ignored, as it was by Kafka's generator before 3.0 (DescribeProducersRequest.json of 2.8
        ends in "]}").
        """
        tokens = _Tokens(self)
        node = tokens.value(1)
        if whole:
            name, text, offset = tokens.take()
            if name != "end":
                reason = f"{short(text)} after the end of the spec; remove it"
                self.refuse("TEXT_AFTER_SPEC", reason, self.position(offset))
        return node


class _Tokens:
    """The tokens of a string, read one at a time."""

    def __init__(self, text: SpecText) -> None:
        self._text = text
        # A byte order mark is not part of the text, but counts as a column.
        start = 1 if text.text.startswith("\ufeff") else 0
        self._matches: Iterator[re.Match[str]] = _TOKEN.finditer(text.text, start)

    def take(self) -> tuple[str, str, int]:
        """Return the next token: its name (a mark is its own name), its text and its offset."""
        match = next(self._matches)
        # Comparing numbers is fast, and most tokens are one of these two.
        group = match.lastindex or 0
        if group == _PLAIN:
            return "string", match[group], match.start(group) - 1
        if group == _MARK:
            mark = match[group]
            return mark, mark, match.start(group)
        name = match.lastgroup or "end"
        offset = match.start(name)
        if name == "escaped":
            text: str = json.loads(match["escaped"])
            return "string", text, offset
        if name == "other":
            self._refuse(offset)
        return name, match[name], offset

    def value(self, depth: int) -> Node:
        return self._value(self.take(), depth)

    def _value(self, token: tuple[str, str, int], depth: int) -> Node:
        name, text, offset = token
        if name == "string":
            return JsonScalar(ScalarKind.STRING, text, offset)
        if name in _KINDS:
            return JsonScalar(_KINDS[name], text, offset)
        if name not in "{[":
            hint = "; remove the comma before it" if name in "]}" else ""
            raise self._text.error(f"expected a value, got {_got(name, text)}{hint}", offset)
        if depth > MAX_DEPTH:
            raise self._text.error(f"nested more than {MAX_DEPTH} levels deep", offset)
        return self._object(offset, depth) if name == "{" else self._array(offset, depth)

    def _array(self, offset: int, depth: int) -> JsonArray:
        items: list[Node] = []
        token = self.take()
        if token[0] == "]":
            return JsonArray(items, offset)
        while True:
            items.append(self._value(token, depth + 1))
            if not self._another("]", "array", offset):
                return JsonArray(items, offset)
            token = self.take()

    def _object(self, offset: int, depth: int) -> JsonObject:
        members: dict[str, JsonMember] = {}
        name, key, at = self.take()
        if name == "}":
            return JsonObject(members, offset)
        while True:
            if name != "string":
                hint = "; remove the comma before it" if name == "}" else ""
                raise self._text.error(f'expected a "key", got {_got(name, key)}{hint}', at)
            colon, text, place = self.take()
            if colon != ":":
                reason = f"expected ':' after {key!r}, got {_got(colon, text)}"
                raise self._text.error(reason, place)
            if key in members and self._text.problems is not None:
                self._repeated(key, at, members[key].offset)
            members[key] = JsonMember(at, self.value(depth + 1))
            if not self._another("}", "object", offset):
                return JsonObject(members, offset)
            name, key, at = self.take()

    def _repeated(self, key: str, offset: int, first: int) -> None:
        # Jackson accepts a repeated key and uses the last value. The author probably wanted both
        # values.
        at, before = self._text.position(offset), self._text.position(first)
        reason = f"key {short(key)} is also at {before.line}:{before.column}; remove one of the two"
        self._text.refuse("KEY_REPEATED", reason, at)

    def _another(self, closing: str, what: str, opened: int) -> bool:
        """Return True if a comma precedes another item, or False at the closing mark."""
        name, text, offset = self.take()
        if name == ",":
            return True
        if name == closing:
            return False
        start = self._text.position(opened)
        raise self._text.error(
            f"expected ',' or {closing!r}, got {_got(name, text)}, "
            f"in the {what} that begins at {start.line}:{start.column}",
            offset,
        )

    def _refuse(self, offset: int) -> NoReturn:
        text = self._text.text
        character = text[offset]
        if character == '"':
            raise self._text.error(*_string_fault(text, offset))
        reasons = {
            "'": "a string must be in double quotes",
            "#": "a comment must begin with '//'",
            "/": "a comment that is not closed; close it with '*/'"
            if text.startswith("/*", offset)
            else "a comment must begin with '//'",
        }
        reason = reasons.get(character, f"unexpected character {character!r}")
        raise self._text.error(reason, offset)


def _got(name: str, text: str) -> str:
    return "the end of the text" if name == "end" else repr(text)


def _string_fault(text: str, offset: int) -> tuple[str, int]:
    """Return why the string at ``offset`` is invalid, and the place of the error."""
    fault = re.compile(
        r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*',
    ).match(text, offset)
    end = fault.end() if fault else offset
    if end == len(text) or text[end] in "\r\n":
        return "a string that is not closed on its line", offset
    if text[end] == "\\":
        return 'unknown escape; write one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX', end
    return f"a control character in a string; write '\\u{ord(text[end]):04x}'", end
