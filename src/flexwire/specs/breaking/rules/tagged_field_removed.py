"""A tagged field was removed from an existing version, or from the spec.

Peers may still send the field. The field is then an unknown tagged field, and its meaning is lost.
The spec also loses the only record that the tag is in use.

Flagged: a tagged field is deleted, or its `taggedVersions` begin later. Mode draft does not flag
this: according to the first draft of KIP-482, an optional field can be removed if nothing reuses
its tag. `TAG_REUSED` reports a reused tag in this mode too.

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
    names = {new_member.name for new_member in pair.new_members}
    for field_pair in pair.pairs:
        if field_pair.old is None or field_pair.old.spec.tag is None:
            continue
        # In a version without the field, another field may have the same name.
        gone = (
            field_pair.old.name not in names
            if field_pair.new is None
            else not field_pair.new.is_there
        )
        if gone and (field_pair.new is None or field_pair.old.is_tagged):
            position = field_pair.new.spec.position if field_pair.new else pair.position
            text = f"{pair.path_of(field_pair.old)} (tag {field_pair.old.spec.tag}) was removed"
            yield position, f"{text}; keep the field, because its tag cannot be reused"


RULE = BreakingRule(
    __name__, __doc__, Breaks.WIRE, structure=_find, compatible_in=frozenset({"draft"})
)
