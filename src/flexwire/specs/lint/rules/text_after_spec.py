"""Text follows the end of the spec.

A file contains one JSON object. Kafka's generator before 3.0, and mode `legacy`, ignore the text
after the object.

Flagged:

    {
      "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": []
    }]
     ^

Instead:

    {
      "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": []
    }

Source: Kafka's generator, FAIL_ON_TRAILING_TOKENS; DescribeProducersRequest.json of 2.8 contains
such text.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
