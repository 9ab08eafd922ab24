"""A flexible version has a header without tagged fields.

Flexible versions use request header version 2 or higher, or response header version 1 or higher.
The response with api key 18 is exempt. `HEADER_VERSION_FIXED` checks that response.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "2+",
      "headerVersions": { "0+": "1" } }
                        ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "2+",
      "headerVersions": { "0-1": "1", "2+": "2" } }

Source: Kafka's generator since 4.5, HeaderVersions (KAFKA-20923).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.header_versions import has_fixed_header
from flexwire.schema.spec import MessageType
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    spec = message.spec
    if has_fixed_header(spec):
        return
    lowest = int(spec.type is MessageType.REQUEST) + 1
    flexible = spec.flexible_versions & spec.valid_versions
    for versions, header in message.header_ranges:
        if spec.type.is_api and header < lowest and versions & flexible:
            reason = (
                f"versions {versions & flexible} are flexible but use {spec.type.value} header "
                f"version {header}; use header version {lowest} or higher"
            )
            yield message.at(None, "headerVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
