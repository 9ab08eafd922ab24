"""A comment allows findings of a rule that reports none there.

The comment is left over, or is on the wrong line. A comment after other text applies to its own
line. A comment alone on its line applies to the next line that contains more than comments. This
rule checks only comments about lint rules that are in use. It does not check comments about
breaking changes, because breaking changes depend on the old spec.

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

# `lint` itself finds unused comments, after all other rules.
RULE = Rule(__name__, __doc__, Category.CONSISTENCY)
