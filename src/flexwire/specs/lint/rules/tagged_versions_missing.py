"""A field has a tag but no tagged versions.

According to KIP-482, such a field is tagged in all flexible versions. Mode `kip` accepts such a
field. Kafka's generator and the other modes refuse it.

Flagged:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0 }
                                                                   ^

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Source: Kafka's generator, "specifies a tag of T, but has no tagged versions".
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
