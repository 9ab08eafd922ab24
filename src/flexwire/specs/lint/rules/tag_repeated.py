"""Two fields of a structure have the same tag.

A reader recognizes a tagged field only by its tag, in every version. A tag must therefore never be
reused for another field.

Flagged:

    { "name": "ClusterId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" },
    { "name": "RackId", "type": "string", "versions": "2+", "tag": 0, "taggedVersions": "2+" }
    ^

Instead:

    { "name": "ClusterId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" },
    { "name": "RackId", "type": "string", "versions": "2+", "tag": 1, "taggedVersions": "2+" }

Source: Kafka's generator, "In S, field F has a duplicate tag ID T. All tags IDs must be unique."
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
