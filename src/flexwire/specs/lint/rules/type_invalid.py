"""A field has a type that does not exist.

The types are bool, int8, int16, uint16, int32, uint32, int64, uuid, float64, string, bytes,
records, structures (whose names begin with a capital letter), and arrays ("[]" before one of these
types). There are no arrays of arrays.

Flagged:

    { "name": "Ids", "type": "[][]int32", "versions": "0+" }
                             ^

Instead:

    { "name": "Groups", "type": "[]Group", "versions": "0+", "fields": [
      { "name": "Ids", "type": "[]int32", "versions": "0+" }
    ] }

Source: Kafka's generator, "Can't parse type x", "Can't have an array of arrays", "No element type
found".
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
