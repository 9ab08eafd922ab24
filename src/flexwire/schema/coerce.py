"""What Jackson makes of a JSON value where a spec wants a string, an integer, a flag or a list."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from flexwire.schema.text import Array, Kind, Object, Scalar
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.errors import SpecError
    from flexwire.schema.text import Node, SpecText

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
_SPELLINGS = {"": False, "true": True, "True": True, "TRUE": True}
_SPELLINGS |= {"false": False, "False": False, "FALSE": False}


class Members:
    """The members of an object of a spec, each read as what it should be.

    A member that is null counts as absent. ``what`` names the object in error texts.
    Source: the coercions that Jackson applies in Kafka's generator.
    """

    def __init__(self, text: SpecText, node: Node, what: str, keys: Sequence[str]) -> None:
        if not isinstance(node, Object):
            raise text.error(f"{what} is an object, not {_found(node)}", node.offset)
        self.text = text
        self.offset = node.offset
        self.what = what
        self._nodes: dict[str, Node] = {}
        for key, member in node.members.items():
            if key not in keys:
                reason = f"unknown key {key!r} in {what}; {_nearest(key, keys)}"
                raise text.error(reason, member.offset)
            if not (isinstance(member.value, Scalar) and member.value.kind is Kind.NULL):
                self._nodes[key] = member.value

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    def error(self, reason: str, key: str = "") -> SpecError:
        """An error that points at a member's value, or at the object where it has none."""
        node = self._nodes.get(key)
        return self.text.error(reason, self.offset if node is None else node.offset)

    def scalar(self, key: str) -> Scalar | None:
        """The member where it is there; an object or an array is an error."""
        node = self._nodes.get(key)
        if node is None or isinstance(node, Scalar):
            return node
        raise self.error(f"{key!r} of {self.what} is a scalar, not {_found(node)}", key)

    def string(self, key: str) -> str | None:
        """A number or a boolean counts as its spelling."""
        node = self.scalar(key)
        return None if node is None else node.text

    def required(self, key: str) -> str:
        """A string that must be there."""
        text = self.string(key)
        if text is None:
            raise self.error(f"{self.what} has no {key!r}; add it")
        return text

    def integer(self, key: str, bits: int, *, hexadecimal: bool = False) -> int | None:
        """A signed integer. A string of digits counts, and a fraction loses what follows the point.

        An empty string counts as absent. ``hexadecimal`` takes "0x" and hex digits too.
        """
        node = self.scalar(key)
        if node is None:
            return None
        spelling = node.text.strip() if node.kind is Kind.STRING else node.text
        if not spelling and node.kind is Kind.STRING:
            return None
        limit = 1 << bits - 1
        value = _whole(spelling, node.kind)
        if hexadecimal and _HEXADECIMAL.fullmatch(spelling):
            value = int(spelling, 16)
        if value is None or not -limit <= value < limit:
            reason = f"{key!r} of {self.what} is an int{bits}, not {node.text[:40]!r}"
            raise self.error(reason, key)
        return value

    def flag(self, key: str) -> bool:
        """A boolean; absent is false, "true" and any integer but zero are true."""
        node = self.scalar(key)
        if node is None:
            return False
        if node.kind is Kind.NUMBER:
            value = _whole(node.text, Kind.STRING)
            value = None if value is None else bool(value)
        else:
            value = _SPELLINGS.get(node.text.strip())
        if value is None:
            raise self.error(f"{key!r} of {self.what} is true or false, not {node.text!r}", key)
        return bool(value)

    def choice(self, key: str, names: Sequence[str]) -> str | None:
        """One of ``names``, or the place of one of them, from 0."""
        node = self.scalar(key)
        return None if node is None else self._choice(node, f"{key!r} of {self.what}", names)

    def choices(self, key: str, names: Sequence[str]) -> tuple[str, ...]:
        """A list of ``names``."""
        what = f"an element of {key!r} of {self.what}"
        found = []
        for node in self.items(key):
            if not isinstance(node, Scalar):
                raise self.text.error(f"{what} is a scalar, not {_found(node)}", node.offset)
            found.append(self._choice(node, what, names))
        return tuple(found)

    def _choice(self, node: Scalar, what: str, names: Sequence[str]) -> str:
        spelling = node.text.strip()
        if spelling in names:
            return spelling
        place = None if node.kind is Kind.BOOLEAN else _whole(spelling, Kind.STRING)
        if place is not None and 0 <= place < len(names):
            return names[place]
        reason = f"{what} cannot be {node.text!r}; {_nearest(spelling, names)}"
        raise self.text.error(reason, node.offset)

    def versions(self, key: str, default: Versions | None = None) -> Versions:
        """A version range; absent or empty is ``default``, and an error where there is none."""
        text = self.string(key)
        if not (text or "").strip():
            if default is None:
                raise self.error(f"{self.what} has no {key!r}; add it, for instance '0+'", key)
            return default
        try:
            return Versions.parse(text or "")
        except ValueError as error:
            raise self.error(f"{key!r} of {self.what}: {error}", key) from None

    def items(self, key: str) -> list[Node]:
        """A list; a single value counts as a list of one, an absent one as an empty list."""
        node = self._nodes.get(key)
        if node is None:
            return []
        return node.items if isinstance(node, Array) else [node]


def _whole(spelling: str, kind: Kind) -> int | None:
    if kind is Kind.BOOLEAN:
        return None
    if kind is Kind.NUMBER and not _INTEGER.fullmatch(spelling):
        # Nothing that fits an integer needs a float's range, so the cut is exact.
        value = float(spelling)
        return int(value) if abs(value) < 1 << 53 else None
    return int(spelling) if _INTEGER.fullmatch(spelling) else None


def _found(node: Node) -> str:
    if isinstance(node, Scalar):
        return f"{node.kind.value} ({node.text[:40]!r})"
    return "an array" if isinstance(node, Array) else "an object"


def _nearest(word: str, words: Iterable[str]) -> str:
    """The nearest of ``words`` as a question, or all of them."""
    lowered = {one.lower(): one for one in words}
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=0.7)
    if close:
        return f"did you mean {lowered[close[0]]!r}?"
    return f"known are {', '.join(lowered.values())}"
