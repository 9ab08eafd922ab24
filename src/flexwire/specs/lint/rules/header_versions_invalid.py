"""The key `headerVersions` cannot be read.

It is an object. Each key is a range of versions of the message, as "0-1" or "2+". Each value is the
version of the header before them, a number from 0 to 32767.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "2+",
      "headerVersions": { "0-1": "1", "2+": "two" } }
                                            ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "2+",
      "headerVersions": { "0-1": "1", "2+": "2" } }

Source: Kafka's generator since 4.5, HeaderVersions (KAFKA-20923).
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
