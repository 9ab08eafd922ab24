"""A comment allows a finding without a reason.

Such a comment has no effect. The next reader must be able to check whether the reason still holds.

Flagged:

    // flexwire: allow ABOUT_MISSING
                       ^
    { "name": "TopicId", "type": "uuid", "versions": "0+" }

Instead:

    // flexwire: allow ABOUT_MISSING the name says it
    { "name": "TopicId", "type": "uuid", "versions": "0+" }

Source: flexwire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for comment in message.allows:
        if comment.verb == "allow" and comment.rule and not comment.reason:
            yield (
                comment.at,
                f"{comment.rule} is allowed without a reason; state the reason after the rule",
            )


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
