"""Two fields of a structure have the same name.

Names that differ only in capitals count as the same. The JSON form, Java members and Python
attributes could not distinguish such names.

Flagged:

    { "name": "TopicId", "type": "uuid", "versions": "0+" },
    { "name": "topicId", "type": "int32", "versions": "0+" }
    ^

Instead:

    { "name": "TopicId", "type": "uuid", "versions": "0+" },
    { "name": "TopicNumber", "type": "int32", "versions": "0+" }

Source: Kafka's generator, "In S, field F has a duplicate name F. All field names must be unique.";
if only capitals differ, the generated Java code does not compile.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.GENERATOR)
