"""A field of a response is missing from the response's lower versions and is not ignorable.

If a broker sets the field, the broker cannot write a version without the field: writing fails, and
the client gets no answer. The code must therefore check the version before it sets the field. An
ignorable field is omitted instead.

Flagged:

    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "2+", "fields": [
        { "name": "ErrorMessage", "type": "string", "versions": "3+" }
        ^
      ] }

Instead:

    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "2+", "fields": [
        { "name": "ErrorMessage", "type": "string", "versions": "3+", "ignorable": true }
      ] }

Not flagged: a field of a structure that the lower versions lack too; a field of a common structure,
which may be used only in later versions; a field that later versions lack, because they contain its
value in another place; a field of a request, because the failure shows the client that the broker
lacks the feature.

Source: flexwire. Kafka 4.4.0 contains 35 such fields in 22 responses, and its code checks the
version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    if not message.readable or message.spec.type is not MessageType.RESPONSE:
        return
    for field, structure in message.fields():
        having = (field.versions | field.tagged_versions) & structure.versions
        if field.ignorable or not having or having.lowest == structure.versions.lowest:
            continue
        if not structure.in_common:
            lacking = f"version {structure.versions.lowest} of {message.spec.name} lacks"
            reason = f"{lacking} {field.name}, which is not ignorable; make it ignorable"
            yield field.position, reason


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
