"""A field's name is a reserved word of Java.

In Kafka's Java class, the field becomes a member of that name, beginning with a lowercase letter.

Flagged:

    { "name": "Default", "type": "int32", "versions": "0+" }
              ^

Instead:

    { "name": "DefaultValue", "type": "int32", "versions": "0+" }

Source: the Java code that Kafka's generator writes does not compile.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


_KEYWORDS = re.compile(
    "abstract|assert|boolean|break|byte|case|catch|char|class|const|continue|default|do|double|else"
    "|enum|extends|false|final|finally|float|for|goto|if|implements|import|instanceof|int|interface"
    "|long|native|new|null|package|private|protected|public|return|short|static|strictfp|super"
    "|switch|synchronized|this|throw|throws|transient|true|try|void|volatile|while"
)


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field, _ in message.fields():
        if _KEYWORDS.fullmatch(field.json_name):
            reason = f"{field.json_name!r} is a reserved word in Java; rename {field.name}"
            yield message.at(field, "name"), reason


RULE = Rule(__name__, __doc__, Category.JAVA, message=_check)
