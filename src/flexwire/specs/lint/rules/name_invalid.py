"""A name contains characters other than letters and digits, or does not begin with a letter.

A field's name becomes a Java member and a key in JSON. The names of messages and structures become
classes and files. These names may also contain "_".

Flagged:

    { "name": "topic_id", "type": "uuid", "versions": "0+" }
              ^

Instead:

    { "name": "TopicId", "type": "uuid", "versions": "0+" }

Source: Kafka's generator, "Invalid field name".
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
