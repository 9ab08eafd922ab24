"""The tag of a tagged field changed.

A reader that knows the old tag does not find the field, and finds an unknown tagged field instead.

Flagged: `"tag": 0` that is now `"tag": 1`. Mode draft does not flag this: in the first draft of
KIP-482, one optional field is removed and another is added, and both changes are compatible.

Instead: keep the tag. Tags need not follow the order of the fields.

Source: KIP-482, "Tagged Fields and Version Compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for field_pair in pair.pairs:
        if field_pair.old and field_pair.new:
            old, new = field_pair.old.spec.tag, field_pair.new.spec.tag
            if None not in {old, new} and old != new:
                text = f"{pair.path_of(field_pair.new)} had tag {old} and now has tag {new}"
                yield field_pair.new.spec.position, f"{text}; restore the old tag"


RULE = BreakingRule(
    __name__, __doc__, Breaks.WIRE, structure=_find, compatible_in=frozenset({"draft"})
)
