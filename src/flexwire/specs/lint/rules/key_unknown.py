"""A spec contains an unknown key.

Keys are case-sensitive. The value of a misspelled key is lost. This can change the bytes: a field
without its `taggedVersions` is not tagged.

Flagged:

    { "name": "Id", "type": "int32", "versions": "0+", "ignoreable": true }
                                                       ^

Instead:

    { "name": "Id", "type": "int32", "versions": "0+", "ignorable": true }

Source: Kafka's generator, UnrecognizedPropertyException. Mode `draft` accepts the keys of KIP-482's
first draft.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
