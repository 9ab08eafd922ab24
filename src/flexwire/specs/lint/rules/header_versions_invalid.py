"""The key `headerVersions` cannot be read.

Its value is an object. Each key is a range of message versions, such as "0-1" or "2+". Each value
is the header version for that range, a number from 0 to 32767.

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
