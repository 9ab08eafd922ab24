"""A file is not JSON.

Message specs are JSON in UTF-8, with `//` and `/* */` comments. Trailing commas, single quotes and
`#` comments are errors. Other rules can check a file only when it can be read.

Flagged:

    { "name": "Id", "type": "int32", "versions": "0+", }
                                                       ^

Instead:

    { "name": "Id", "type": "int32", "versions": "0+" }

Source: the options that Kafka's generator sets for Jackson; flexwire does not read files larger
than 1 MiB.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
