"""A message has no valid versions, or a structure or field has no versions.

A tagged field may omit its versions. The field then exists in its tagged versions. In mode
`strict`, a tagged field that contains fields must have versions, because Kafka's generator
overlooks the tagged versions of such a field.

Flagged:

    { "name": "Id", "type": "int32" }
    ^

Instead:

    { "name": "Id", "type": "int32", "versions": "0+" }

Source: Kafka's generator, "You must specify the version of the X structure."
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
