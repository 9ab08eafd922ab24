"""A message or a field has no type.

Flagged:

    { "name": "Id", "versions": "0+" }
    ^

Instead:

    { "name": "Id", "type": "int32", "versions": "0+" }

Source: Kafka's generator, NullPointerException for `type`.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
