"""An object contains the same key twice.

Jackson silently uses the last value, so the first value only misleads readers.

Flagged:

    { "name": "Id", "type": "int32", "versions": "0+", "about": "The id.",
      "type": "int64" }
      ^

Instead:

    { "name": "Id", "type": "int64", "versions": "0+", "about": "The id." }

Source: flexwire; DescribeTopicPartitionsRequest.json of 3.8 contains "versions" twice.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.PEDANTIC)
