"""A tag is negative.

Tags are unsigned on the wire.

Flagged:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": -1, "taggedVersions": "1+" }
                                                                   ^

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Source: Kafka's generator, "Tags cannot be negative."
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
