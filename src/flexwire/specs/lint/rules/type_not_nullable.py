"""A field is nullable, but its type does not allow null.

Strings, bytes, records, arrays and structures can be null. Numbers, booleans and uuids cannot be
null.

Flagged:

    { "name": "Id", "type": "int32", "versions": "0+", "nullableVersions": "1+" }
                                                                           ^

Instead:

    { "name": "Id", "type": "int32", "versions": "0+", "default": "-1" }

Source: Kafka's generator, "Type T cannot be nullable."
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
