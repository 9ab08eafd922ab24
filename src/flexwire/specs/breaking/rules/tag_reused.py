"""A tag was reassigned to another field.

A reader that knows the old field reads the bytes of the new field as those of the old one. This
happens in all versions, because a reader may receive messages of any age.

Flagged: `ClusterId` with `"tag": 0` replaced by `RackId` with `"tag": 0`.

Instead: give the new field the next free tag, and keep the old one.

Source: KIP-482, "Tagged Fields and Version Compatibility": "Tag numbers must never be reused".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    # The tags of a spec apply to every version.
    old = {
        old_member.spec.tag: old_member
        for old_member in pair.old_members
        if old_member.spec.tag is not None
    }
    new = {
        new_member.spec.tag: new_member
        for new_member in pair.new_members
        if new_member.spec.tag is not None
    }
    free = max([*old, *new], default=-1) + 1
    for tag, member in new.items():
        before = old.get(tag)
        # A field whose name differs only in capitals is a renamed field.
        if before and pair.new_names.get(before.name) != member.name:
            text = f"tag {tag} identified {pair.path_of(before)} and now identifies {member.name}"
            yield member.spec.position, f"{text}; for {member.name}, use the next free tag, {free}"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
