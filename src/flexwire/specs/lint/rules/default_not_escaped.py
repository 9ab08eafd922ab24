r"""The default of a string contains a quote, a backslash or a control character.

The string is copied into a Java literal unchanged.

Flagged:

    { "name": "Filter", "type": "string", "versions": "0+", "default": "\"*\"" }
                                                                       ^

Instead:

    { "name": "Filter", "type": "string", "versions": "0+", "default": "*" }

Source: the Java code that Kafka's generator writes does not compile.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


_SPECIAL = re.compile(r'["\\\x00-\x1f]')


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field, _ in message.fields():
        special = _SPECIAL.search(field.default) if str(field.type) == "string" else None
        if special:
            reason = f"default of {field.name} contains {special[0]!r}, which ends a Java literal"
            yield message.at(field, "default"), reason


RULE = Rule(__name__, __doc__, Category.JAVA, message=_check)
