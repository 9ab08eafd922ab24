"""A field has a tag and no tagged versions.

KIP-482 says that a tag without them is there in all flexible versions, and mode `kip` takes it so.
Kafka's generator refuses it, as do the other modes.

Flagged:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0 }
                                                                   ^

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Source: Kafka's generator, "specifies a tag of T, but has no tagged versions".
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser finds it.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
