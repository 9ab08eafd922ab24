"""The default of an untagged field changed.

The default is the field's value if the version lacks the field, if JSON omits the field, or if code
does not set it.

Flagged: `"default": "-1"` on a field whose default was 0 before.

Instead: keep the default, unless you know all programs that depend on it.

Source: KIP-482, "JSON Schemas".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks, default_text, has_other_default

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for field_pair in pair.pairs:
        if (
            field_pair.old is None
            or field_pair.new is None
            or (field_pair.old.is_tagged and field_pair.new.is_tagged)
        ):
            continue
        if has_other_default(field_pair.old, field_pair.new):
            text = f"{pair.path_of(field_pair.new)} had the default {default_text(field_pair.old)}"
            yield field_pair.new.spec.position, f"{text} and now has {default_text(field_pair.new)}"


RULE = BreakingRule(__name__, __doc__, Breaks.JSON, structure=_find)
