"""A rule: an id, a category, a page, and a function that finds violations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from flexwire.specs.finding import RulePage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.finding import Level
    from flexwire.specs.lint.message import CheckedMessage, Directory


class Category(Enum):
    """The consequence of violating a rule."""

    SYNTAX = "the text cannot be read as a message spec"
    GENERATOR = "Kafka's generator rejects the spec"
    JAVA = "Kafka's generator writes Java that does not compile or run"
    CONSISTENCY = "no tool rejects the spec, but the spec does not express what its author meant"
    PEDANTIC = (
        "a good practice that not all of Kafka's own specs follow, so it is not checked by default"
    )


_LEVELS: dict[Category, Level] = {Category.CONSISTENCY: "warning", Category.PEDANTIC: "note"}


@dataclass(frozen=True, slots=True)
class Rule(RulePage):
    """One rule.

    ``message`` checks one message, and ``directory`` checks all messages of a directory. If a rule
    has neither function, the parser reports its violations.
    """

    category: Category
    message: Callable[[CheckedMessage], Iterator[tuple[Position, str]]] | None = None
    directory: Callable[[Directory], Iterator[tuple[CheckedMessage, Position, str]]] | None = None

    @property
    def level(self) -> Level:
        """The severity of a finding."""
        return _LEVELS.get(self.category, "error")

    @property
    def unreadable(self) -> bool:
        """True if a violation makes the author's intention unclear."""
        return self.category is Category.SYNTAX and self.id != "KEY_UNKNOWN"
