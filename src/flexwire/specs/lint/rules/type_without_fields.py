"""A field that is not a structure contains fields.

Flagged:

    { "name": "Topic", "type": "string", "versions": "0+", "fields": [
                                                                     ^
      { "name": "Id", "type": "int32", "versions": "0+" }
    ] }

Instead:

    { "name": "Topic", "type": "Topic", "versions": "0+", "fields": [
      { "name": "Id", "type": "int32", "versions": "0+" }
    ] }

Source: Kafka's generator, "Non-array or Struct field F cannot have fields".
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
