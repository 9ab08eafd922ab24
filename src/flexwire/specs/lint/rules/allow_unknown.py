"""A flexwire comment is not an "allow" comment, or contains a rule id that does not exist.

Such a comment has no effect: lint still reports the finding.

Flagged:

    // flexwire: allow ABOUT_MISING the name says it
                       ^
    { "name": "TopicId", "type": "uuid", "versions": "0+" }

Instead:

    // flexwire: allow ABOUT_MISSING the name says it
    { "name": "TopicId", "type": "uuid", "versions": "0+" }

Source: flexwire. The rule ids are those of `schema lint` and `schema breaking`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.errors import short
from flexwire.schema.coercion import nearest
from flexwire.specs.breaking.changes import breaking_rules
from flexwire.specs.lint.rule import Category, Rule
from flexwire.specs.lint.rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    rule_ids = [*rules(), *breaking_rules()]
    for comment in message.allows:
        if comment.verb != "allow":
            yield (
                comment.at,
                f"expected 'allow', got {short(comment.verb)}; write 'flexwire: allow RULE reason'",
            )
        elif not comment.rule:
            yield comment.at, "expected a rule; write 'flexwire: allow RULE reason'"
        elif comment.rule not in rule_ids:
            hint = nearest(comment.rule, rule_ids)
            if hint.startswith("known"):
                hint = "--explain ALL lists them"
            yield comment.at, f"no rule {short(comment.rule)}; {hint}"


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
