"""Convert a JSON value to a string, integer, flag or list, as Jackson would convert it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from flexwire.errors import short
from flexwire.schema.spec import HeaderVersions
from flexwire.schema.text import JsonArray, JsonObject, JsonScalar, ScalarKind
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.schema.spec import Position
    from flexwire.schema.text import JsonMember, Node, SpecText

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_HEADER_VERSION = re.compile(r"[0-9]{1,5}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
_SPELLINGS = {"": False, "true": True, "True": True, "TRUE": True}
_SPELLINGS |= {"false": False, "False": False, "FALSE": False}


class Members:
    """The members of a JSON object in a spec, each converted to its required type.

    A member with the value null counts as absent. ``what`` is the name of the object in error
    messages. The conversions are the same as in Jackson, which Kafka's generator uses.

    A member that was refused counts as absent. If the member is required, it gets an arbitrary
    value. If the text collects problems, it keeps one problem for each member, and reading
    continues.
    """

    def __init__(self, text: SpecText, node: Node, what: str, keys: Sequence[str]) -> None:
        self.text = text
        self.offset = node.offset
        self.what = what
        self._nodes: dict[str, Node] = {}
        self._refused: set[str] = set()
        self._is_object = isinstance(node, JsonObject)
        if not isinstance(node, JsonObject):
            at = text.position(node.offset)
            text.refuse("VALUE_INVALID", f"{what} must be an object, got {_got(node)}", at, at)
            return
        for key, member in node.members.items():
            present = not (
                isinstance(member.value, JsonScalar) and member.value.kind is ScalarKind.NULL
            )
            if key not in keys:
                meant = self._unknown(key, member, keys)
                if meant and meant not in node.members and present:
                    self._nodes[meant] = member.value
            elif present:
                self._nodes[key] = member.value

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    @property
    def position(self) -> Position:
        """The position at which the object begins."""
        return self.text.position(self.offset)

    def refuse(self, rule: str, reason: str, key: str, at: str = "") -> None:
        """Refuse a member, or report that it is absent.

        The position of the problem is the member's value, or the value of the member ``at``, or
        else the object.
        """
        if self._is_object and key not in self._refused:
            self._refused.add(key)
            node = self._nodes.get(at or key)
            place = self.position if node is None else self.text.position(node.offset)
            self.text.refuse(rule, reason, place, self.position)

    def _unknown(self, key: str, member: JsonMember, keys: Sequence[str]) -> str | None:
        """Refuse an unknown key. Return the key that the author probably meant."""
        reason = f"unknown key {short(key)} in {self.what}; {nearest(key, keys)}"
        self.text.refuse("KEY_UNKNOWN", reason, self.text.position(member.offset))
        return _near(key, keys)

    def scalar(self, key: str) -> JsonScalar | None:
        """Return the value of a member, or None if the member is absent.

        An object or array is an error.
        """
        node = self._nodes.get(key)
        if node is None or isinstance(node, JsonScalar):
            return node
        self._invalid(key, f"must be a scalar, got {_got(node)}")
        return None

    def _invalid(self, key: str, reason: str) -> None:
        self.refuse("VALUE_INVALID", f"{key!r} of {self.what} {reason}", key)

    def string(self, key: str) -> str | None:
        """Return a string. A number or a boolean counts as its text."""
        node = self.scalar(key)
        return None if node is None else node.text

    def required(self, key: str, rule: str) -> str:
        """Return a required string."""
        text = self.string(key)
        if text is None:
            self.refuse(rule, f"{self.what} has no {key!r}; add it", key)
        return text or ""

    def integer(self, key: str, bits: int, *, hexadecimal: bool = False) -> int | None:
        """Return a signed integer.

        A string of digits counts as a number, and the fraction of a number is dropped. An empty
        string counts as absent. With ``hexadecimal``, "0x" with hex digits is also accepted.
        """
        node = self.scalar(key)
        if node is None:
            return None
        spelling = node.text.strip() if node.kind is ScalarKind.STRING else node.text
        if not spelling and node.kind is ScalarKind.STRING:
            return None
        limit = 1 << bits - 1
        value = _whole(spelling, node.kind)
        if hexadecimal and _HEXADECIMAL.fullmatch(spelling):
            value = int(spelling, 16)
        if value is None or not -limit <= value < limit:
            self._invalid(key, f"is an int{bits}, got {node.text[:40]!r}")
            return None
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean. Absent means false. "true" and every integer except zero mean true."""
        node = self.scalar(key)
        if node is None:
            return False
        if node.kind is ScalarKind.NUMBER:
            value = _whole(node.text, ScalarKind.STRING)
            value = None if value is None else bool(value)
        else:
            value = _SPELLINGS.get(node.text.strip())
        if value is None:
            self._invalid(key, f"must be true or false, got {short(node.text)}")
        return bool(value)

    def choice(self, key: str, names: Sequence[str]) -> str | None:
        """Return one of ``names``. A spec contains the name, or its position counted from 0."""
        node = self.scalar(key)
        if node is None:
            return None
        chosen = _choice(node, names)
        if chosen is None:
            self._invalid(key, f"cannot be {short(node.text)}; {nearest(node.text, names)}")
        return chosen

    def choices(self, key: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return a list whose items are in ``names``."""
        choices = []
        for node in self.items(key):
            chosen = _choice(node, names) if isinstance(node, JsonScalar) else None
            if chosen is not None:
                choices.append(chosen)
                continue
            reason = (
                f"cannot be {short(node.text)}; {nearest(node.text, names)}"
                if isinstance(node, JsonScalar)
                else f"must be a scalar, got {_got(node)}"
            )
            what = f"an element of {key!r} in {self.what}"
            at = self.text.position(node.offset)
            self.text.refuse("VALUE_INVALID", f"{what} {reason}", at, self.position)
        return tuple(choices)

    def versions(self, key: str, default: Versions | None = None) -> Versions:
        """Return a range of versions.

        If the member is absent or empty, ``default`` is returned. If ``default`` is None, this is
        an error.
        """
        if default is not None and key not in self._nodes:
            return default
        text = self.string(key)
        if not (text or "").strip():
            if default is None:
                reason = f"{self.what} has no {key!r}; add it, for instance '0+'"
                self.refuse("VERSIONS_MISSING", reason, key)
            return Versions.ALL if default is None else default
        try:
            return _versions(text or "")
        except ValueError as error:
            self.refuse("VERSIONS_INVALID", f"{key!r} of {self.what}: {error}", key)
            return Versions.ALL

    def header_versions(self, key: str) -> HeaderVersions | None:
        """Return the value of an object that maps version ranges to header versions.

        A number counts as its digits, and the ranges may be in any order. Returns None if the
        member is absent.
        """
        node = self._nodes.get(key)
        if node is None:
            return None
        if not isinstance(node, JsonObject) or not node.members:
            example = '{"0-1": "1", "2+": "2"}'
            got = "an empty object" if isinstance(node, JsonObject) else _got(node)
            reason = f"{key!r} of {self.what} must be an object such as {example}, got {got}"
            self.refuse("HEADER_VERSIONS_INVALID", reason, key)
            return None
        ranges = [
            self._header_version(key, text, member.value) for text, member in node.members.items()
        ]
        bounds = [item for item in ranges if item is not None]
        if len(bounds) < len(ranges):
            return None
        return HeaderVersions(tuple(sorted(bounds, key=lambda item: item[0].lowest)))

    def _header_version(self, key: str, text: str, node: Node) -> tuple[Versions, int] | None:
        try:
            versions = _versions(text.strip())
        except ValueError:
            versions = Versions.NONE
        what = f"{key!r} of {self.what}"
        at = self.text.position(node.offset)
        if not versions:
            reason = f"{what}: {short(text)} is not a range of versions; write '0-1' or '2+'"
            self.text.refuse("HEADER_VERSIONS_INVALID", reason, at, self.position)
            return None
        spelling = node.text.strip() if isinstance(node, JsonScalar) else ""
        if not _HEADER_VERSION.fullmatch(spelling) or int(spelling) > HIGHEST:
            got = short(node.text) if isinstance(node, JsonScalar) else _got(node)
            reason = f"{what}: expected a header version from 0 to {HIGHEST}, got {got}"
            self.text.refuse("HEADER_VERSIONS_INVALID", reason, at, self.position)
            return None
        return versions, int(spelling)

    def items(self, key: str) -> list[Node]:
        """Return a list.

        A single value counts as a list with one item, and an absent value as an empty list.
        """
        node = self._nodes.get(key)
        if node is None:
            return []
        return node.items if isinstance(node, JsonArray) else [node]


@lru_cache(maxsize=1024)
def _versions(text: str) -> Versions:
    # Three quarters of the fields in the bundled specs have the range "0+".
    return Versions.parse(text)


def _choice(node: JsonScalar, names: Sequence[str]) -> str | None:
    spelling = node.text.strip()
    if spelling in names:
        return spelling
    place = None if node.kind is ScalarKind.BOOLEAN else _whole(spelling, ScalarKind.STRING)
    return names[place] if place is not None and 0 <= place < len(names) else None


def _whole(spelling: str, kind: ScalarKind) -> int | None:
    if kind is ScalarKind.BOOLEAN:
        return None
    if kind is ScalarKind.NUMBER and not _INTEGER.fullmatch(spelling):
        # An integer never needs the whole range of a float, so dropping the fraction is exact.
        value = float(spelling)
        return int(value) if abs(value) < 1 << 53 else None
    return int(spelling) if _INTEGER.fullmatch(spelling) else None


def _got(node: Node) -> str:
    if isinstance(node, JsonScalar):
        return f"{node.kind.value} ({node.text[:40]!r})"
    return "an array" if isinstance(node, JsonArray) else "an object"


def nearest(word: str, words: Iterable[str]) -> str:
    """Return a question that suggests the most similar of ``words``, or a list of all words.

    >>> nearest("taggedVersion", ["tag", "taggedVersions"])
    "did you mean 'taggedVersions'?"
    """
    names = list(words)
    near = _near(word, names)
    return f"known are {', '.join(names)}" if near is None else f"did you mean {near!r}?"


def _near(word: str, words: Iterable[str]) -> str | None:
    lowered = {name.lower(): name for name in words}
    # A text that is much longer than all words is similar to no word, and the comparison would
    # take a long time.
    close = get_close_matches(word[:80].lower(), lowered, n=1, cutoff=0.7)
    return lowered[close[0]] if close else None
