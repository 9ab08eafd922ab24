"""More than 100 structures are nested.

A program that reads such a message needs one nested call for each structure.

Source: flexwire, which cannot lay out such a message; Kafka's generator does not check this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.resolve import MOST_NESTED
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    nesting = message.nesting
    depths: dict[str, int] = {}
    for name in nesting.order:
        inner = (depths.get(field.type.name, 0) for field in nesting.fields[name])
        depths[name] = 1 + max(inner, default=0)
    if max(depths.values()) > MOST_NESTED:
        yield message.top, f"more than {MOST_NESTED} nested structures"


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
