"""A structure is defined twice.

A name refers to one structure in the whole message, common or inline.

Flagged:

    { "name": "First", "type": "Range", "versions": "0+", "fields": [
      { "name": "Offset", "type": "int64", "versions": "0+" }
    ] },
    { "name": "Last", "type": "Range", "versions": "0+", "fields": [
    ^
      { "name": "Offset", "type": "int64", "versions": "0+" }
    ] }

Instead:

    { "name": "First", "type": "FirstRange", "versions": "0+", "fields": [
      { "name": "Offset", "type": "int64", "versions": "0+" }
    ] },
    { "name": "Last", "type": "LastRange", "versions": "0+", "fields": [
      { "name": "Offset", "type": "int64", "versions": "0+" }
    ] }

Source: Kafka's generator, "Common struct X was specified twice.", "Can't re-specify the common
struct X as an inline struct.", "Struct X was specified twice."
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
