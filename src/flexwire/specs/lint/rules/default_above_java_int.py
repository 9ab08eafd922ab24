"""The default of a uint32 is a decimal number above 2147483647.

The number is copied into Java code unchanged, and is too large for a Java int.

Flagged:

    { "name": "Crc", "type": "uint32", "versions": "0+", "default": "3000000000" }
                                                                    ^

Instead:

    { "name": "Crc", "type": "uint32", "versions": "0+", "default": "0xb2d05e00" }

Source: the Java code that Kafka's generator writes does not compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule
from flexwire.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field, _ in message.fields():
        digits = field.default.removeprefix("+")
        if str(field.type) != "uint32" or not digits.isdecimal() or len(digits) > len(str(2**32)):
            continue
        if INT32_MAX < int(digits) < 2**32:
            reason = (
                f"default {digits} of {field.name} does not fit into a Java int; "
                f"write '{int(digits):#x}'"
            )
            yield message.at(field, "default"), reason


RULE = Rule(__name__, __doc__, Category.JAVA, message=_check)
