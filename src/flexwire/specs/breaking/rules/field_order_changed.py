"""The order of the fields of an existing version changed.

On the wire, fields have no names. Only their order identifies them.

Flagged: two fields that swapped places, both with `"versions": "0+"`.

Instead: keep the order. A new field can be placed anywhere if it begins with a new version.

Source: KIP-482, "Serialization"; Kafka's protocol guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    old = [new for old, new in pair.both() if old.is_inline and new.is_inline]
    names = {member.name for member in old}
    new = [new_member for new_member in pair.new_members if new_member.name in names]
    for before, now in zip(old, new, strict=True):
        if before is not now:
            text = f"{pair.path_of(now)} is now in the position of {before.name}"
            yield now.spec.position, f"{text}; restore the order of the fields"
            return


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
