"""The name of a common structure begins with a lowercase letter.

A capital letter distinguishes a structure from a primitive type, so no field could use this
structure as its type.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Topic", "type": "Topic", "versions": "0+", "fields": [
          { "name": "Id", "type": "uuid", "versions": "0+" }
        ] }
      ], "commonStructs": [
        { "name": "cursor", "versions": "0+", "fields": [
                  ^
          { "name": "Next", "type": "int32", "versions": "0+" }
        ] }
      ] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Cursor", "type": "Cursor", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Cursor", "versions": "0+", "fields": [
          { "name": "Next", "type": "int32", "versions": "0+" }
        ] }
      ] }

Source: Kafka's generator, "the first letter of structure names must be capitalized".
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
