"""A value is not valid for its key.

Examples are an object in place of a string, a number that is too large, and a word that is not
allowed. Numbers and booleans may be written as strings, because Jackson accepts such strings. Null
counts as absent.

Flagged:

    { "name": "Id", "type": "int32", "versions": "0+", "ignorable": "yes" }
                                                                    ^

Instead:

    { "name": "Id", "type": "int32", "versions": "0+", "ignorable": true }

Source: Kafka's generator; Jackson throws MismatchedInputException or InvalidFormatException.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
