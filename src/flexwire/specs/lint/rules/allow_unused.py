"""A comment allows what its rule does not find there.

It may be left over, or stand at the wrong line: if something precedes it on its line it is for that
line, else for the next one that holds more than comments. Only rules of lint that are used count;
whether a breaking change is still one depends on what the spec is compared with.

Flagged:

    // flexwire: allow TAG_SKIPPED tag 0 was never released
                       ^
    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Source: flexwire.
"""

from __future__ import annotations

from flexwire.specs.lint.rule import Category, Rule

# Lint finds it, after all other rules.
RULE = Rule(__name__, __doc__, Category.CONSISTENCY)
