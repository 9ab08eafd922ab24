"""A version range is not valid.

Write a range as "3", "0-4", "2+" or "none", without spaces. The highest version is 32767.

Flagged:

    { "name": "Id", "type": "int32", "versions": "1 - 3" }
                                                 ^

Instead:

    { "name": "Id", "type": "int32", "versions": "1-3" }

Source: Kafka's generator, NumberFormatException and "Invalid version range 0 to -1".
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
