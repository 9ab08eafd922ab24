"""A comment allows a rule that has no finding there.

The comment may be left over, or it may be on the wrong line. If the comment follows other text on
its line, it is about that line. Otherwise it is about the next line that has more than comments.
Only lint rules that are in use count. Whether a breaking change is still there depends on the old
spec.

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

# `lint` itself finds it, after all other rules.
RULE = Rule(__name__, __doc__, Category.CONSISTENCY)
