"""A default is not a valid value of its field's type.

An integer is decimal, or "0x" with hex digits, and must fit the type. A bool is "true" or "false".
A uuid is 22 characters of base64url. For arrays, structures and bytes, the only possible default is
"null".

Flagged:

    { "name": "Id", "type": "int8", "versions": "0+", "default": "0x80" }
                                                                 ^

Instead:

    { "name": "Id", "type": "int8", "versions": "0+", "default": "0x7f" }

Source: Kafka's generator, "Invalid default for T field F". The generator accepts "0x-5" and a uuid
with hyphens, and then writes Java code that fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.resolve import parse_default
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field, _ in message.fields():
        # DEFAULT_NULL_MISPLACED checks whether the default can be null here.
        if field.default == "null" and field.type.has_null:
            continue
        try:
            parse_default(field)
        except SpecError as error:
            yield message.at(field, "default"), error.reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
