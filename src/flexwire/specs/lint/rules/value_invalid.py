"""A value is not what its key takes.

An object where a text belongs, a number that does not fit, a word that is not among those allowed.
Numbers and booleans may be written as texts, as Jackson takes them, and null counts as absent.

Flagged:

    { "name": "Id", "type": "int32", "versions": "0+", "ignorable": "yes" }
                                                                    ^

Instead:

    { "name": "Id", "type": "int32", "versions": "0+", "ignorable": true }

Source: Kafka's generator, what Jackson throws: MismatchedInputException, InvalidFormatException.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser finds it.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
