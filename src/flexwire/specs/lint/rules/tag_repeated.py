"""Two fields of a structure have the same tag.

A reader knows a tagged field by its tag alone, and in every version: a tag that one field had once
is not free for another.

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

# The parser finds it.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
