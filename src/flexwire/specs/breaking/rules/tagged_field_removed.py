"""A tagged field is gone from an existing version, or from the spec.

What others still send is an unknown tagged field then, and its meaning is lost; and with the field
goes the only note that its tag is taken.

Flagged: a tagged field deleted, or its `taggedVersions` begun later. Not in mode draft: the first
draft of KIP-482 calls it compatible to remove an optional field, as long as nothing reuses its tag,
which is `TAG_REUSED` there too.

Instead: keep the field, and stop using it.

Source: KIP-482, "Tagged Fields and Version Compatibility": "Tag numbers must never be reused".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    names = {one.name for one in pair.new_members}
    for one in pair.pairs:
        if one.old is None or one.old.spec.tag is None:
            continue
        # A field that the version does not have may have lent its name to another one there.
        gone = one.old.name not in names if one.new is None else not one.new.is_there
        if gone and (one.new is None or one.old.is_tagged):
            position = one.new.spec.position if one.new else pair.position
            text = f"{pair.path_of(one.old)} (tag {one.old.spec.tag}) is gone"
            yield position, f"{text}; keep it, for its tag cannot be used again"


RULE = BreakingRule(
    __name__, __doc__, Breaks.WIRE, structure=_find, compatible_in=frozenset({"draft"})
)
