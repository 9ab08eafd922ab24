"""A message does not specify which of its versions are flexible.

Flexible versions use compact types and tagged fields. In a new message, all versions should be
flexible: write "0+". Write "none" if no version will ever be flexible. Mode `legacy` reads a
missing value as "none", as Kafka did before 3.0.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
    ^
      "validVersions": "0", "fields": [] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: Kafka's generator, "You must specify a value for flexibleVersions. Please use 0+ for all new
messages."
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# The parser reports this fault, so the rule has no check of its own.
RULE = Rule(__name__, __doc__, Category.SYNTAX)
